"""Appending to a chat's journal within a transaction: the events, and all that they add up to."""

from __future__ import annotations

from collections.abc import Sequence

from ..model.events import NewEvent, StoredEvent
from ..model.failures import Failure, Refused
from . import journal
from .projections import Projection
from .sqlite import Connection


class Stale(Failure):
    """Another process has written to the chat since this one last looked."""

    def __init__(self) -> None:
        super().__init__("locked", "The chat was changed by another process", retryable=True)


def append(
    db: Connection, chat: int, last_seq: int, events: Sequence[NewEvent], now: int
) -> list[StoredEvent]:
    """Number and keep the events behind `last_seq`, and change what is derived from them."""
    row = db.execute("SELECT last_seq, deleted FROM chats WHERE id = ?", (chat,)).fetchone()
    if row is None or row[1]:
        raise Refused("deleted", "This chat was deleted; chat/open makes it again")
    if row[0] != last_seq:
        raise Stale()
    stored = journal.number(events, last_seq, now)
    journal.insert(db, chat, stored)
    projection = Projection(db, chat)
    for new, event in zip(events, stored, strict=True):
        projection.take(event, live=new.ts is None)
    projection.finish()
    if stored:
        db.execute("UPDATE chats SET last_seq = ? WHERE id = ?", (stored[-1].seq, chat))
    return stored
