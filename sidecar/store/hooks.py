"""What was asked of hooks: how often each ran and how it went last, and what a turn's hooks have answered."""

from __future__ import annotations

from typing import Any

import msgspec

from ..model.events import decode
from .sqlite import Connection


class HookFigures(msgspec.Struct, frozen=True):
    """How often a hook has run, in all chats, and how the last run went."""

    runs: int
    decision: str
    ms: int | None
    at: int


def put(db: Connection, ts: int, data: dict[str, Any]) -> None:
    """A run has ended. One that is only repeated from the journal, or never began, does not count."""
    if data.get("ms") is None or data.get("again"):
        return
    db.execute(
        "INSERT INTO hook_figures (hook, runs, decision, ms, at) VALUES (?1, 1, ?2, ?3, ?4)"
        " ON CONFLICT (hook) DO UPDATE SET runs = runs + 1, decision = ?2, ms = ?3, at = ?4",
        (data["hookId"], data["decision"], data["ms"], ts),
    )


def figures(db: Connection) -> dict[str, HookFigures]:
    rows = db.execute("SELECT hook, runs, decision, ms, at FROM hook_figures")
    return {hook: HookFigures(runs, decision, ms, at) for hook, runs, decision, ms, at in rows}


def since(db: Connection, chat: int, turn: str) -> list[tuple[str, dict[str, Any]]]:
    """The events of hooks from this turn on: type and data, in order."""
    rows = db.execute(
        "SELECT type, data FROM events WHERE chat = ?1 AND type IN ('hook.started', 'hook.ran')"
        " AND seq >= (SELECT first_seq FROM turns WHERE chat = ?1 AND id = ?2) ORDER BY seq",
        (chat, turn),
    )
    return [(type, decode(data)) for type, data in rows]
