"""What is measured of a chat's work: what a call kept out of the window, what a turn cost, what was purged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from .content import Usage, Value

MILLION = 1_000_000


class Measured(Value, kw_only=True, frozen=True):
    """What one tool call kept out of the window, as it was counted when the call ended: tokens of our own counter.

    It stands in the `tool.ended` event, and nowhere else is it added up from: so a killed process counts nothing
    twice. A member that was not measured is absent.
    """

    captured: int | None = None
    """Tokens of the output that the index keeps."""
    sent: int | None = None
    """Tokens that the model was sent in its place: the preview."""
    returned: int | None = None
    """Tokens that the model got back out of the index: hits, lines of a kept output."""
    searches: int | None = None
    """Queries put to the index."""
    fetches: int | None = None
    """Pages that were asked for."""
    fetch_hits: int | None = None
    """Those of them that came out of the cache."""


def cost_of(usage: Usage, prices: Mapping[str, float] | None) -> float | None:
    """US dollars by list prices a million tokens; None when a price or a count that it takes is not known.

    What a provider charges for writing its cache is not told apart from other input.
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


class Removed(msgspec.Struct, frozen=True):
    """What a purge took away, by kind."""

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

    def plus(self, other: Removed) -> Removed:
        names = self.__struct_fields__
        return Removed(**{name: getattr(self, name) + getattr(other, name) for name in names})


class Savings(msgspec.Struct, frozen=True, rename="camel"):
    """Tokens that the index kept (`captured`), those sent in their place, those that came back; None: not measured."""

    captured: int | None = None
    sent: int | None = None
    returned: int | None = None

    @property
    def kept_out(self) -> int | None:
        """What the window was spared, less what was sent and what came back."""
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
    """A project's chats as they are; what was measured counts purged ones too."""

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
    """What the index holds: texts, their pieces, the bytes of the texts as they came. `disk_bytes`, of the whole index
    alone, is None when it was not or could not be measured."""

    sources: int
    chunks: int
    text_bytes: int
    disk_bytes: int | None = None


class Statistics(msgspec.Struct, frozen=True, rename="camel"):
    """Figures of a chat, a project or all. The first are of what is there; those that were measured by and by count
    purged chats too. None is what nobody measured."""

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


def told(scope: str, found: Statistics) -> dict[str, Any]:
    """Statistics in the words of the contract. Of the first tokens 0 stands for what nobody counted: they were there
    before `countedTurns` told."""
    usage = found.usage
    return {
        "scope": scope,
        **_flat(found),
        "inputTokens": usage.input_tokens or 0,
        "outputTokens": usage.output_tokens or 0,
        "cachedTokens": usage.cached_tokens or 0,
        "cost": usage.cost,
        "tools": [_flat(tool) for tool in found.tools],
        "days": [{**_flat(day), "day": _date(day.day)} for day in found.days],
        "projects": [_flat(project) for project in found.projects],
    }


def _flat(value: Statistics | ToolFigures | DayFigures | ProjectFigures) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(value)
    savings = fields.pop("savings")
    fields.pop("usage", None)
    return {**fields, **savings, "keptOut": value.savings.kept_out}


def _date(day: int) -> str:
    from datetime import date, timedelta

    return (date(1970, 1, 1) + timedelta(days=day)).isoformat()
