"""Measurements of a chat's work: what a call kept out of the context window, what a turn cost, what was
purged."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date, timedelta
from typing import Any, TypedDict

import msgspec

from .content import JournalValue, Usage

MILLION = 1_000_000


class CallSavings(JournalValue, kw_only=True, frozen=True):
    """What one tool call kept out of the context window, in tokens of our own counter at the end of the call.

    It is stored only in the `tool.ended` event, and totals are computed from there: a killed process counts
    nothing twice. A value that was not measured is absent.
    """

    captured: int | None = None
    """Tokens of the output that the index stores."""
    sent: int | None = None
    """Tokens that were sent to the model instead: the preview."""
    returned: int | None = None
    """Tokens that the model got from the index: hits, lines of a stored output."""
    searches: int | None = None
    """Queries sent to the index."""
    fetches: int | None = None
    """Requested pages."""
    fetch_hits: int | None = None
    """Requested pages that came from the cache."""


def cost_of(usage: Usage, prices: Mapping[str, float] | None) -> float | None:
    """Return US dollars by list prices per million tokens; None when a required price or count is unknown.

    What a provider charges for writing its cache is not distinguished from other input.
    """
    if not prices or usage.input_tokens is None or usage.output_tokens is None:
        return None
    cached = min(usage.cached_tokens or 0, usage.input_tokens)
    parts = [
        (usage.input_tokens - cached, prices.get("input")),
        (cached, prices.get("cached")),
        (usage.output_tokens, prices.get("output")),
    ]
    if any(price is None for tokens, price in parts if tokens):
        return None
    return sum(tokens * price for tokens, price in parts if price) / MILLION


class RuleUse(TypedDict):
    """Times are milliseconds since 1970. `hash` is that of the rule when it was last seen."""

    loadCount: int
    lastSeen: int
    lastChanged: int
    tokens: int
    hash: str


class PurgeCounts(msgspec.Struct, frozen=True):
    """What a purge removed, by kind."""

    chats: int = 0
    turns: int = 0
    events: int = 0
    messages: int = 0
    prompts: int = 0
    patches: int = 0
    compactions: int = 0
    checkpoints: int = 0
    requests: int = 0
    rules: int = 0
    blobs: int = 0
    blob_bytes: int = 0
    sources: int = 0
    chunks: int = 0
    pages: int = 0
    snapshots: int = 0
    projects: int = 0
    totals: int = 0
    copies: int = 0

    def plus(self, other: PurgeCounts) -> PurgeCounts:
        names = self.__struct_fields__
        return PurgeCounts(**{name: getattr(self, name) + getattr(other, name) for name in names})


SHOWN_COUNTS = ("chats", "turns", "messages", "patches", "blobs", "sources", "pages", "snapshots", "rules")
"""The counts of a purge that matter to a user."""


class Savings(msgspec.Struct, frozen=True, rename="camel"):
    """Tokens that the index stored (`captured`), that were sent instead, and that came back; None: not
    measured."""

    captured: int | None = None
    sent: int | None = None
    returned: int | None = None

    @property
    def tokens_saved(self) -> int | None:
        """Return the tokens kept out of the context window, minus those sent and those that came back."""
        if self.captured is None and self.returned is None:
            return None
        return (self.captured or 0) - (self.sent or 0) - (self.returned or 0)


class ToolFigures(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    calls: int
    savings: Savings


class DayFigures(msgspec.Struct, frozen=True, rename="camel"):
    """`day` counts from 1970-01-01, UTC."""

    day: int
    input_tokens: int | None
    output_tokens: int | None
    cost: float | None
    savings: Savings


class ProjectFigures(msgspec.Struct, frozen=True, rename="camel"):
    """The current chats of a project; measurements include purged ones."""

    path: str
    chats: int
    turns: int
    events: int
    last_activity: int | None
    input_tokens: int | None
    output_tokens: int | None
    cost: float | None
    savings: Savings


class IndexFigures(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The content of the index: texts, their chunks, the original bytes of the texts. `disk_bytes`, only for
    the whole index, is None when it was not or could not be measured."""

    sources: int
    chunks: int
    text_bytes: int
    disk_bytes: int | None = None


class Statistics(msgspec.Struct, frozen=True, rename="camel"):
    """Figures of a chat, a project or all. The first describe what is stored; measurements over time include
    purged chats. None means not measured."""

    chats: int
    turns: int
    events: int
    messages: int
    blobs: int
    blob_bytes: int
    database_bytes: int
    last_activity: int | None
    purged_chats: int
    purged_turns: int
    purged_events: int
    usage: Usage
    counted_turns: int
    priced_turns: int
    savings: Savings
    searches: int
    fetches: int | None
    fetch_hits: int | None
    compactions: int
    compaction_tokens: int
    tools: list[ToolFigures]
    days: list[DayFigures]
    projects: list[ProjectFigures]
    index: IndexFigures


class ToolStatistics(msgspec.Struct, frozen=True, rename="camel"):
    """The figures of a tool, under the names of the contract."""

    name: str
    calls: int
    captured: int | None
    sent: int | None
    returned: int | None
    kept_out: int | None


class DayStatistics(msgspec.Struct, frozen=True, rename="camel"):
    """The figures of a day, under the names of the contract."""

    day: str
    input_tokens: int | None
    output_tokens: int | None
    cost: float | None
    captured: int | None
    sent: int | None
    returned: int | None
    kept_out: int | None


class ProjectStatistics(msgspec.Struct, frozen=True, rename="camel"):
    """The figures of a project, under the names of the contract."""

    path: str
    chats: int
    turns: int
    events: int
    last_activity: int | None
    input_tokens: int | None
    output_tokens: int | None
    cost: float | None
    captured: int | None
    sent: int | None
    returned: int | None
    kept_out: int | None


class StatisticsReport(msgspec.Struct, frozen=True, rename="camel"):
    """Statistics under the names of the contract, and in its order."""

    scope: str
    chats: int
    turns: int
    events: int
    messages: int
    blobs: int
    blob_bytes: int
    database_bytes: int
    last_activity: int | None
    purged_chats: int
    purged_turns: int
    purged_events: int
    counted_turns: int
    priced_turns: int
    searches: int
    fetches: int | None
    fetch_hits: int | None
    compactions: int
    compaction_tokens: int
    tools: list[ToolStatistics]
    days: list[DayStatistics]
    projects: list[ProjectStatistics]
    index: IndexFigures
    captured: int | None
    sent: int | None
    returned: int | None
    kept_out: int | None
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    cost: float | None


def statistics_report(scope: str, found: Statistics) -> StatisticsReport:
    """Return statistics under the names of the contract."""
    usage = found.usage
    return StatisticsReport(
        **_fields_with_savings(found, without=("usage", "tools", "days", "projects")),
        scope=scope,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cached_tokens,
        cost=usage.cost,
        tools=[ToolStatistics(**_fields_with_savings(tool)) for tool in found.tools],
        days=[
            DayStatistics(**_fields_with_savings(day, without=("day",)), day=_date(day.day))
            for day in found.days
        ],
        projects=[ProjectStatistics(**_fields_with_savings(project)) for project in found.projects],
    )


def _fields_with_savings(
    value: Statistics | ToolFigures | DayFigures | ProjectFigures, without: Collection[str] = ()
) -> dict[str, Any]:
    """Return the fields of a value, with those of its savings in one level."""
    fields = {name: each for name, each in msgspec.structs.asdict(value).items() if name not in without}
    savings = fields.pop("savings")
    return {**fields, **msgspec.structs.asdict(savings), "kept_out": value.savings.tokens_saved}


def _date(day: int) -> str:
    return (date(1970, 1, 1) + timedelta(days=day)).isoformat()
