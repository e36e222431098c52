"""Rows of `engine_sessions`: which session of an engine belongs to a chat, and what it contains."""

from __future__ import annotations

import msgspec

from ..engine.sqlite import Connection


class EngineSessionRow(msgspec.Struct, frozen=True):
    """The engine's own id of a session; it contains the chat up to this turn."""

    session: str
    turn: str


def find(db: Connection, chat: int, engine: str) -> EngineSessionRow | None:
    """Return the session, if the turn that it reaches is visible: otherwise it contains what the chat no longer has."""
    row = db.execute(
        "SELECT s.session, s.turn FROM engine_sessions s JOIN turns t ON t.chat = s.chat AND t.id = s.turn"
        " WHERE s.chat = ? AND s.engine = ? AND t.hidden = 0",
        (chat, engine),
    ).fetchone()
    return EngineSessionRow(*row) if row else None


def put(db: Connection, chat: int, engine: str, row: EngineSessionRow) -> None:
    db.execute(
        "INSERT OR REPLACE INTO engine_sessions (chat, engine, session, turn) VALUES (?, ?, ?, ?)",
        (chat, engine, row.session, row.turn),
    )
