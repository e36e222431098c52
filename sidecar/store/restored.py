"""The snapshot that goes along with a chat's next prompt at somebody's wish, until a turn with it was answered."""

from __future__ import annotations

from typing import Any

from ..model.events import decode, encode
from .sqlite import Connection

BLOCK = "snapshot"
GATE = "restored"
"""How the manifest of a request tells that it takes one along."""


def put(db: Connection, chat: int, data: dict[str, Any]) -> None:
    """Let this go along with the next prompt, in place of what waited before."""
    db.execute(
        "INSERT OR REPLACE INTO restored (chat, id, turn, data) VALUES (?, ?, ?, ?)",
        (chat, data["snapshotId"], data["turnId"], encode(data)),
    )


def waiting(db: Connection, chat: int) -> dict[str, Any] | None:
    """What waits to go along, as long as its turn is in view and none in view was answered with it."""
    row = db.execute(
        "SELECT r.data FROM restored r JOIN turns t ON t.chat = r.chat AND t.id = r.turn"
        " LEFT JOIN turns c ON c.chat = r.chat AND c.id = r.carried"
        " WHERE r.chat = ? AND t.hidden = 0 AND (c.id IS NULL OR c.status <> 'completed' OR c.hidden = 1)",
        (chat,),
    ).fetchone()
    found: dict[str, Any] | None = decode(row[0]) if row else None
    return found


def assembled(db: Connection, chat: int, turn: str, blocks: list[dict[str, Any]]) -> None:
    """A turn's request was made of these blocks: it may take along what waits."""
    for block in blocks:
        if block.get("id") == BLOCK and block.get("gate") == GATE:
            id = str(block.get("label")).rpartition(" ")[2]
            db.execute("UPDATE restored SET carried = ? WHERE chat = ? AND id = ?", (turn, chat, id))
