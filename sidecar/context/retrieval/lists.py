"""The word lists of retrieval, read once from `words/recall.json`: they are part of the program, like its code."""

from __future__ import annotations

import functools
from pathlib import Path

import msgspec


class Lists(msgspec.Struct, frozen=True):
    stop: dict[str, list[str]]
    """By language: words that say nothing of a subject; pairs of characters where there are no blanks."""

    asking: dict[str, list[str]]
    """Words about asking and talking. They are rare in a chat and would weigh much, but tell little."""

    months: dict[str, list[str]]
    """Twelve each: a month's names, separated by blanks."""

    unsure_months: list[str]
    """Names that mean something else as well: they count beside a number, or behind one of `before_month`."""

    before_month: list[str]
    weekdays: dict[str, list[str]]
    relative: dict[str, list[str]]
    ago: dict[str, list[str]]
    """By unit: patterns whose one group is how many."""

    numbers: dict[str, list[str]]


@functools.cache
def lists() -> Lists:
    path = Path(__file__).parent.parent / "words" / "recall.json"
    return msgspec.json.decode(path.read_bytes(), type=Lists)
