"""The outline of a long page that is stored in the index: its beginning and its headings, by line. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable

HEAD_SHARE = 0.5
"""The share of tokens for the beginning; the rest is for the headings."""

MAX_LINE = 300
"""Characters of a line: a paragraph is one."""

MIN_HEADINGS = 3

_HEADING = re.compile(r"#{1,6} \S")


def outline(text: str, how: str, max_tokens: int, count: Callable[[str], int]) -> str | None:
    """Return `how`, then the page in short, together within `max_tokens`; None for a page with hardly any headings."""
    lines = text.split("\n")
    headings = [f"{number}: {_shorten(line)}" for number, line in _headings(lines)]
    if len(headings) < MIN_HEADINGS:
        return None
    begins = _fitting([how], [_shorten(line) for line in lines if line], int(max_tokens * HEAD_SHARE), count)
    made = _fitting([*begins, "… Headings, by line:"], headings, max_tokens, count)
    left = len(headings) - (len(made) - len(begins) - 1)
    return "\n".join(made) + (f"\n… {left} more" if left else "")


def _headings(lines: list[str]) -> list[tuple[int, str]]:
    """Return the headings with their line numbers, without those in code blocks."""
    found: list[tuple[int, str]] = []
    fence = ""
    for number, line in enumerate(lines, 1):
        ticks = re.match("`{3,}", line)
        if ticks and (not fence or line == fence):
            fence = "" if fence else ticks[0]
        elif not fence and _HEADING.match(line):
            found.append((number, line))
    return found


def _fitting(parts: list[str], more: list[str], max_tokens: int, count: Callable[[str], int]) -> list[str]:
    """Return the parts and as many more as fit; each is counted once, with its line end."""
    used = sum(count(part) + 1 for part in parts)
    for line in more:
        used += count(line) + 1
        if used > max_tokens:
            break
        parts = [*parts, line]
    return parts


def _shorten(line: str) -> str:
    return line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]}…"
