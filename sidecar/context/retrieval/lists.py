"""The word lists of retrieval, read once from `words/recall.json`: they are part of the program."""

from __future__ import annotations

import functools

import msgspec

from ..phrases.files import read_words


class WordLists(msgspec.Struct, frozen=True):
    stop: dict[str, list[str]]
    """By language: words that say nothing about a subject; pairs of characters in scripts without spaces."""

    asking: dict[str, list[str]]
    """Words about asking and talking. They are rare in a chat and would have a high weight, but mean little."""

    months: dict[str, list[str]]
    """Twelve each: the names of a month, separated by spaces."""

    unsure_months: list[str]
    """Names with other meanings: they count beside a number, or after one of `before_month`."""

    before_month: list[str]
    weekdays: dict[str, list[str]]
    relative: dict[str, list[str]]
    ago: dict[str, list[str]]
    """By unit: patterns whose only group is the count."""

    numbers: dict[str, list[str]]


@functools.cache
def word_lists() -> WordLists:
    return read_words("recall", WordLists)
