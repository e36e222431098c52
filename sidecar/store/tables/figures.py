"""Measurements in the table `figures`: collected from live events in the commit that appends them, read by
scope.

A value that was not measured has no row, so that its sum is None and not 0. Events of an import or a fork are
not counted, because they were measured elsewhere.
"""

from __future__ import annotations

from ...model.events import EventData, StoredEvent
from ...system.clock import DAY_MS
from ..engine.sqlite import Connection

NO_CHAT = 0
"""Represents all purged chats; no row of `chats` has this id."""

_TOKENS = ("inputTokens", "outputTokens", "cachedTokens", "cost")
_MEASURED = ("captured", "sent", "returned", "searches", "fetches", "fetchHits")

_ADD = (
    "INSERT INTO figures (project, day, chat, tool, name, value)"
    " VALUES ((SELECT coalesce(project_path, '') FROM chats WHERE id = ?2), ?1, ?2, ?3, ?4, ?5)"
    " ON CONFLICT DO UPDATE SET value = value + excluded.value"
)


class FigureTotals:
    """The figures of one commit in one chat."""

    def __init__(self) -> None:
        self._sums: dict[tuple[int, str, str], float] = {}

    def turn_ended(self, event: StoredEvent, data: EventData) -> None:
        """Add the usage that the provider reported for the turn, and its cost where prices are known."""
        usage = data.get("usage") or {}
        for name in _TOKENS:
            self._add(event, "", name, usage.get(name))
        if usage.get("inputTokens") is not None:
            self._add(event, "", "countedTurns", 1)
        if usage.get("cost") is not None:
            self._add(event, "", "pricedTurns", 1)

    def tool_ended(self, event: StoredEvent, data: EventData) -> None:
        """Count a tool call, and the tokens that it kept out of the context window."""
        tool, measured = data["item"].get("name") or "", data.get("measured") or {}
        self._add(event, tool, "calls", 1)
        for name in _MEASURED:
            self._add(event, tool, name, measured.get(name))

    def count_compaction(self, event: StoredEvent, item: EventData, *, undone: bool = False) -> None:
        """Count a compaction, or subtract an undone one with all that it had saved."""
        before, after = item.get("tokensBefore"), item.get("tokensAfter")
        if before is not None and after is not None:
            sign = -1 if undone else 1
            self._add(event, "", "compactions", sign)
            self._add(event, "", "compactionTokens", sign * (before - after))

    def write(self, db: Connection, chat: int) -> None:
        rows = [(day, chat, tool, name, value) for (day, tool, name), value in self._sums.items()]
        if rows:
            db.executemany(_ADD, rows)

    def _add(self, event: StoredEvent, tool: str, name: str, value: float | None) -> None:
        if value is not None:
            key = (event.ts // DAY_MS, tool, name)
            self._sums[key] = self._sums.get(key, 0) + value


def fold(db: Connection, chat: int, left: dict[str, int], now: int) -> None:
    """Move the chat's figures to its project; `left` are the other counts at the time of the purge."""
    db.execute(
        "INSERT INTO figures (project, day, chat, tool, name, value)"
        " SELECT project, day, ?2, '', name, sum(value) FROM figures WHERE chat = ?1 GROUP BY project, day, name"
        " ON CONFLICT DO UPDATE SET value = value + excluded.value",
        (chat, NO_CHAT),
    )
    db.execute("DELETE FROM figures WHERE chat = ?", (chat,))
    (project,) = db.execute("SELECT coalesce(project_path, '') FROM chats WHERE id = ?", (chat,)).fetchone()
    db.executemany(
        "INSERT INTO figures (project, day, chat, tool, name, value) VALUES (?, ?, ?, '', ?, ?)"
        " ON CONFLICT DO UPDATE SET value = value + excluded.value",
        [(project, now // DAY_MS, NO_CHAT, name, value) for name, value in left.items()],
    )


def move(db: Connection, old: str, new: str) -> int:
    """Add the figures of one project to another; return how many."""
    moved = db.execute(
        "INSERT INTO figures (project, day, chat, tool, name, value)"
        " SELECT ?2, day, chat, tool, name, value FROM figures WHERE project = ?1"
        " ON CONFLICT DO UPDATE SET value = value + excluded.value",
        (old, new),
    ).rowcount
    db.execute("DELETE FROM figures WHERE project = ?", (old,))
    return moved
