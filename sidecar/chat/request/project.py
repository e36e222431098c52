"""Collects what a project adds to a prompt: open files, patches, the git diff. It changes nothing.

Decides for each open file whether it is sent whole, as a diff or not at all; `context/gates` decides for the kinds of
blocks, `context/assembly` about tokens.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import msgspec

from ...context.assembly import BUDGET_ALLOWS, UNAVAILABLE
from ...context.fences import fence_text
from ...context.gates.decide import Gates, PromptContext, decide_gates, is_open
from ...context.materials import Candidate
from ...model.chats import GateSwitches
from ...model.content import Turn
from ...model.failures import Failure, Refused
from ...model.files import Patch
from ...policy.read_rules import ReadRules, excluded_summary
from ...store.store import Store
from ...system.lazy import lazy_module
from ...text.plural import counted
from ...workspace import diff as diffs
from ...workspace import diff_shares, git, ledger
from ...workspace.paths import Workspace
from ...workspace.text import NotText, decode_text
from ...workspace.writing import digest
from ..tool_calls import edits
from ..tool_calls.environment import ToolEnvironment
from .file_versions import DIFF_COST_FACTOR, KnownVersion
from .project_context import RECENT_TURNS, OpenedFile, ProjectContext
from .token_meter import TokenMeter

if TYPE_CHECKING:
    from ...context import excerpts
else:
    excerpts = lazy_module("sidecar.context.excerpts")

MAX_IDENTIFIERS = 20_000
"""Of all open files together: enough for 35 files, and a set of a few megabytes."""

MAX_DIFFS = 20
MAX_LABEL = 300
"""Characters of a block's label."""

HEAD_SHARE = 0.75
"""Of the space for a diff: what the list of its files may take, which is worth more than parts of their changes."""

MAX_UNTRACKED = 50
"""Names of new files that git's diff lists."""

DIFF_BYTES_PER_TOKEN = 4
"""A first guess; a diff that needs more tokens is cut again."""

FILE_TOOLS = frozenset({"read_file", "write_file", "edit_file", "insert_line", "patch_file"})
"""Tools that read or edit one file: their calls open the gate `recent-activity`."""

GIT_S = 5.0
"""How long a prompt waits for git."""

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{3,80}")


class ProjectCollector:
    """Collects for one prompt of one chat. `recent` are the newest turns; `known` are the file versions that the
    model has when all of the history is sent; `most` is the token limit of one file.
    """

    def __init__(
        self,
        store: Store,
        environment: ToolEnvironment,
        meter: TokenMeter,
        prompt: str,
        switches: GateSwitches,
        recent: Sequence[Turn],
        has_past: bool,
        known: Mapping[str, KnownVersion],
        texts: Mapping[str, str],
        most: int,
    ) -> None:
        self._store = store
        self._environment = environment
        self._meter = meter
        self._prompt = prompt
        self._switches = switches
        self._recent = recent
        self._has_past = has_past
        self._known = known
        self._texts = texts
        self._max_file_tokens = most
        self._diff_bases: dict[str, str] = {}
        self._needed_turns: set[str] = set()
        self._current_paths: set[str] = set()
        """Files whose newest version the model has with this request: their patches need not be sent."""
        self._secret = environment.chat.epoch
        self._rules = ReadRules((), "ask", None)

    async def run(self, workspace: Workspace) -> ProjectContext:
        self._rules = await self._environment.read_rules()
        opened, withheld = await anyio.to_thread.run_sync(self._read_files, workspace)
        patches = await self._patches(workspace)
        gates = decide_gates(self._prompt_context(opened, patches), self._switches)
        if gates.open_files == "recent-activity" and gates.off_topic:
            # Thanks, or a question that is unrelated to the project: the files would only cost tokens.
            gates = msgspec.structs.replace(gates, open_files=None)
        pinned, files = await self._file_candidates(opened, gates)
        # They are in the manifest, so that the user sees why an open file is not sent.
        files += [
            Candidate(_block_id(path), "openFiles", path, "", "denied", open=False) for path in withheld
        ]
        return ProjectContext(
            gates=gates,
            pinned=pinned,
            files=files,
            patch_summary=self._patch_summary(patches),
            diffs=await self._patch_diffs(patches, gates),
            git_diff=await self._git_diff(workspace, gates, patches),
            opened={_block_id(found.path): found for found in opened},
            diff_bases=self._diff_bases,
            needed_turns=frozenset(self._needed_turns),
        )

    def _read_files(self, workspace: Workspace) -> tuple[list[OpenedFile], list[str]]:
        """The open files, and the paths of those that may not be read."""
        opened, withheld = list[OpenedFile](), list[str]()
        for file in self._environment.files.display_order():
            try:
                shown = workspace.relative(file.path)
                if self._rules.skip_reason(shown, chosen=file.is_chosen):
                    withheld.append(shown)
                    continue
                data = workspace.read_bytes(
                    file.path, self._environment.settings.values.open_files.max_file_bytes
                )
                text = decode_text(data).plain
            except (Failure, NotText):
                continue  # it stays in the list with its state, and is not sent
            opened.append(OpenedFile(file, shown, text, digest(data), data))
        return opened, withheld

    async def _patches(self, workspace: Workspace) -> list[Patch]:
        entries = await self._store.patches.all(self._environment.chat.id)
        patches = [entry.patch for entry in entries if entry.visible and not entry.cleared]
        if not patches:
            return []
        newest = patches[-self._environment.settings.values.patches.max_entries :]
        statuses = partial(ledger.with_statuses, newest, partial(edits.hash_on_disk, workspace))
        return (await anyio.to_thread.run_sync(statuses))[::-1]

    def _prompt_context(self, opened: Sequence[OpenedFile], patches: Sequence[Patch]) -> PromptContext:
        items = [item for turn in self._recent[-RECENT_TURNS:] for item in turn.items if item.type == "tool"]
        last = [item for turn in self._recent[-1:] for item in turn.items if item.type == "tool"]
        patched = tuple(dict.fromkeys(patch.file_path for patch in patches))
        names: set[str] = set()
        patched_names: set[str] = set()
        for found in opened:
            new = _IDENTIFIER.findall(found.text)[: MAX_IDENTIFIERS - len(names)]
            names.update(new)
            patched_names.update(new if found.path in patched else ())
        return PromptContext(
            prompt=self._prompt,
            open_files=tuple(found.path for found in opened),
            pinned=frozenset(found.path for found in opened if found.file.pinned),
            identifiers=frozenset(names),
            patched=patched,
            patched_identifiers=frozenset(patched_names),
            last_turn_edited=any(item.changes for item in last),
            file_tool_in_last_3_turns=any(item.name in FILE_TOOLS for item in items),
            drifted=any(patch.status == "drifted" for patch in patches) or self._has_edited(opened, patches),
            last_command_failed=any(item.exit_code not in (None, 0) for item in last),
            has_outputs=self._has_past,
        )

    def _has_edited(self, opened: Sequence[OpenedFile], patches: Sequence[Patch]) -> bool:
        """Whether an open file has neither the version that the model knows nor one that a tool left."""
        left = {patch.after_hash for patch in patches}
        known = ((self._known.get(found.path), found.hash) for found in opened)
        return any(before and before.hash != now and now not in left for before, now in known)

    async def _file_candidates(
        self, opened: Sequence[OpenedFile], gates: Gates
    ) -> tuple[list[Candidate], list[Candidate]]:
        all_in = is_open(gates.open_files) and not gates.pinned_only
        pinned: list[Candidate] = []
        others: list[Candidate] = []
        for found in opened:
            is_kept = found.file.pinned and gates.open_files != "never"
            wanted = is_kept or all_in
            gate = "pinned" if is_kept else gates.open_files or "no-gate"
            candidate = await self._file_or_diff(found, gate, wanted)
            (pinned if found.file.pinned else others).append(candidate)
        listed = self._open_file_list(opened) if opened and not all_in else None
        return pinned, ([listed] if listed else []) + others

    async def _file_or_diff(self, found: OpenedFile, gate: str, wanted: bool) -> Candidate:
        """Nothing when the model has this version, a diff when it has another, otherwise the file."""
        if wanted:
            self._current_paths.add(found.path)
        id, before = _block_id(found.path), self._known.get(found.path)
        if before and wanted:
            text = "" if before.hash == found.hash else await self._changes_since(before, found)
            if text or before.hash == found.hash:
                self._needed_turns |= before.turns
            if text:
                self._diff_bases[id] = before.hash
                return Candidate(id, "openFiles", found.path, text, gate)
        if before and before.hash == found.hash:
            return Candidate(id, "openFiles", found.path, "", "in-history", open=False)
        return self._whole_file(found, gate, wanted)

    async def _changes_since(self, before: KnownVersion, found: OpenedFile) -> str:
        """The diff since the version that the model has; "" when sending the whole file is better."""
        try:
            _, old = await self._store.blobs.read(before.source or "", 0, edits.MAX_COMPARED_BYTES)
        except Refused:
            return ""
        made = await anyio.to_thread.run_sync(diffs.unified_diff, found.path, old, found.data)
        label = f"changes of file {found.path} since it was sent"
        text = fence_text(self._secret, f"changes:{found.path}", label, made.text)
        texts = [text, *(self._texts.get(ref, "") for ref in before.diffs)]

        def is_short() -> bool:
            whole = min(self._max_file_tokens, self._meter.count(found.text))
            return DIFF_COST_FACTOR * sum(map(self._meter.count, texts)) <= whole

        short = await anyio.to_thread.run_sync(is_short)
        return text if made.text and short else ""

    def _whole_file(self, found: OpenedFile, gate: str, wanted: bool) -> Candidate:
        id, label = _block_id(found.path), f"file {found.path}"
        text = fence_text(self._secret, id, label, found.text)

        def cut(_: str, space: int) -> str:
            overhead = self._meter.count(fence_text(self._secret, id, label, ""))
            part = excerpts.excerpt(
                found.text, self._prompt, space - overhead - 8, self._meter.count, path=found.path
            )
            return fence_text(self._secret, id, label, part) if part else ""

        return Candidate(id, "openFiles", found.path, text, gate, open=wanted, cut=cut)

    def _open_file_list(self, opened: Sequence[OpenedFile]) -> Candidate:
        text = "\n".join(found.path for found in opened)
        named = self._list_candidate("files", "openFiles", "open files", text, "list")
        return msgspec.structs.replace(named, is_summary=True)

    def _patch_summary(self, patches: Sequence[Patch]) -> Candidate | None:
        if not patches:
            return None
        lines = [
            f"{patch.file_path}: {patch.summary} ({patch.tool_name}, {patch.status})" for patch in patches
        ]
        return self._list_candidate(
            "patches", "patches", "changes by tools, newest first", "\n".join(lines), "ledger"
        )

    async def _patch_diffs(self, patches: Sequence[Patch], gates: Gates) -> list[Candidate]:
        asked_for = is_open(gates.patches)
        gate = gates.patches if asked_for else BUDGET_ALLOWS if gates.patches_if_space else None
        if gate is None or not patches:
            return []
        wanted = [patch for patch in patches if patch.status != "reverted"]
        if not asked_for:
            wanted = [patch for patch in wanted if patch.file_path not in self._current_paths]
        may_show = partial(self._readable_patches, wanted)
        wanted = await anyio.to_thread.run_sync(may_show)
        made = []
        for patch in wanted[:MAX_DIFFS]:
            text = await self._diff_of(patch)
            if text:
                made.append(
                    self._diff_candidate(
                        f"patch:{patch.id}", "patches", f"diff {patch.file_path}", text, gate
                    )
                )
        return made

    def _readable_patches(self, patches: Sequence[Patch]) -> list[Patch]:
        """The patches of readable files. The model made them: only rules count, not the names of secret files."""
        return [patch for patch in patches if not self._rules.skip_reason(patch.file_path, chosen=True)]

    async def _diff_of(self, patch: Patch) -> str:
        sides: list[bytes | None] = []
        for ref in (patch.old_ref, patch.new_ref):
            sides.append((await self._store.blobs.read(ref, 0, edits.MAX_COMPARED_BYTES))[1] if ref else None)
        found = await anyio.to_thread.run_sync(
            lambda: diffs.unified_diff(patch.file_path, sides[0], sides[1])
        )
        return found.text

    async def _git_diff(
        self, workspace: Workspace, gates: Gates, patches: Sequence[Patch]
    ) -> Candidate | None:
        gate = gates.git_diff or gates.git_diff_if_drifted
        if gate is None or not is_open(gate):
            return None
        try:
            with anyio.fail_after(GIT_S):
                found = await git.diff(workspace, left_out=self._rules.skip_reason)
                staged = await git.diff(workspace, staged=True, left_out=self._rules.skip_reason)
        except (Failure, TimeoutError):
            if gates.git_diff_if_drifted:
                return None
            return Candidate("gitDiff", "gitDiff", "git diff", "", UNAVAILABLE, open=False)
        if gates.git_diff_if_drifted and not _is_edited_outside((*found.files, *staged.files), patches):
            return None
        untracked = "".join(f"\nuntracked: {name}" for name in found.untracked[:MAX_UNTRACKED])
        hidden = len(found.untracked) - MAX_UNTRACKED
        untracked += f"\n… {counted(hidden, 'more untracked files')}" if hidden > 0 else ""
        head = "\n".join(part for part in (found.summary, staged.summary, untracked) if part.strip())
        skipped = excluded_summary(sorted({*found.left_out, *staged.left_out}))
        head = f"({skipped})\n{head}" if skipped else head
        diff = "\n".join(part for part in (found.text, staged.text) if part)
        label = f"git diff; {skipped}"[:MAX_LABEL] if skipped else "git diff"
        if not (head + diff).strip():
            return None
        made = self._diff_candidate("gitDiff", "gitDiff", label, diff, gate, f"{head}\n\n" if head else "")
        return msgspec.structs.replace(made, is_cut=found.truncated or staged.truncated or hidden > 0)

    def _diff_candidate(
        self, id: str, kind: str, label: str, diff: str, gate: str, head: str = ""
    ) -> Candidate:
        """A diff as a block: what is before it, then a share for each file, cut at hunk boundaries."""
        overhead = self._meter.count(fence_text(self._secret, id, label, "")) + 8

        def cut(_: str, space: int) -> str:
            left = space - overhead
            start = head
            if self._meter.count(head) > (most := int(left * HEAD_SHARE)):
                start = self._whole_lines(head, most)
            left = max(0, left - self._meter.count(start))
            for bytes_per_token in (DIFF_BYTES_PER_TOKEN, 2, 1):
                part, _was = diff_shares.clip_files(diff, left * bytes_per_token)
                made = fence_text(self._secret, id, label, start + part)
                if self._meter.count(made) <= space:
                    return made
            return ""

        return Candidate(id, kind, label, fence_text(self._secret, id, label, head + diff), gate, cut=cut)

    def _whole_lines(self, head: str, space: int) -> str:
        """The first lines that fit, and how many do not: the model must know that there are more files."""
        kept = self._meter.cut(head, space).rpartition("\n")[0]
        hidden = len(head.strip().splitlines()) - len(kept.splitlines())
        return f"{kept}\n… {counted(hidden, 'more lines')}\n"

    def _list_candidate(self, id: str, kind: str, label: str, text: str, gate: str) -> Candidate:
        """A list as a block. It is fenced too: file names are untrusted text."""

        def cut(_: str, space: int) -> str:
            overhead = self._meter.count(fence_text(self._secret, id, label, "")) + 8
            return fence_text(self._secret, id, label, self._meter.cut(text, space - overhead) + "\n…")

        return Candidate(id, kind, label, fence_text(self._secret, id, label, text), gate, cut=cut)


def _is_edited_outside(changed: Sequence[git.FileDiff], patches: Sequence[Patch]) -> bool:
    """Whether git knows of a changed file that is not as a tool left it."""
    by_tools = {patch.file_path for patch in patches if patch.status == "applied"}
    return any(file.path not in by_tools for file in changed)


def _block_id(path: str) -> str:
    return f"file:{path}"
