"""The tree of a chat's turns: rewind, and go forward again.

Nothing is erased: the head moves, turns are hidden or shown again, and open files and the ledger follow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from ...model.events import NewEvent
from ...model.failures import Refused, invalid_param
from ...store.tables.turns import TurnNode, unknown_turn
from ...store.tables.work import Checkpoint
from ...system.clock import now
from ...workspace import ledger
from ..journal import event_factory
from ..sessions.session import Session
from . import revert_plan
from .revert_plan import RevertedFile

MAX_NAME = 80
"""Characters of a checkpoint's name: a line in a list."""


class RewindResult(msgspec.Struct, frozen=True):
    """Where the head is, which turns were hidden or shown again, and what happened to files."""

    head: str | None
    hidden: list[str]
    shown: list[str]
    files: list[RevertedFile]
    seq: int | None = None


class _HeadMove(msgspec.Struct, frozen=True):
    head: str | None
    hidden: list[str]
    shown: list[str]
    files_seq: int
    """The seq in the journal whose open files the branch has."""


async def rewind(
    session: Session, *, before: str | None, to: str | None, restore: bool, dry_run: bool
) -> RewindResult:
    """Move the head before a visible turn, or to any turn of the tree."""
    if (before is None) == (to is None):
        raise invalid_param("before", "exactly one of `before` and `to`")

    def find(tree: Sequence[TurnNode]) -> _HeadMove:
        return _move_before(tree, before) if before is not None else _move_to(tree, to or "")

    return await _move_head(session, find, restore, dry_run)


async def save_checkpoint(session: Session, name: str) -> Checkpoint:
    """Save the current position of the chat under a name; an existing name is moved."""
    wanted = _checked_name(name)

    async def make() -> tuple[str | None, list[NewEvent]]:
        if session.turn:
            raise event_factory.turn_in_progress()
        head = session.chat.head
        return head, [NewEvent("checkpoint.saved", {"name": wanted, "head": head})]

    head, seq = await session.apply(make)
    saved = await session.store.patches.checkpoints(session.chat.id)
    # Another process may have moved the name since; what this call has saved is its answer all the same.
    return next((found for found in saved if found.seq == seq), Checkpoint(wanted, head, seq, now()))


async def load_checkpoint(session: Session, name: str, *, restore: bool) -> RewindResult:
    """Go back to a saved checkpoint: its turns, its open files, its ledger."""
    saved = {
        checkpoint.name: checkpoint for checkpoint in await session.store.patches.checkpoints(session.chat.id)
    }
    found = saved.get(name)
    if found is None:
        known_names = ", ".join(saved) or "there is none yet"
        raise Refused(
            "not_found", f"No checkpoint {name[:80]!r}; saved: {known_names}", params={"name": name[:80]}
        )

    def find(tree: Sequence[TurnNode]) -> _HeadMove:
        move = _move_to(tree, found.head) if found.head else _move_to_start(tree)
        return msgspec.structs.replace(move, files_seq=found.seq)

    return await _move_head(session, find, restore, dry_run=False)


async def _move_head(
    session: Session, find: Callable[[Sequence[TurnNode]], _HeadMove], restore: bool, dry_run: bool
) -> RewindResult:
    async def make() -> tuple[RewindResult, list[NewEvent]]:
        if session.turn:
            raise event_factory.turn_in_progress()
        tree = await session.store.turns.tree(session.chat.id)
        if any(node.status == "running" for node in tree):
            raise event_factory.turn_in_progress()
        move = find(tree)
        files = await _restore_files(session, tree, move, dry_run) if restore else []
        rewound = RewindResult(move.head, move.hidden, move.shown, files)
        if dry_run or not (move.hidden or move.shown):
            return rewound, []
        # Files and head in one commit: a crash between them would leave the open files of the other branch.
        data = {"head": move.head, "hidden": move.hidden, "shown": move.shown}
        view = await session.store.patches.open_files_at(session.chat.id, move.files_seq)
        return rewound, [NewEvent("files.updated", {"files": view}), NewEvent("chat.rewound", data)]

    rewound, seq = await session.apply(make)
    if dry_run:
        return rewound
    return msgspec.structs.replace(rewound, seq=seq)


async def _restore_files(
    session: Session, tree: Sequence[TurnNode], move: _HeadMove, dry_run: bool
) -> list[RevertedFile]:
    """Restore the files in which the branches differ, as the other branch has them. If the head is there
    already, those that an earlier move left as they were."""
    visible_now = {node.id for node in tree if not node.hidden}
    visible_then = (visible_now - set(move.hidden)) | set(move.shown)
    patches = [entry.patch for entry in await session.store.patches.all(session.chat.id)]

    def plan(hash_on_disk: ledger.HashOnDisk) -> ledger.RestorePlan:
        if visible_now == visible_then:
            parents = {node.id: node.parent for node in tree}
            return ledger.plan_rest_of_move(patches, visible_now, parents, hash_on_disk)
        return ledger.plan_branch(patches, visible_now, visible_then, hash_on_disk)

    return await revert_plan.restore_files(session, plan, dry_run)


def _move_before(tree: Sequence[TurnNode], turn: str) -> _HeadMove:
    visible = [node for node in tree if not node.hidden]
    place = next((place for place, node in enumerate(visible) if node.id == turn), None)
    if place is None:
        raise unknown_turn(turn)
    head = visible[place - 1].id if place else None
    hidden = [node.id for node in visible[place:]]
    return _HeadMove(head, hidden, [], visible[place].first_seq - 1)


def _move_to(tree: Sequence[TurnNode], turn: str) -> _HeadMove:
    nodes = {node.id: node for node in tree}
    if turn not in nodes:
        raise unknown_turn(turn)
    path: list[str] = []
    step: str | None = turn
    while step is not None and step in nodes:
        path.append(step)
        step = nodes[step].parent
    on_path = set(path)
    hidden = [node.id for node in tree if not node.hidden and node.id not in on_path]
    shown = [id for id in reversed(path) if nodes[id].hidden]
    return _HeadMove(turn, hidden, shown, nodes[turn].last_seq or 0)


def _move_to_start(tree: Sequence[TurnNode]) -> _HeadMove:
    return _HeadMove(None, [node.id for node in tree if not node.hidden], [], 0)


def _checked_name(name: str) -> str:
    if not 1 <= len(name.strip()) <= MAX_NAME or not name.isprintable():
        raise invalid_param("name", f"1 to {MAX_NAME} characters")
    return name.strip()
