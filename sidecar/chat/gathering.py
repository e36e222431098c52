"""What could be sent with a prompt beside the chat itself: open files, patches, git's diff. Reads, and decides nothing.

The gates say what is worth reading at all; the assembly says what is sent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial

import anyio
import anyio.to_thread
import msgspec

from ..context.assembly import BUDGET_ALLOWS
from ..context.fences import fenced
from ..context.gates import Gates, Scene, Switches, decide, opens
from ..context.materials import Material
from ..model.content import Turn
from ..model.failures import Failure, Refused
from ..model.files import Patch
from ..store.store import Store
from ..workspace import diff as diffs
from ..workspace import git
from ..workspace.paths import Workspace
from ..workspace.text import NotText, decoded
from ..workspace.writing import digest
from . import edits
from .copies import MOST_DIFFS, Copy
from .desk import Desk
from .gathered import RECENT_TURNS, Gathered, Opened
from .measuring import Measure

MAX_IDENTIFIERS = 20_000
"""Of all open files together: enough for 35 files, and a set of a few megabytes."""

MAX_DIFFS = 20
GIT_S = 5.0
"""A prompt does not wait longer for git."""

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{3,80}")
_FILE_TOOLS = frozenset({"read_file", "write_file", "edit_file", "insert_line", "patch_file"})


class Gatherer:
    """For one prompt of one chat. `recent` are the newest turns; `known` is what the model has of files when all that
    could be sent of the history is sent; `most` are the tokens of one file."""

    def __init__(
        self,
        store: Store,
        desk: Desk,
        measure: Measure,
        prompt: str,
        switches: Switches,
        recent: Sequence[Turn],
        has_past: bool,
        known: Mapping[str, Copy],
        texts: Mapping[str, str],
        most: int,
    ) -> None:
        self._store = store
        self._desk = desk
        self._measure = measure
        self._prompt = prompt
        self._switches = switches
        self._recent = recent
        self._has_past = has_past
        self._known = known
        self._texts = texts
        self._most = most
        self._bases: dict[str, str] = {}
        self._relies_on: set[str] = set()
        self._in_view: set[str] = set()
        """Files whose newest version the model has when this is sent: what was changed in them needs no telling."""
        self._secret = desk.chat.epoch

    async def run(self, workspace: Workspace) -> Gathered:
        opened = await anyio.to_thread.run_sync(self._read, workspace)
        patches = await self._patches(workspace)
        gates = decide(self._scene(opened, patches), self._switches)
        if gates.open_files == "recent-activity" and gates.aside:
            # Thanks, or a question that has nothing to do with the project: the files would only cost.
            gates = msgspec.structs.replace(gates, open_files=None)
        pinned, files = await self._file_materials(opened, gates)
        return Gathered(
            gates=gates,
            pinned=pinned,
            files=files,
            patch_summary=self._patch_summary(patches),
            diffs=await self._diffs(patches, gates),
            git_diff=await self._git(workspace, gates),
            opened={_id(found.path): found for found in opened},
            bases=self._bases,
            relies_on=frozenset(self._relies_on),
        )

    def _read(self, workspace: Workspace) -> list[Opened]:
        opened = []
        for file in self._desk.files.listed():
            try:
                data = workspace.read_bytes(file.path, self._desk.settings.max_file_bytes)
                text = decoded(data).plain
            except (Failure, NotText):
                continue  # it stays listed with its state, and is not sent
            opened.append(Opened(file, workspace.relative(file.path), text, digest(data), data))
        return opened

    async def _patches(self, workspace: Workspace) -> list[Patch]:
        entries = await self._store.patches(self._desk.chat.id)
        patches = [entry.patch for entry in entries if entry.visible and not entry.cleared]
        if not patches:
            return []
        from ..workspace import ledger

        newest = patches[-self._desk.settings.max_patches :]
        statuses = partial(ledger.with_statuses, newest, partial(edits.hash_on_disk, workspace))
        return (await anyio.to_thread.run_sync(statuses))[::-1]

    def _scene(self, opened: Sequence[Opened], patches: Sequence[Patch]) -> Scene:
        items = [item for turn in self._recent[-RECENT_TURNS:] for item in turn.items if item.type == "tool"]
        last = [item for turn in self._recent[-1:] for item in turn.items if item.type == "tool"]
        names: set[str] = set()
        for found in opened:
            names.update(_IDENTIFIER.findall(found.text)[: MAX_IDENTIFIERS - len(names)])
        return Scene(
            prompt=self._prompt,
            open_files=tuple(found.path for found in opened),
            pinned=frozenset(found.path for found in opened if found.file.pinned),
            identifiers=frozenset(names),
            patched=tuple(dict.fromkeys(patch.file_path for patch in patches)),
            last_turn_edited=any(item.changes for item in last),
            file_tool_in_last_3_turns=any(item.name in _FILE_TOOLS for item in items),
            drifted=any(patch.status == "drifted" for patch in patches),
            last_command_failed=any(item.exit_code not in (None, 0) for item in last),
            has_outputs=self._has_past,
        )

    async def _file_materials(
        self, opened: Sequence[Opened], gates: Gates
    ) -> tuple[list[Material], list[Material]]:
        all_in = opens(gates.open_files) and not gates.pinned_only
        pinned: list[Material] = []
        others: list[Material] = []
        for found in opened:
            wanted = found.file.pinned or all_in
            gate = "pinned" if found.file.pinned else gates.open_files or "no-gate"
            material = await self._file(found, gate, wanted)
            (pinned if found.file.pinned else others).append(material)
        listed = self._list(opened) if opened and not all_in else None
        return pinned, ([listed] if listed else []) + others

    async def _file(self, found: Opened, gate: str, wanted: bool) -> Material:
        """Nothing when the model has this version, a diff when it has another, else the file."""
        if wanted:
            self._in_view.add(found.path)
        id, before = _id(found.path), self._known.get(found.path)
        if before and wanted:
            text = "" if before.hash == found.hash else await self._since(before, found)
            if text or before.hash == found.hash:
                self._relies_on |= before.turns
            if text:
                self._bases[id] = before.hash
                return Material(id, "openFiles", found.path, text, gate)
        if before and before.hash == found.hash:
            return Material(id, "openFiles", found.path, "", "in-history", open=False)
        return self._whole(found, gate, wanted)

    async def _since(self, before: Copy, found: Opened) -> str:
        """What has changed since the version that the model has; "" when the whole file is better."""
        try:
            _, old = await self._store.read_blob(before.source or "", 0, edits.MAX_LOOKED_BYTES)
        except Refused:
            return ""
        made = await anyio.to_thread.run_sync(diffs.unified, found.path, old, found.data)
        label = f"changes of file {found.path} since it was sent"
        text = fenced(self._secret, f"changes:{found.path}", label, made.text)
        told = [text, *(self._texts.get(ref, "") for ref in before.diffs)]
        whole = min(self._most, self._measure.count(found.text))
        is_short = MOST_DIFFS * sum(map(self._measure.count, told)) <= whole
        return text if made.text and is_short else ""

    def _whole(self, found: Opened, gate: str, wanted: bool) -> Material:
        id, label = _id(found.path), f"file {found.path}"
        text = fenced(self._secret, id, label, found.text)

        def cut(_: str, room: int) -> str:
            from ..context.excerpts import excerpt

            overhead = self._measure.count(fenced(self._secret, id, label, ""))
            part = excerpt(
                found.text, self._prompt, room - overhead - 8, self._measure.count, path=found.path
            )
            return fenced(self._secret, id, label, part) if part else ""

        return Material(id, "openFiles", found.path, text, gate, open=wanted, cut=cut)

    def _list(self, opened: Sequence[Opened]) -> Material:
        text = "\n".join(found.path for found in opened)
        return self._listing("files", "openFiles", "open files", text, "list")

    def _patch_summary(self, patches: Sequence[Patch]) -> Material | None:
        if not patches:
            return None
        lines = [
            f"{patch.file_path}: {patch.summary} ({patch.tool_name}, {patch.status})" for patch in patches
        ]
        return self._listing(
            "patches", "patches", "changes by tools, newest first", "\n".join(lines), "ledger"
        )

    async def _diffs(self, patches: Sequence[Patch], gates: Gates) -> list[Material]:
        asked_for = opens(gates.patches)
        gate = gates.patches if asked_for else BUDGET_ALLOWS if gates.patches_if_room else None
        if gate is None or not patches:
            return []
        wanted = [patch for patch in patches if patch.status != "reverted"]
        if not asked_for:
            wanted = [patch for patch in wanted if patch.file_path not in self._in_view]
        made = []
        for patch in wanted[:MAX_DIFFS]:
            text = await self._diff_of(patch)
            if text:
                made.append(
                    self._material(f"patch:{patch.id}", "patches", f"diff {patch.file_path}", text, gate)
                )
        return made

    async def _diff_of(self, patch: Patch) -> str:
        sides: list[bytes | None] = []
        for ref in (patch.old_ref, patch.new_ref):
            sides.append((await self._store.read_blob(ref, 0, edits.MAX_LOOKED_BYTES))[1] if ref else None)
        found = await anyio.to_thread.run_sync(lambda: diffs.unified(patch.file_path, sides[0], sides[1]))
        return found.text

    async def _git(self, workspace: Workspace, gates: Gates) -> Material | None:
        if not opens(gates.git_diff):
            return None
        gate = gates.git_diff or ""
        try:
            with anyio.fail_after(GIT_S):
                found = await git.diff(workspace)
                staged = await git.diff(workspace, staged=True)
        except (Failure, TimeoutError):
            return Material("gitDiff", "gitDiff", "git diff", "", "unavailable", open=False)
        untracked = "".join(f"\nuntracked: {name}" for name in found.untracked[:50])
        text = "\n".join(part for part in (found.summary, staged.summary, untracked) if part.strip())
        if gates.git_diff_wanted == "diff" or found.text or staged.text:
            text += f"\n\n{found.text}\n{staged.text}"
        return self._material("gitDiff", "gitDiff", "git diff", text, gate) if text.strip() else None

    def _material(self, id: str, kind: str, label: str, text: str, gate: str) -> Material:
        """A diff as a block that is cut by hunks."""
        overhead = self._measure.count(fenced(self._secret, id, label, ""))

        def cut(_: str, room: int) -> str:
            part, _was = diffs.clipped(text, max(0, (room - overhead - 8) * 2))
            made = fenced(self._secret, id, label, part)
            return made if self._measure.count(made) <= room else ""

        return Material(id, kind, label, fenced(self._secret, id, label, text), gate, cut=cut)

    def _listing(self, id: str, kind: str, label: str, text: str, gate: str) -> Material:
        """A list as a block: names of files are others' text, too."""

        def cut(_: str, room: int) -> str:
            overhead = self._measure.count(fenced(self._secret, id, label, "")) + 8
            return fenced(self._secret, id, label, self._measure.cut(text, room - overhead) + "\n…")

        return Material(id, kind, label, fenced(self._secret, id, label, text), gate, cut=cut)


def _id(path: str) -> str:
    return f"file:{path}"
