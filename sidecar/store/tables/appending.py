"""Appends to a chat's journal in a transaction: the events, and the rows derived from them."""

from __future__ import annotations

from collections.abc import Sequence

from ...model.events import NewEvent, StoredEvent
from ...model.failures import Failure, Refused
from ..engine.sqlite import Connection
from . import journal, mcp_secrets
from .projections import Projection


class StaleWrite(Failure):
    """Another process has written to the chat since this one last read it."""

    def __init__(self) -> None:
        super().__init__("locked", "The chat was changed by another process", retryable=True)


def append(
    db: Connection, chat: int, last_seq: int, events: Sequence[NewEvent], now: int
) -> list[StoredEvent]:
    """Number the events after `last_seq`, store them and update the derived rows."""
    row = db.execute("SELECT last_seq, deleted FROM chats WHERE id = ?", (chat,)).fetchone()
    if row is None or row[1]:
        raise Refused("deleted", "This chat was deleted; chat/open makes it again")
    # Checked in the transaction: what these events were made from must be the newest state.
    if row[0] != last_seq:
        raise StaleWrite()
    stored = journal.number(events, last_seq, now)
    journal.insert(db, chat, stored)
    projection = Projection(db, chat)
    for new, event in zip(events, stored, strict=True):
        # Imported events bring their own time, and were measured where they happened.
        projection.take(event, live=new.ts is None)
        if new.secrets is not None:
            mcp_secrets.replace(db, chat, new.secrets)
    projection.finish()
    if stored:
        db.execute("UPDATE chats SET last_seq = ? WHERE id = ?", (stored[-1].seq, chat))
    return stored
