"""The tree of a chat: going back in it, forward again, and growing another chat from it.

Nothing is erased: the head moves, turns leave the view or come back, and open files and ledger follow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from ..model.content import Turn
from ..model.events import NewEvent
from ..model.failures import Refused, invalid
from ..store.turns import Node, unknown_turn
from ..store.work import Checkpoint
from ..workspace import ledger
from . import facts, restoring
from .chats import Chats, Opened
from .history_import import Imported, to_events
from .identity import Address
from .library import kept_anew
from .restoring import FileChange
from .session import Session

MAX_NAME = 80
"""Characters of a checkpoint's name: a line in a list."""


class Rewound(msgspec.Struct, frozen=True):
    """Where the head is, which turns left the view or came back, and what became of files."""

    head: str | None
    hidden: list[str]
    shown: list[str]
    files: list[FileChange]
    seq: int | None = None


class _Move(msgspec.Struct, frozen=True):
    head: str | None
    hidden: list[str]
    shown: list[str]
    files_at: int
    """The place in the journal whose open files the branch has."""


async def rewind(
    session: Session, *, before: str | None, to: str | None, restore: bool, dry_run: bool
) -> Rewound:
    """Move the head before a visible turn, or to any turn of the tree."""
    if (before is None) == (to is None):
        raise invalid("before", "exactly one of `before` and `to`")

    def find(tree: Sequence[Node]) -> _Move:
        return _before(tree, before) if before is not None else _to(tree, to or "")

    return await _move(session, find, restore, dry_run)


async def save(session: Session, name: str) -> Checkpoint:
    """Remember this place of the chat under a name; a name that is used again moves."""
    wanted = _name(name)

    async def make() -> tuple[str | None, list[NewEvent]]:
        if session.turn:
            raise facts.busy()
        head = session.chat.head
        return head, [NewEvent("checkpoint.saved", {"name": wanted, "head": head})]

    _, seq = await session.apply(make)
    saved = await session.store.checkpoints(session.chat.id)
    return next(checkpoint for checkpoint in saved if checkpoint.seq == seq)


async def load(session: Session, name: str, *, restore: bool) -> Rewound:
    """Go back to a place that was saved: its turns, its open files, its ledger."""
    saved = {checkpoint.name: checkpoint for checkpoint in await session.store.checkpoints(session.chat.id)}
    found = saved.get(name)
    if found is None:
        known = ", ".join(saved) or "there is none yet"
        raise Refused("not_found", f"No checkpoint {name[:80]!r}; saved: {known}", params={"name": name[:80]})

    def find(tree: Sequence[Node]) -> _Move:
        move = _to(tree, found.head) if found.head else _to_start(tree)
        return msgspec.structs.replace(move, files_at=found.seq)

    return await _move(session, find, restore, dry_run=False)


async def fork(chats: Chats, address: Address, new_chat_id: str, at: str | None) -> Opened:
    """Make another chat of this one's turns up to `at`, with the open files and ledger that belong to them."""
    source = await chats.known(address)
    chat, turns = await chats.store.all_turns(source.chat.id)
    path = _path_turns(turns, at or _last_ended(turns))
    wanted = {turn.id for turn in path}
    entries = await chats.store.patches(chat.id)
    end = next(node.last_seq for node in await chats.store.tree(chat.id) if node.id == path[-1].id)
    imported = Imported(
        turns_read=[msgspec.structs.replace(turn, siblings=[], hidden=False) for turn in path],
        title=chat.title,
        title_by=chat.title_by,
        patches=[entry.patch for entry in entries if entry.patch.turn_id in wanted],
        cleared={entry.patch.id for entry in entries if entry.cleared},
        open_files=await chats.store.open_files_at(chat.id, end or chat.last_seq),
    )
    blank = msgspec.structs.replace(chat, head=None, title=None, config={}, open_files=[])
    namespace = address.namespace or chat.key.namespace
    key = chats.key(Address(new_chat_id, None, namespace, None))
    assert not isinstance(key, str)
    events = to_events(imported, blank, renumber=False)
    await chats.store.create_with(key, chat.project_path, chat.config, events)
    opened = await chats.open(Address(None, None, None, key.session_id), create=False)
    opened.session.beside(kept_anew, opened.session.desk, path)
    return msgspec.structs.replace(opened, created=True)


async def _move(
    session: Session, find: Callable[[Sequence[Node]], _Move], restore: bool, dry_run: bool
) -> Rewound:
    async def make() -> tuple[Rewound, list[NewEvent]]:
        if session.turn:
            raise facts.busy()
        tree = await session.store.tree(session.chat.id)
        if any(node.status == "running" for node in tree):
            raise facts.busy()
        move = find(tree)
        files = await _files(session, tree, move, dry_run) if restore else []
        rewound = Rewound(move.head, move.hidden, move.shown, files)
        if dry_run or not (move.hidden or move.shown):
            return rewound, []
        data = {"head": move.head, "hidden": move.hidden, "shown": move.shown}
        view = await session.store.open_files_at(session.chat.id, move.files_at)
        return rewound, [NewEvent("files.updated", {"files": view}), NewEvent("chat.rewound", data)]

    rewound, seq = await session.apply(make)
    if dry_run:
        return rewound
    return msgspec.structs.replace(rewound, seq=seq)


async def _files(session: Session, tree: Sequence[Node], move: _Move, dry_run: bool) -> list[FileChange]:
    """Put the files that the branches differ in as the other branch has them."""
    visible_now = {node.id for node in tree if not node.hidden}
    visible_then = (visible_now - set(move.hidden)) | set(move.shown)
    patches = [entry.patch for entry in await session.store.patches(session.chat.id)]

    def plan(hash_on_disk: ledger.HashOnDisk) -> ledger.Plan:
        return ledger.plan_branch(patches, visible_now, visible_then, hash_on_disk)

    return await restoring.carry_out(session, plan, dry_run)


def _before(tree: Sequence[Node], turn: str) -> _Move:
    visible = [node for node in tree if not node.hidden]
    place = next((place for place, node in enumerate(visible) if node.id == turn), None)
    if place is None:
        raise unknown_turn(turn)
    head = visible[place - 1].id if place else None
    hidden = [node.id for node in visible[place:]]
    return _Move(head, hidden, [], visible[place].first_seq - 1)


def _to(tree: Sequence[Node], turn: str) -> _Move:
    nodes = {node.id: node for node in tree}
    if turn not in nodes:
        raise unknown_turn(turn)
    path: list[str] = []
    step: str | None = turn
    while step is not None and step in nodes:
        path.append(step)
        step = nodes[step].parent
    visible = [node.id for node in tree if not node.hidden]
    hidden = [id for id in visible if id not in set(path)]
    shown = [id for id in reversed(path) if nodes[id].hidden]
    return _Move(turn, hidden, shown, nodes[turn].last_seq or 0)


def _to_start(tree: Sequence[Node]) -> _Move:
    return _Move(None, [node.id for node in tree if not node.hidden], [], 0)


def _path_turns(turns: Sequence[Turn], at: str | None) -> list[Turn]:
    by_id = {turn.id: turn for turn in turns}
    if at is None or at not in by_id:
        if at is None:
            raise Refused("precondition_failed", "This chat has no ended turn to fork at")
        raise unknown_turn(at)
    if by_id[at].status == "running":
        raise Refused(
            "precondition_failed", "`at`: the turn has not ended yet", params={"field": "at.turnId"}
        )
    path: list[Turn] = []
    step: str | None = at
    while step is not None and step in by_id:
        path.append(by_id[step])
        step = by_id[step].parent_turn_id
    return path[::-1]


def _last_ended(turns: Sequence[Turn]) -> str | None:
    ended = [turn.id for turn in turns if not turn.hidden and turn.status != "running"]
    return ended[-1] if ended else None


def _name(name: str) -> str:
    if not 1 <= len(name.strip()) <= MAX_NAME or not name.isprintable():
        raise invalid("name", f"1 to {MAX_NAME} characters")
    return name.strip()
