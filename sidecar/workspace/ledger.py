"""The patch ledger: what tools changed in a chat, which changes are applied, and plans to revert them. Does
no IO.

Bytes and the hashes on disk are arguments; the caller carries out a `RestorePlan`. A patch stays applied
until it is reverted: `superseded` and `drifted` are computed at each listing and decide nothing here.

No plan overwrites bytes that the ledger does not contain. A later edit by the user is a conflict, and an edit
between two patches is in the blob of the bytes before the second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Literal

import msgspec

from ..model.failures import Refused
from ..model.files import Change, ChangeKind, Patch, PatchStatus
from . import diff
from .open_files import nearest_path, quoted_path
from .writing import digest

MAX_DIFF_BYTES = 200 * 1024
"""The limit for a chat's list of patches in the journal and in a prompt; blobs are stored beyond it."""

HashOnDisk = Callable[[str], str | None]
"""Returns the sha256 of a file's current bytes; None when there is no such file."""

ConflictReason = Literal["drifted", "later_patch", "earlier_patch", "edited_between", "unknown_bytes"]


class Restore(msgspec.Struct, frozen=True):
    """One file to restore. When `expected` equals `target`, the bytes are right and only statuses change."""

    path: str
    expected: str | None
    """The hash that must be on disk now; None: no file."""
    target: str | None
    """The hash after the restore; None: the file is deleted."""
    ref: str | None
    """The blob of the target's bytes."""
    mode: int | None
    """Permission bits for a file that was deleted; None: unchanged, or those of any new file."""
    patches: tuple[str, ...]
    """The ids of the patches whose status changes with it."""


class Conflict(msgspec.Struct, frozen=True):
    """Why a file cannot be restored."""

    path: str
    reason: ConflictReason
    words: str


class RestorePlan(msgspec.Struct, frozen=True):
    """The steps and the conflicts, file by file."""

    restores: tuple[Restore, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    kept: tuple[Conflict, ...] = ()
    """Files that stay as they are, and why; unlike conflicts they prevent nothing."""


def make_change(
    path: str,
    before: bytes | None,
    after: bytes | None,
    old_ref: str | None,
    new_ref: str | None,
    max_diff_bytes: int = MAX_DIFF_BYTES,
) -> Change:
    """Return the difference between the bytes before and after; None means no file."""
    found = diff.unified_diff(path, before, after)
    text, truncated = diff.clip_diff(found.text, max_diff_bytes)
    kind: ChangeKind = "create" if before is None else "delete" if after is None else "modify"
    return Change(
        path=path,
        kind=kind,
        unified_diff=None if found.binary else text,
        before_hash=None if before is None else digest(before),
        after_hash=None if after is None else digest(after),
        old_ref=old_ref,
        new_ref=new_ref,
        added=found.added,
        removed=found.removed,
        binary=found.binary,
        truncated=truncated,
    )


def make_patch(
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
    """Return the ledger entry of a change that was made. The change does not contain the length of binary
    files: pass `diff.summary` of the bytes as `summary` if they are available."""
    fields = {name: getattr(change, name) for name in change.__struct_fields__ if name != "path"}
    patch = Patch(
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
    return msgspec.structs.replace(patch, revertible=has_known_bytes(patch))


def has_known_bytes(patch: Patch) -> bool:
    """Return whether the bytes before and after a patch are known; of another program's they may not be."""
    before = patch.kind == "create" or patch.before_hash is not None
    return before and (patch.kind == "delete" or patch.after_hash is not None)


def with_statuses(patches: Sequence[Patch], hash_on_disk: HashOnDisk) -> list[Patch]:
    """Return the patches with their current statuses. Of the applied patches of one path, all but the newest
    are superseded, and the newest has drifted when the file is no longer as it left it."""
    newest = {patch.file_path: patch for patch in _standing(patches)}

    def status(patch: Patch) -> PatchStatus:
        if patch.status == "reverted":
            return "reverted"
        # Only the newest can be compared with the disk: the bytes that an older one left are overwritten.
        if newest[patch.file_path] is not patch:
            return "superseded"
        return "applied" if hash_on_disk(patch.file_path) == patch.after_hash else "drifted"

    return [msgspec.structs.replace(patch, status=status(patch)) for patch in patches]


def select_patches(
    patches: Sequence[Patch],
    *,
    id: str | None = None,
    number: int | None = None,
    path: str | None = None,
    turn_id: str | None = None,
) -> list[Patch]:
    """Return the selected patches in the chat's order; all without a selector. `number` 1 is the newest."""
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


def plan_revert(patches: Sequence[Patch], chosen: Iterable[Patch], hash_on_disk: HashOnDisk) -> RestorePlan:
    """Plan how to revert the chosen patches; those already reverted stay as they are. `patches` are all
    visible ones.

    Several of one file become one step. A patch below an applied one cannot be reverted alone.
    """
    ids = {patch.id for patch in chosen}
    steps: list[Restore | Conflict] = []
    for path, of_path in _by_path(_standing(patches)).items():
        run = [patch for patch in of_path if patch.id in ids]
        if not run:
            continue
        # Undoing the lower of two patches would need a merge, and its result would be nobody's work.
        later = next((patch for patch in of_path[of_path.index(run[0]) :] if patch.id not in ids), None)
        if later:
            words = f"It was changed again by {_patch_name(later)}; revert that one first, or both together"
            steps.append(Conflict(path, "later_patch", words))
            continue
        first, last, disk = run[0], run[-1], hash_on_disk(path)
        steps.append(
            _gap_conflict(run, disk, first.before_hash)
            or _plan_restore(run, last.after_hash, first.before_hash, first.old_ref, _mode(run), disk)
        )
    return _plan(steps)


def plan_apply(patches: Sequence[Patch], chosen: Iterable[Patch], hash_on_disk: HashOnDisk) -> RestorePlan:
    """Plan how to apply the chosen reverted patches again; those that are applied stay as they are."""
    ids = {patch.id for patch in chosen}
    steps: list[Restore | Conflict] = []
    for path, of_path in _by_path(patches).items():
        run = [patch for patch in of_path if patch.id in ids and patch.status == "reverted"]
        if not run:
            continue
        # An applied patch on top was made for the bytes that are there now.
        later = next(iter(_standing(of_path[of_path.index(run[0]) :])), None)
        if later:
            words = f"The file was changed again by {_patch_name(later)}; revert that one first"
            steps.append(Conflict(path, "later_patch", words))
            continue
        first, last, disk = run[0], run[-1], hash_on_disk(path)
        created = _mode([patch for patch in reversed(run) if patch.kind == "create"])
        steps.append(
            _missing_patch_conflict(run, of_path, disk)
            or _gap_conflict(run, disk, last.after_hash)
            or _plan_restore(run, first.before_hash, last.after_hash, last.new_ref, created, disk)
        )
    return _plan(steps)


def plan_branch(
    patches: Sequence[Patch], visible_now: set[str], visible_then: set[str], hash_on_disk: HashOnDisk
) -> RestorePlan:
    """Plan how files change when other turns become visible; `patches` are all of the chat, including hidden
    ones.

    Turns that become hidden are reverted to the bytes before their first patch of a file, and turns that
    become visible are applied to the bytes after their last. So an edit by the user between two turns stays
    when the later one is reverted; and a branch that started with other bytes than its sibling gets its own
    bytes, not a mixture. Nothing is lost: what is overwritten is in a blob of a patch that can be shown
    again. Statuses do not change.
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
        # Several turns may have led to the same bytes: then nothing is to be done, whoever wrote them.
        if disk == target:
            continue
        if disk in _possible_hashes(of_path, visible_now, entered):
            steps.append(Restore(path, disk, target, ref, _mode(left), ()))
        else:
            expected = left[-1].after_hash if left else entered[0].before_hash
            steps.append(Conflict(path, "drifted", _drift_message(expected, disk)))
    return _plan(steps)


def plan_rest_of_move(
    patches: Sequence[Patch], visible: set[str], parents: Mapping[str, str | None], hash_on_disk: HashOnDisk
) -> RestorePlan:
    """Plan how files that still are as a hidden branch left them become as before that branch.

    It is the rest of a move that kept the files. A file with other bytes was changed since and stays; it is named if
    the turns after the last visible one changed it.
    """
    steps: list[Restore | Conflict] = []
    kept: list[Conflict] = []
    after_head = _turns_after_head(visible, parents)
    for path, of_path in _by_path(_standing(patches)).items():
        disk = hash_on_disk(path)
        seen = [patch for patch in of_path if patch.turn_id in visible]
        last = next((patch for patch in reversed(of_path) if patch.after_hash == disk), None)
        if last is None:
            undone = [patch for patch in of_path if patch.turn_id in after_head]
            if undone and disk not in {patch.before_hash for patch in undone}:
                kept.append(Conflict(path, "drifted", _drift_message(undone[-1].after_hash, disk)))
            continue
        if last.turn_id in visible or (seen and seen[-1].after_hash == disk):
            continue
        branch: set[str] = set()
        turn: str | None = last.turn_id
        while turn is not None and turn not in visible:
            branch.add(turn)
            turn = parents.get(turn)
        first = next(patch for patch in of_path if patch.turn_id in branch)
        if first.before_hash != disk:
            steps.append(Restore(path, disk, first.before_hash, first.old_ref, _mode([first]), ()))
    return msgspec.structs.replace(_plan(steps), kept=tuple(kept))


def _turns_after_head(visible: set[str], parents: Mapping[str, str | None]) -> set[str]:
    """The hidden turns that follow the last visible one, or the start when none is visible."""
    continued = {parents.get(turn) for turn in visible}
    heads: set[str | None] = {turn for turn in visible if turn not in continued} or {None}
    found: set[str] = set()
    for turn, parent in parents.items():  # the oldest first: a turn comes after its parent
        if turn not in visible and (parent in heads or parent in found):
            found.add(turn)
    return found


def export_patches(patches: Iterable[Patch], read: Callable[[str], bytes]) -> bytes:
    """Return one patch for `git apply`: the applied changes, sorted by path, each file from its first bytes
    to its last.

    Edits by others in between are not exported: the parts before and after them follow one another. git
    applies them in order and refuses them if they do not fit without that edit.
    """
    parts = []
    for run in _runs(patches):
        before, after = _bytes_of(run, read)
        known = _mode(run)
        parts.append(diff.git_patch(run[0].file_path, before, after, 0o644 if known is None else known))
    return b"".join(parts)


def changed_files(
    patches: Iterable[Patch], read: Callable[[str], bytes]
) -> list[tuple[str, int | None, int | None]]:
    """Return lines added and removed per file, as in `git diff --numstat`; None for a binary file.

    UTF-16 text is binary for git, and so for an export.
    """
    counts: dict[str, tuple[int | None, int | None]] = {}
    for run in _runs(patches):
        path = run[0].file_path
        before, after = _bytes_of(run, read)
        found = diff.unified_diff(path, before, after)
        binary = found.binary or b"\0" in (before or b"") or b"\0" in (after or b"")
        added, removed = counts.get(path, (0, 0))
        if binary or added is None or removed is None:
            counts[path] = (None, None)
        else:
            counts[path] = (added + found.added, removed + found.removed)
    return [(path, *count) for path, count in counts.items()]


def _plan_restore(
    run: Sequence[Patch],
    expected: str | None,
    target: str | None,
    ref: str | None,
    mode: int | None,
    disk: str | None,
) -> Restore | Conflict:
    """Return one step for a run of patches of one file. If the target is already there, as after a step that
    was interrupted before its status was stored, nothing can be lost."""
    if unknown := next((patch for patch in run if not has_known_bytes(patch)), None):
        words = f"The bytes of {_patch_name(unknown)} are not known: it is history of another program"
        return Conflict(run[0].file_path, "unknown_bytes", words)
    if disk not in (expected, target):
        return Conflict(run[0].file_path, "drifted", _drift_message(expected, disk))
    return Restore(run[0].file_path, disk, target, ref, mode, tuple(patch.id for patch in run))


def _gap_conflict(run: Sequence[Patch], disk: str | None, target: str | None) -> Conflict | None:
    """Return the conflict of patches with an edit by someone else between them, which one step would revert
    too."""
    gaps = [new for old, new in pairwise(run) if old.after_hash != new.before_hash]
    if not gaps or disk == target:
        return None
    words = f"The file was edited from outside before {_patch_name(gaps[-1])}; take them one at a time"
    return Conflict(run[0].file_path, "edited_between", words)


def _missing_patch_conflict(
    run: Sequence[Patch], of_path: Sequence[Patch], disk: str | None
) -> Conflict | None:
    """Return the conflict of a patch that depends on a reverted one which was not chosen with it."""
    if disk == run[-1].after_hash:
        return None
    before = disk
    for patch in run:
        if patch.before_hash != before:
            for other in reversed(of_path[: of_path.index(patch)]):
                if other not in run and other.status == "reverted" and other.after_hash == patch.before_hash:
                    words = f"It depends on {_patch_name(other)}, which is reverted; apply both together"
                    return Conflict(patch.file_path, "earlier_patch", words)
        before = patch.after_hash
    return None


def _possible_hashes(
    of_path: Sequence[Patch], visible_now: set[str], entered: Sequence[Patch]
) -> set[str | None]:
    """Return the hashes that a file may have if only tools changed it since the turns became visible.

    It is as the newest visible patch left it, or as it was before a hidden one that was reverted, including
    edits of the user between the two.
    """
    visible = [patch for patch in of_path if patch.turn_id in visible_now]
    hashes = {patch.after_hash for patch in visible[-1:]} | {patch.before_hash for patch in entered[:1]}
    made: set[str | None] = set()
    for patch in of_path[of_path.index(visible[-1]) + 1 if visible else 0 :]:
        if patch.before_hash not in made:
            # Not made by a patch since: so the user had edited the file before this one, and reverting it gave
            # that edit back.
            hashes.add(patch.before_hash)
        made.add(patch.after_hash)
    return hashes


def _runs(patches: Iterable[Patch]) -> Iterator[list[Patch]]:
    """Return the applied patches of each path, by path, split where one does not start with the bytes that
    the previous one left; without the runs that end where they began."""
    for _, of_path in sorted(_by_path(_standing(patches)).items()):
        run: list[Patch] = []
        for patch in of_path:
            # Somebody edited in between: their lines are not the chat's, and must not be exported as such.
            if run and run[-1].after_hash != patch.before_hash:
                yield from _without_no_change(run)
                run = []
            run.append(patch)
        yield from _without_no_change(run)


def _without_no_change(run: list[Patch]) -> list[list[Patch]]:
    return [run] if run[0].before_hash != run[-1].after_hash else []


def _bytes_of(run: Sequence[Patch], read: Callable[[str], bytes]) -> tuple[bytes | None, bytes | None]:
    ends = ((run[0].before_hash, run[0].old_ref), (run[-1].after_hash, run[-1].new_ref))
    before, after = (None if hash is None else _read(run[0].file_path, ref, read) for hash, ref in ends)
    return before, after


def _read(path: str, ref: str | None, read: Callable[[str], bytes]) -> bytes:
    if ref is None:
        raise Refused(
            "not_found",
            f"The bytes of {quoted_path(path)} were not stored",
            params={"path": quoted_path(path)},
        )
    return read(ref)


def _mode(undone: Sequence[Patch]) -> int | None:
    """Return the permission bits of the file before these patches, as far as they are known."""
    return next((patch.mode for patch in undone if patch.mode is not None), None)


def _standing(patches: Iterable[Patch]) -> list[Patch]:
    return [patch for patch in patches if patch.status != "reverted"]


def _by_path(patches: Iterable[Patch]) -> dict[str, list[Patch]]:
    result: dict[str, list[Patch]] = {}
    for patch in patches:
        result.setdefault(patch.file_path, []).append(patch)
    return result


def _plan(steps: Sequence[Restore | Conflict]) -> RestorePlan:
    return RestorePlan(
        tuple(step for step in steps if isinstance(step, Restore)),
        tuple(step for step in steps if isinstance(step, Conflict)),
    )


def _drift_message(expected: str | None, disk: str | None) -> str:
    if disk is None:
        return "The file was deleted from outside since"
    if expected is None:
        return "There is a file now that the chat did not create"
    return "The file was edited from outside since"


def _patch_name(patch: Patch) -> str:
    return f"patch {patch.id} ({patch.tool_name}: {patch.summary})"


def _where(
    patches: Sequence[Patch], of: Callable[[Patch], str], asked: str, key: str, name: str
) -> list[Patch]:
    found = [patch for patch in patches if of(patch) == asked]
    if found:
        return found
    known = list(dict.fromkeys(of(patch) for patch in reversed(patches)))
    near = nearest_path(asked, known)
    remedy = f"did you mean {near}?" if near else f"the newest is {known[0]}" if known else "it has none"
    raise Refused(
        "not_found",
        f"This chat has no {name} {quoted_path(asked)}; {remedy}",
        params={key: quoted_path(asked), "nearest": near},
    )


def _summary(change: Change) -> str:
    if change.kind == "modify" and change.before_hash is None:
        return "Changed; the bytes before are not known" if change.unified_diff is None else "Changed"
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
