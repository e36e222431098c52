"""Takes as many lines of a text as fit, most important first, and renders them in the order of the text.
Pure.

Counting tokens is expensive, so lines are chosen by their bytes, and only the rendered excerpt is counted: a
few times, while searching for the number of bytes that yields so many tokens.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from ...text.token_estimate import BYTES_PER_TOKEN, CountTokens
from . import pointing
from .order import order_lines
from .outline import Outline, outline

MAX_COUNTS = 16
"""Calls of the tokenizer for one excerpt; about five are usual."""

MAX_TOKEN_BYTES = 32
"""Characters per available token: a longer text is not counted whole."""

GOOD_SHARE = 0.995
"""Of the limit: a closer result makes no difference."""

MAX_CUT_LINES = 4
"""Lines that are each too long for the limit, of which a part is shown."""

MAX_MISSES = 300
"""Consecutive lines that did not fit: the rest of the order is skipped."""

WIDEST_LINES = 1000
"""Average bytes per line from which on a text has no layout: it is minified or data."""

_BREAK = re.compile(r"\r\n|\r|\n")


class _AnalysedText(msgspec.Struct, frozen=True):
    """What does not depend on the limit. `costs` are bytes including the line end."""

    lines: list[str]
    costs: list[int]
    order: list[int]
    mentions: pointing.Mentions
    focuses: dict[int, list[int]] = {}
    """Filled when a line has to be cut: searching one takes a while, and it is rendered several times."""

    @property
    def marker_cost(self) -> int:
        return len(_marker(len(self.lines)).encode()) + 1

    def part(self, line: int, size: int) -> str:
        """Return so many characters of a line: around what the prompt refers to, otherwise from both ends."""
        text = self.lines[line]
        if line not in self.focuses:
            self.focuses[line] = pointing.focus_offsets(self.mentions, text)
        focuses = self.focuses[line]
        if not focuses:
            return _join_spans(text, [(0, size - size // 3), (len(text) - size // 3, len(text))])
        each = size // len(focuses)
        return _join_spans(text, [(max(0, at - each // 3), at - each // 3 + each) for at in focuses])


class _Choice(msgspec.Struct, frozen=True):
    """The lines to show, and for some of them a limit of characters."""

    lines: list[int]
    parts: dict[int, int]


def excerpt(text: str, hint: str, max_tokens: int, count: CountTokens, *, path: str = "") -> str:
    """Return the text if it fits, otherwise the lines that matter most to `hint`, in order, with a count of
    omitted lines.

    All lines of the result end with `\\n`. `path` determines the language, and which line numbers are meant.
    Empty when nothing fits.
    """
    if max_tokens <= 0 or not text:
        return ""
    if len(text) <= MAX_TOKEN_BYTES * max_tokens and count(text) <= max_tokens:
        return text
    read = _analyse(text, hint, path)
    low, high = 0, sum(read.costs) + 1
    best = ""
    space = min(BYTES_PER_TOKEN * max_tokens, high - 1)
    for attempt in range(MAX_COUNTS - 1):
        made = _render(read, _choose_lines(read, space))
        tokens = count(made)
        if tokens <= max_tokens:
            low, best = space, made
            if tokens >= GOOD_SHARE * max_tokens:
                break
        else:
            high = space
        if high - low <= 1:
            break
        # Tokens grow about as the bytes do, so the next guess is by proportion. Where they do not (a dense
        # region), it creeps towards the limit: then the interval is halved, which always ends.
        guess = space * max_tokens // max(1, tokens)
        halves = attempt > MAX_COUNTS // 2 or not low < guess < high
        space = (low + high) // 2 if halves else guess
    return best


def _analyse(text: str, hint: str, path: str) -> _AnalysedText:
    lines = _BREAK.split(text) if "\r" in text else text.split("\n")
    if not lines[-1]:
        lines.pop()
    plain = "\n".join(lines)
    sizes = map(len, lines if text.isascii() else (line.encode(errors="replace") for line in lines))
    costs = [size + 1 for size in sizes]
    starts = [0]
    for line in lines[:-1]:
        starts.append(starts[-1] + len(line) + 1)
    structure = outline(lines, path) if len(plain) < WIDEST_LINES * len(lines) else Outline()
    found = pointing.find_mentions(hint, path)
    places = pointing.find_positions(found, plain, starts, structure)
    return _AnalysedText(lines, costs, order_lines(len(lines), structure, places), found)


def _choose_lines(read: _AnalysedText, space: int) -> _Choice:
    """Return the lines that fit into so many bytes, including the markers for omitted ones."""
    marker = read.marker_cost
    shown = bytearray(len(read.lines) + 2)
    shown[0] = shown[-1] = 1
    left = space - marker
    parts: dict[int, int] = {}
    misses = 0
    for line in read.order:
        # `shown` has one more entry at each end, so `shown[line]` is the line before and `shown[line + 2]`
        # the one after. A line between two shown ones removes a marker: its gaps are negative.
        gaps = marker * (1 - shown[line] - shown[line + 2])
        cost = read.costs[line] + gaps
        alone = read.costs[line] + marker * ((line > 0) + (line + 1 < len(read.lines)))
        if alone > space:
            # A line that would not fit even alone is cut. Each gets half of what is left, or a minified file
            # would fill the excerpt with its first line.
            if len(parts) == MAX_CUT_LINES or (parts and left - gaps < 2 * marker):
                continue
            parts[line] = max(0, left - gaps) // 2
            cost = parts[line] + gaps
        elif cost > left:
            misses += 1
            if misses > MAX_MISSES:
                break
            continue
        misses = 0
        shown[line + 1] = 1
        left -= cost
    _close_gaps(shown, read.costs, marker)
    for line in parts:
        # In characters from here on; until now the sizes were bytes. The first cut line gets what nobody
        # used.
        parts[line] = (parts[line] + max(0, left)) * len(read.lines[line]) // read.costs[line]
        left = 0
    return _Choice([line for line in range(len(read.lines)) if shown[line + 1]], parts)


def _close_gaps(shown: bytearray, costs: Sequence[int], marker: int) -> None:
    """Show the lines that cost no more than the marker that would replace them."""
    gap = shown.find(0)
    while gap >= 0:
        end = shown.find(1, gap)
        if end - gap <= marker and sum(costs[gap - 1 : end - 1]) <= marker:
            shown[gap:end] = b"\1" * (end - gap)
        gap = shown.find(0, end)


def _render(read: _AnalysedText, choice: _Choice) -> str:
    if not choice.lines:
        return ""
    drawn: list[str] = []
    next_ = 0
    for line in choice.lines:
        if line > next_:
            drawn.append(_marker(line - next_))
        drawn.append(read.part(line, choice.parts[line]) if line in choice.parts else read.lines[line])
        next_ = line + 1
    if next_ < len(read.lines):
        drawn.append(_marker(len(read.lines) - next_))
    return "\n".join(drawn)


def _join_spans(line: str, spans: Sequence[tuple[int, int]]) -> str:
    drawn, end = "", 0
    for first, last in spans:
        first, last = max(first, end), min(last, len(line))
        if first < last:
            drawn += ("…" if first > end else "") + line[first:last]
            end = last
    return drawn + ("…" if end < len(line) else "")


def _marker(lines: int) -> str:
    return "… 1 line …" if lines == 1 else f"… {lines} lines …"
