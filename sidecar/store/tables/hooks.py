"""Hook runs: how often each hook ran, its last result, and the hook events of a turn."""

from __future__ import annotations

import msgspec

from ...model import JsonObject
from ...model.content import JournalValue
from ...model.events import EventData
from ..engine.sqlite import Connection


class HookFigures(msgspec.Struct, frozen=True):
    """How often a hook has run, in all chats, and the result of the last run."""

    runs: int
    decision: str
    ms: int | None
    at: int


class HookRecord(JournalValue, kw_only=True, frozen=True):
    """A run of a hook: the data of `hook.started` and, with its result, of `hook.ran`. `key` is the same for the same
    question; `again` says that a recorded answer was repeated."""

    run_id: str
    key: str
    event: str
    hook_id: str
    name: str
    file: str
    item_id: str | None = None
    decision: str | None = None
    answer: JsonObject | None = None
    exit: int | None = None
    ms: int | None = None
    problem: str | None = None
    again: bool = False

    @property
    def has_ended(self) -> bool:
        return self.decision is not None


_record = msgspec.json.Decoder(HookRecord).decode


def put(db: Connection, ts: int, data: EventData) -> None:
    """Count a finished run. One that is repeated from the journal, or never started, does not count."""
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


def since(db: Connection, chat: int, turn: str) -> list[HookRecord]:
    """Return the hook events from this turn on, in order."""
    rows = db.execute(
        "SELECT data FROM events WHERE chat = ?1 AND type IN ('hook.started', 'hook.ran')"
        " AND seq >= (SELECT first_seq FROM turns WHERE chat = ?1 AND id = ?2) ORDER BY seq",
        (chat, turn),
    )
    return [_record(data) for (data,) in rows]
