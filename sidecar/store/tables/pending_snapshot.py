"""The snapshot that a user wants to send with the next prompt, until a turn with it was answered."""

from __future__ import annotations

import msgspec

from ...model import JsonObject
from ...model.events import EventData, encode
from ..engine.sqlite import Connection

BLOCK = "snapshot"
GATE = "restored"
"""The gate that marks it in the manifest of a request."""


class PendingSnapshot(msgspec.Struct, frozen=True, rename="camel"):
    """A snapshot that the next prompt takes along; `entries` as the journal has them."""

    snapshot_id: str
    entries: list[JsonObject] = []


_decode_pending = msgspec.json.Decoder(PendingSnapshot).decode


def put(db: Connection, chat: int, data: EventData) -> None:
    """Send this with the next prompt, in place of what was pending."""
    db.execute(
        "INSERT OR REPLACE INTO restored (chat, id, turn, data) VALUES (?, ?, ?, ?)",
        (chat, data["snapshotId"], data["turnId"], encode(data)),
    )


def pending(db: Connection, chat: int) -> PendingSnapshot | None:
    """Return what is pending, while its turn is visible and no visible turn was answered with it."""
    row = db.execute(
        "SELECT r.data FROM restored r JOIN turns t ON t.chat = r.chat AND t.id = r.turn"
        " LEFT JOIN turns c ON c.chat = r.chat AND c.id = r.carried"
        " WHERE r.chat = ? AND t.hidden = 0 AND (c.id IS NULL OR c.status <> 'completed' OR c.hidden = 1)",
        (chat,),
    ).fetchone()
    return _decode_pending(row[0]) if row else None


def mark_sent(db: Connection, chat: int, turn: str, blocks: list[JsonObject]) -> None:
    """Record that the request of a turn contained these blocks, which may include what is pending."""
    for block in blocks:
        if block.get("id") == BLOCK and block.get("gate") == GATE:
            id = str(block.get("label")).rpartition(" ")[2]
            db.execute("UPDATE restored SET carried = ? WHERE chat = ? AND id = ?", (turn, chat, id))
