"""A chat's files, patches and blobs in memory, to carry out plans on, and what to fill them with."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

import msgspec
from hypothesis import strategies as st

from sidecar.model.files import Patch, PatchStatus
from sidecar.workspace import ledger
from sidecar.workspace.ledger import Conflict, RestorePlan

Files = dict[str, bytes]

PATHS = ["f", "src/a b.txt", "src/é.py"]
LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\r\n", b"-- d\n", b"e"]), max_size=8)
CONTENTS = st.none() | LINES.map(b"".join) | st.sampled_from([b"\0\1", b"\xff\xfe\n", b"\xef\xbb\xbfx\n"])
EDITS = st.lists(st.tuples(st.sampled_from(PATHS), CONTENTS), max_size=8)
TREES = st.dictionaries(st.sampled_from(PATHS), CONTENTS.filter(lambda data: data is not None), max_size=3)


def digest(data: bytes | None) -> str | None:
    return None if data is None else sha256(data).hexdigest()


class Desk:
    """A chat's files, its patches, and the blobs that are kept of them."""

    def __init__(self, files: Files | None = None) -> None:
        self.files: Files = dict(files or {})
        self.blobs: Files = {}
        self.patches: list[Patch] = []

    def hash_on_disk(self, path: str) -> str | None:
        return digest(self.files.get(path))

    def keep(self, data: bytes | None) -> str | None:
        ref = digest(data)
        if ref is not None and data is not None:
            self.blobs[ref] = data
        return ref

    def put(self, path: str, data: bytes | None) -> None:
        """What a person does: nothing is kept of it."""
        if data is None:
            self.files.pop(path, None)
        else:
            self.files[path] = data

    def edit(self, path: str, data: bytes | None, turn: str = "t1", mode: int | None = None) -> Patch:
        """What a tool does. An edit that changes nothing leaves no patch in a chat; here it would be of no use."""
        before = self.files.get(path)
        assert before != data
        change = ledger.make_change(path, before, data, self.keep(before), self.keep(data))
        patch = ledger.make_patch(
            change,
            id=f"p{len(self.patches) + 1}",
            turn_id=turn,
            item_id=None,
            tool_name="edit_file",
            ts=len(self.patches),
            mode=mode,
        )
        self.patches.append(patch)
        self.put(path, data)
        return patch

    def carry_out(self, plan: RestorePlan, status: PatchStatus) -> None:
        for step in plan.restores:
            assert self.hash_on_disk(step.path) == step.expected
            assert step.expected is None or step.expected in self.blobs, (
                "bytes that nobody keeps are overwritten"
            )
            assert step.ref == step.target
            self.put(step.path, None if step.ref is None else self.blobs[step.ref])
            self.patches = [
                msgspec.structs.replace(patch, status=status) if patch.id in step.patches else patch
                for patch in self.patches
            ]

    def shown(self) -> list[Patch]:
        return self.patches

    def revert(self, *chosen: Patch) -> tuple[Conflict, ...]:
        plan = ledger.plan_revert(self.shown(), chosen, self.hash_on_disk)
        self.carry_out(plan, "reverted")
        return plan.conflicts

    def apply(self, *chosen: Patch) -> tuple[Conflict, ...]:
        plan = ledger.plan_apply(self.shown(), chosen, self.hash_on_disk)
        self.carry_out(plan, "applied")
        return plan.conflicts

    def branch(self, now: set[str], then: set[str]) -> tuple[Conflict, ...]:
        plan = ledger.plan_branch(self.patches, now, then, self.hash_on_disk)
        before = self.patches
        self.carry_out(plan, "applied")
        assert self.patches == before, "a branch changes no status"
        return plan.conflicts

    def statuses(self) -> list[PatchStatus]:
        return [patch.status for patch in ledger.with_statuses(self.patches, self.hash_on_disk)]

    def read(self, ref: str) -> bytes:
        return self.blobs[ref]


class Chat(Desk):
    """A ledger with turns that branch: `head` is the newest visible turn, "" before the first."""

    def __init__(self, files: Files | None = None) -> None:
        super().__init__(files)
        self.parents: dict[str, str] = {}
        self.head = ""

    def shown(self) -> list[Patch]:
        visible = self.visible(self.head)
        return [patch for patch in self.patches if patch.turn_id in visible]

    def visible(self, head: str) -> set[str]:
        return {head} | self.visible(self.parents[head]) if head else set()

    def turn(self, *edits: tuple[str, bytes | None]) -> str:
        turn = f"t{len(self.parents) + 1}"
        self.parents[turn] = self.head
        self.head = turn
        edited(self, edits, turn)
        return turn

    def go(self, head: str) -> tuple[Conflict, ...]:
        conflicts = self.branch(self.visible(self.head), self.visible(head))
        self.head = head
        return conflicts


def edited(environment: Desk, edits: Sequence[tuple[str, bytes | None]], turn: str = "t1") -> None:
    for path, data in edits:
        if environment.files.get(path) != data:
            environment.edit(path, data, turn)
