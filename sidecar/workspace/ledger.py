"""The patch ledger: what tools changed in a chat, what of it stands, and what would put it back. Does no IO.

Bytes and the hashes on disk come in as arguments; who writes files carries out a `Plan`. A patch stands until it
is reverted: `superseded` and `drifted` are found anew at each look and decide nothing here.

No plan overwrites bytes that the ledger does not hold. What a person wrote into a file since is a conflict, and
what they wrote between two patches is in the blob of the bytes before the second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Literal

import msgspec

from ..model.failures import Refused
from ..model.files import Change, ChangeKind, Patch, PatchStatus
from . import diff
from .open_files import nearest, quoted

MAX_ENTRIES = 20
MAX_DIFF_BYTES = 200 * 1024
"""What a chat's list of patches may weigh in the journal and in a prompt; blobs are kept beyond it."""

HashOnDisk = Callable[[str], str | None]
"""The sha256 of a file's bytes now; None when there is no such file."""

Reason = Literal["drifted", "later_patch", "earlier_patch", "edited_between"]


class Restore(msgspec.Struct, frozen=True):
    """One file to put back. Where `expected` is `target` the bytes are right and only statuses change."""

    path: str
    expected: str | None
    """The hash that must be on disk now; None: no file."""
    target: str | None
    """The hash that is there then; None: the file is deleted."""
    ref: str | None
    """The blob of the target's bytes."""
    mode: int | None
    """Permission bits for a file that was deleted; None: as they are, or as for any new file."""
    patches: tuple[str, ...]
    """The ids of the patches whose status changes with it."""


class Conflict(msgspec.Struct, frozen=True):
    """Why a file cannot be put back."""

    path: str
    reason: Reason
    words: str


class Plan(msgspec.Struct, frozen=True):
    """What would be done, and what stands against it, file by file."""

    restores: tuple[Restore, ...] = ()
    conflicts: tuple[Conflict, ...] = ()


def change_of(
    path: str,
    before: bytes | None,
    after: bytes | None,
    old_ref: str | None,
    new_ref: str | None,
    max_diff_bytes: int = MAX_DIFF_BYTES,
) -> Change:
    """What differs between the bytes before and after, where None is no file."""
    found = diff.unified(path, before, after)
    text, truncated = diff.clipped(found.text, max_diff_bytes)
    kind: ChangeKind = "create" if before is None else "delete" if after is None else "modify"
    return Change(
        path=path,
        kind=kind,
        unified_diff=None if found.binary else text,
        before_hash=_digest(before),
        after_hash=_digest(after),
        old_ref=old_ref,
        new_ref=new_ref,
        added=found.added,
        removed=found.removed,
        binary=found.binary,
        truncated=truncated,
    )


def patch_of(
    change: Change,
    *,
    id: str,
    turn_id: str,
    item_id: str | None,
    tool_name: str,
    ts: int,
    mode: int | None,
    summary: str | None = None,
) -> Patch:
    """The ledger's entry of a change that was made. The change itself does not know how long binary files are:
    give `diff.summary` of the bytes as `summary` where they are at hand."""
    fields = {name: getattr(change, name) for name in change.__struct_fields__ if name != "path"}
    return Patch(
        id=id,
        turn_id=turn_id,
        item_id=item_id,
        file_path=change.path,
        ts=ts,
        tool_name=tool_name,
        summary=summary or _summary(change),
        mode=mode,
        **fields,
    )


def kept(
    patches: Sequence[Patch], max_entries: int = MAX_ENTRIES, max_bytes: int = MAX_DIFF_BYTES
) -> list[Patch]:
    """The newest patches, newest last, with as much diff text as is kept: the oldest diffs go first.

    A patch that lost its diff, or the end of it, is flagged `truncated`.
    """
    result: list[Patch] = []
    room = max_bytes
    for patch in list(reversed(patches))[:max_entries]:
        if patch.unified_diff is not None:
            text, cut = diff.clipped(patch.unified_diff, max_bytes)
            room -= len(text.encode(errors="surrogatepass"))
            patch = msgspec.structs.replace(
                patch, unified_diff=text if room >= 0 else None, truncated=patch.truncated or cut or room < 0
            )
        result.append(patch)
    return result[::-1]


def with_statuses(patches: Sequence[Patch], hash_on_disk: HashOnDisk) -> list[Patch]:
    """The patches as a person sees them now. Of those of one path that stand, all but the newest are superseded,
    and the newest has drifted when the file is not as it left it."""
    newest = {patch.file_path: patch for patch in _standing(patches)}

    def status(patch: Patch) -> PatchStatus:
        if patch.status == "reverted":
            return "reverted"
        if newest[patch.file_path] is not patch:
            return "superseded"
        return "applied" if hash_on_disk(patch.file_path) == patch.after_hash else "drifted"

    return [msgspec.structs.replace(patch, status=status(patch)) for patch in patches]


def select(
    patches: Sequence[Patch],
    *,
    id: str | None = None,
    number: int | None = None,
    path: str | None = None,
    turn_id: str | None = None,
) -> list[Patch]:
    """The patches that were asked for, in the chat's order; all when nothing is said. `number` 1 is the newest."""
    found = list(patches)
    if number is not None:
        if not 1 <= number <= len(patches):
            known = f"it has {len(patches)}, and 1 is the newest" if patches else "it has none"
            raise Refused("not_found", f"This chat has no patch {number}; {known}", params={"number": number})
        found = [patches[-number]]
    if id is not None:
        found = _where(found, lambda patch: patch.id, id, "id", "patch")
    if path is not None:
        found = _where(found, lambda patch: patch.file_path, path, "path", "patch of")
    if turn_id is not None:
        found = _where(found, lambda patch: patch.turn_id, turn_id, "turnId", "patch of the turn")
    return found


def plan_revert(patches: Sequence[Patch], chosen: Iterable[Patch], hash_on_disk: HashOnDisk) -> Plan:
    """How the chosen patches are undone, of all that the chat shows; those that are reverted are left as they are.

    Several of one file become one step. A patch under one that stands cannot be taken out alone.
    """
    ids = {patch.id for patch in chosen}
    steps: list[Restore | Conflict] = []
    for path, of_path in _by_path(_standing(patches)).items():
        run = [patch for patch in of_path if patch.id in ids]
        if not run:
            continue
        later = next((patch for patch in of_path[of_path.index(run[0]) :] if patch.id not in ids), None)
        if later:
            words = f"It lies under {_named(later)}; revert that one first, or both together"
            steps.append(Conflict(path, "later_patch", words))
            continue
        first, last, disk = run[0], run[-1], hash_on_disk(path)
        steps.append(
            _over_gap(run, disk, first.before_hash)
            or _restore(run, last.after_hash, first.before_hash, first.old_ref, _mode(run), disk)
        )
    return _plan(steps)


def plan_apply(patches: Sequence[Patch], chosen: Iterable[Patch], hash_on_disk: HashOnDisk) -> Plan:
    """How the chosen patches that are reverted are made again; those that stand are left as they are."""
    ids = {patch.id for patch in chosen}
    steps: list[Restore | Conflict] = []
    for path, of_path in _by_path(patches).items():
        run = [patch for patch in of_path if patch.id in ids and patch.status == "reverted"]
        if not run:
            continue
        later = next(iter(_standing(of_path[of_path.index(run[0]) :])), None)
        if later:
            words = f"Since then there is {_named(later)}; revert that one first"
            steps.append(Conflict(path, "later_patch", words))
            continue
        first, last, disk = run[0], run[-1], hash_on_disk(path)
        created = _mode([patch for patch in reversed(run) if patch.kind == "create"])
        steps.append(
            _needed(run, of_path, disk)
            or _over_gap(run, disk, last.after_hash)
            or _restore(run, first.before_hash, last.after_hash, last.new_ref, created, disk)
        )
    return _plan(steps)


def plan_branch(
    patches: Sequence[Patch], visible_now: set[str], visible_then: set[str], hash_on_disk: HashOnDisk
) -> Plan:
    """How files follow when other turns become visible; `patches` are all of the chat, hidden ones too.

    Turns that are left are undone to the bytes before their first patch of a file, and turns that are entered are
    made again to the bytes after their last. So what a person wrote between two turns stays while the later one is
    undone; and a branch that began with other bytes than its sibling gets its own bytes, not a mixture. Nothing is
    lost: what is overwritten is in a blob of a patch that can be shown again. Statuses do not change.
    """
    turns_left, turns_entered = visible_now - visible_then, visible_then - visible_now
    steps: list[Restore | Conflict] = []
    for path, of_path in _by_path(_standing(patches)).items():
        left = [patch for patch in of_path if patch.turn_id in turns_left]
        entered = [patch for patch in of_path if patch.turn_id in turns_entered]
        if not left and not entered:
            continue
        if entered:
            target, ref = entered[-1].after_hash, entered[-1].new_ref
        else:
            target, ref = left[0].before_hash, left[0].old_ref
        disk = hash_on_disk(path)
        if disk == target:
            continue
        if disk in _left_on_disk(of_path, visible_now, entered):
            steps.append(Restore(path, disk, target, ref, _mode(left), ()))
        else:
            expected = left[-1].after_hash if left else entered[0].before_hash
            steps.append(Conflict(path, "drifted", _drift(expected, disk)))
    return _plan(steps)


def export(patches: Iterable[Patch], read: Callable[[str], bytes]) -> bytes:
    """One patch for `git apply`: what stands, sorted by path, each file from its first bytes to its last.

    Where somebody else edited a file in between, their edit is not ours to export: the parts before and after it
    follow one another. git applies them in order and refuses them where they do not fit without that edit.
    """
    parts = []
    for run in _runs(patches):
        before, after = _bytes_of(run, read)
        known = _mode(run)
        parts.append(diff.git_patch(run[0].file_path, before, after, 0o644 if known is None else known))
    return b"".join(parts)


def changed(
    patches: Iterable[Patch], read: Callable[[str], bytes]
) -> list[tuple[str, int | None, int | None]]:
    """Lines added and removed, file by file, as in `git diff --numstat`; None of a binary file.

    What people read in UTF-16 is binary to git, as to an export.
    """
    counts: dict[str, tuple[int | None, int | None]] = {}
    for run in _runs(patches):
        path = run[0].file_path
        before, after = _bytes_of(run, read)
        found = diff.unified(path, before, after)
        binary = found.binary or b"\0" in (before or b"") or b"\0" in (after or b"")
        added, removed = counts.get(path, (0, 0))
        if binary or added is None or removed is None:
            counts[path] = (None, None)
        else:
            counts[path] = (added + found.added, removed + found.removed)
    return [(path, *count) for path, count in counts.items()]


def _restore(
    run: Sequence[Patch],
    expected: str | None,
    target: str | None,
    ref: str | None,
    mode: int | None,
    disk: str | None,
) -> Restore | Conflict:
    """One step for a run of patches of one file. When the target is there already, as after a step that was cut
    off before its status was kept, there is nothing to lose."""
    if disk not in (expected, target):
        return Conflict(run[0].file_path, "drifted", _drift(expected, disk))
    return Restore(run[0].file_path, disk, target, ref, mode, tuple(patch.id for patch in run))


def _over_gap(run: Sequence[Patch], disk: str | None, target: str | None) -> Conflict | None:
    """The conflict of patches with somebody's edit between them, which one step would take along unasked."""
    gaps = [new for old, new in pairwise(run) if old.after_hash != new.before_hash]
    if not gaps or disk == target:
        return None
    words = f"The file was edited from outside before {_named(gaps[-1])}; take them one at a time"
    return Conflict(run[0].file_path, "edited_between", words)


def _needed(run: Sequence[Patch], of_path: Sequence[Patch], disk: str | None) -> Conflict | None:
    """The conflict of a patch that stands on one that is reverted and was not chosen with it."""
    if disk == run[-1].after_hash:
        return None
    before = disk
    for patch in run:
        if patch.before_hash != before:
            for other in reversed(of_path[: of_path.index(patch)]):
                if other not in run and other.status == "reverted" and other.after_hash == patch.before_hash:
                    words = f"It stands on {_named(other)}, which is reverted; apply both together"
                    return Conflict(patch.file_path, "earlier_patch", words)
        before = patch.after_hash
    return None


def _left_on_disk(
    of_path: Sequence[Patch], visible_now: set[str], entered: Sequence[Patch]
) -> set[str | None]:
    """The hashes that a file may have when nobody but us has touched it since the turns became visible.

    It is as the newest visible patch left it; or as it was before a hidden one, when that was undone: with what a
    person had written between the two.
    """
    visible = [patch for patch in of_path if patch.turn_id in visible_now]
    hashes = {patch.after_hash for patch in visible[-1:]} | {patch.before_hash for patch in entered[:1]}
    made: set[str | None] = set()
    for patch in of_path[of_path.index(visible[-1]) + 1 if visible else 0 :]:
        if patch.before_hash not in made:
            hashes.add(patch.before_hash)
        made.add(patch.after_hash)
    return hashes


def _runs(patches: Iterable[Patch]) -> Iterator[list[Patch]]:
    """The standing patches of each path, by path, cut where one does not begin with the bytes that the one before
    left; without the runs that end where they began."""
    for _, of_path in sorted(_by_path(_standing(patches)).items()):
        run: list[Patch] = []
        for patch in of_path:
            if run and run[-1].after_hash != patch.before_hash:
                yield from _unless_void(run)
                run = []
            run.append(patch)
        yield from _unless_void(run)


def _unless_void(run: list[Patch]) -> list[list[Patch]]:
    return [run] if run[0].before_hash != run[-1].after_hash else []


def _bytes_of(run: Sequence[Patch], read: Callable[[str], bytes]) -> tuple[bytes | None, bytes | None]:
    ends = ((run[0].before_hash, run[0].old_ref), (run[-1].after_hash, run[-1].new_ref))
    before, after = (None if hash is None else _read(run[0].file_path, ref, read) for hash, ref in ends)
    return before, after


def _read(path: str, ref: str | None, read: Callable[[str], bytes]) -> bytes:
    if ref is None:
        raise Refused(
            "not_found", f"The bytes of {quoted(path)} were not kept", params={"path": quoted(path)}
        )
    return read(ref)


def _mode(undone: Sequence[Patch]) -> int | None:
    """The permission bits of the file before these patches, as far as they are known."""
    return next((patch.mode for patch in undone if patch.mode is not None), None)


def _standing(patches: Iterable[Patch]) -> list[Patch]:
    return [patch for patch in patches if patch.status != "reverted"]


def _by_path(patches: Iterable[Patch]) -> dict[str, list[Patch]]:
    result: dict[str, list[Patch]] = {}
    for patch in patches:
        result.setdefault(patch.file_path, []).append(patch)
    return result


def _plan(steps: Sequence[Restore | Conflict]) -> Plan:
    return Plan(
        tuple(step for step in steps if isinstance(step, Restore)),
        tuple(step for step in steps if isinstance(step, Conflict)),
    )


def _drift(expected: str | None, disk: str | None) -> str:
    if disk is None:
        return "The file was deleted from outside since"
    if expected is None:
        return "There is a file now that the chat did not make"
    return "The file was edited from outside since"


def _named(patch: Patch) -> str:
    return f"patch {patch.id} ({patch.tool_name}: {patch.summary})"


def _where(
    patches: Sequence[Patch], of: Callable[[Patch], str], asked: str, key: str, name: str
) -> list[Patch]:
    found = [patch for patch in patches if of(patch) == asked]
    if found:
        return found
    known = list(dict.fromkeys(of(patch) for patch in reversed(patches)))
    near = nearest(asked, known)
    remedy = f"did you mean {near}?" if near else f"the newest is {known[0]}" if known else "it has none"
    raise Refused(
        "not_found",
        f"This chat has no {name} {quoted(asked)}; {remedy}",
        params={key: quoted(asked), "nearest": near},
    )


def _summary(change: Change) -> str:
    if change.binary:
        words = {
            "create": "New binary file",
            "modify": "Binary file changed",
            "delete": "Binary file deleted",
        }
        return words[change.kind]
    if change.kind == "create":
        return f"New file: {_lines(change.added)}"
    if change.kind == "delete":
        return f"Deleted: {_lines(change.removed)}"
    return f"-{change.removed}, +{change.added} lines"


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count} lines"


def _digest(data: bytes | None) -> str | None:
    from hashlib import sha256

    return None if data is None else sha256(data).hexdigest()
