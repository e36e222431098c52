"""Adds to a chat what its source has more than it. A turn that went on there goes on here in a turn of its own, as
history is never rewritten; what the user has added here stays the visible branch.
"""

from __future__ import annotations

from collections.abc import Iterator

import anyio.to_thread
import msgspec

from ...foreign.base import Attachment, ForeignChat
from ...model import JsonObject
from ...model.content import Item, Turn
from ...model.events import NewEvent
from ...model.files import Patch
from ...store.engine.slices import Pace
from ...store.imports import KnownTurns
from ..journal.running_turn import new_id
from ..sessions.session import Session
from .history_import import TurnEvents
from .import_slices import LEAST_EVENTS, MOST_EVENTS, take_slice


class Growth(msgspec.Struct):
    """What a chat lacks. `own` are the turns that come from the source; `head` is the newest of its branch."""

    turns: list[Turn]
    patches: list[Patch]
    blobs: list[Attachment]
    own: set[str]
    visible: list[str]
    head: str | None
    file: str = ""
    source: JsonObject = {}


def growth(chat: ForeignChat, known: KnownTurns) -> Growth:
    """The turns, patches and blobs of the source that the chat does not have."""
    turns: list[Turn] = []
    tails: dict[str, str] = {}
    own: set[str] = set()
    for turn in chat.turns:
        parts = _parts(turn.id, known)
        parent = tails.get(turn.parent_turn_id or "", turn.parent_turn_id)
        own |= {turn.id, *parts}
        if not parts:
            turns.append(msgspec.structs.replace(turn, parent_turn_id=parent))
            continue
        tails[turn.id] = parts[-1]
        items = {id: status for part in parts for id, status in known.items[part].items()}
        if missing := _missing(turn, items):
            more = _continuation(turn, missing, f"{turn.id}+{len(parts)}", parts[-1])
            turns.append(more)
            tails[turn.id] = more.id
            own.add(more.id)
    patches = [patch for patch in chat.patches if patch.id not in known.patches]
    head = tails.get(chat.head or "", chat.head)
    return Growth(turns, patches, list(chat.blobs.values()), own, known.visible, head)


async def append(session: Session, grown: Growth) -> None:
    """Commit the growth in slices; all of it is undone when it does not reach its end."""
    for blob in grown.blobs:
        await session.store.blobs.put(blob.data, blob.mime_type, blob.name)
    pace = Pace(LEAST_EVENTS, MOST_EVENTS)
    begun = NewEvent("import.started", {"importId": new_id("im"), "created": False, "source": grown.source})
    events: Iterator[NewEvent] | None = None

    async def next_slice() -> list[NewEvent] | None:
        nonlocal events
        await pace.rest()
        if events is None:
            events = _events(session, grown)
        slice = await anyio.to_thread.run_sync(take_slice, events, pace.most)
        pace.begin()
        return slice or None

    def end() -> NewEvent:
        return NewEvent("import.ended", {"importId": begun.data["importId"], "outcome": "completed"})

    await session.append_slices(begun, next_slice, end)


def _events(session: Session, grown: Growth) -> Iterator[NewEvent]:
    head = session.chat.head
    made = TurnEvents(session.chat, renumber=False, visible=grown.visible)
    added: list[str] = []
    for turn in grown.turns:
        yield from made.of(turn)
        added.append(turn.id)
    for patch in grown.patches:
        yield NewEvent("patch.recorded", patch, ts=patch.ts)
    if head is None or head in grown.own:
        yield from made.move(grown.head)
    elif added:
        # The user has gone on here: what came from there is a branch beside it.
        shown = [id for id in grown.visible if id not in made.visible]
        hidden = [id for id in made.visible if id not in grown.visible]
        yield NewEvent("chat.rewound", {"head": head, "hidden": hidden, "shown": shown})


def _parts(id: str, known: KnownTurns) -> list[str]:
    """The turns here that hold a turn of the source: it and those that went on with it."""
    if id not in known.items:
        return []
    parts = [id]
    while (following := f"{id}+{len(parts)}") in known.items:
        parts.append(following)
    return parts


def _missing(turn: Turn, items: dict[str, str]) -> list[Item]:
    """The items that are new, and calls that have ended since."""
    found: list[Item] = []
    for item in turn.items:
        status = items.get(item.id)
        if status is None:
            found.append(item)
        elif status == "interrupted" and item.status != "interrupted" and f"{item.id}+" not in items:
            found.append(msgspec.structs.replace(item, id=f"{item.id}+"))
    return found


def _continuation(turn: Turn, items: list[Item], id: str, parent: str) -> Turn:
    return msgspec.structs.replace(
        turn,
        id=id,
        prompt_id=f"p-{id[2:]}",
        items=[msgspec.structs.replace(item, turn_id=id) for item in items],
        parent_turn_id=parent,
        started_at=items[0].started_at,
        usage=None,
    )
