"""Takes as many lines of a text as fit, in the order of what matters, and draws them in the order of the text. Pure.

Counting tokens is dear, so lines are chosen by their bytes, and only what would be shown is counted: a few times, while
the number of bytes that makes so many tokens is searched for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from . import pointing
from .order import ordered
from .outline import Outline, outline

Count = Callable[[str], int]

MAX_COUNTS = 16
"""Calls of the tokenizer for one excerpt; five or so are usual."""

BYTES_A_TOKEN = 3
"""Where the search begins."""

LONG_TOKEN = 32
"""Characters: a text with more of these for each token that there is room for is not counted whole."""

GOOD_SHARE = 0.995
"""Of the room: closer than this nobody can tell the difference."""

MAX_CUT_LINES = 4
"""Lines, each too long for the room by itself, of which a part is shown."""

MAX_MISSES = 300
"""Lines in a row that did not fit: the rest of the order is not looked at."""

WIDEST_LINES = 1000
"""Bytes a line, on average, from which on a text has no layout: it is minified or data."""

_BREAK = re.compile(r"\r\n|\r|\n")


class _Text(msgspec.Struct, frozen=True):
    """What does not depend on the room. `costs` are bytes with the line's end."""

    lines: list[str]
    costs: list[int]
    order: list[int]
    mentions: pointing.Mentions
    focuses: dict[int, list[int]] = {}
    """Filled when a line has to be cut: searching one takes a while, and it is drawn several times."""

    @property
    def marker_cost(self) -> int:
        return len(_marker(len(self.lines)).encode()) + 1

    def part(self, line: int, size: int) -> str:
        """So many characters of a line: around what is pointed at, else from both ends."""
        text = self.lines[line]
        if line not in self.focuses:
            self.focuses[line] = pointing.focuses(self.mentions, text)
        focuses = self.focuses[line]
        if not focuses:
            return _joined(text, [(0, size - size // 3), (len(text) - size // 3, len(text))])
        each = size // len(focuses)
        return _joined(text, [(max(0, at - each // 3), at - each // 3 + each) for at in focuses])


class _Choice(msgspec.Struct, frozen=True):
    """The lines to show, and of some of them only so many characters."""

    lines: list[int]
    parts: dict[int, int]


def excerpt(text: str, hint: str, max_tokens: int, count: Count, *, path: str = "") -> str:
    """The text when it fits, else the lines that matter most to `hint`, in order, with a count of those between them.

    Lines end with `\\n` in it whatever they ended with. `path` tells the language, and which line numbers are meant.
    Empty when there is no room for anything.
    """
    if max_tokens <= 0 or not text:
        return ""
    if len(text) <= LONG_TOKEN * max_tokens and count(text) <= max_tokens:
        return text
    read = _read(text, hint, path)
    low, high = 0, sum(read.costs) + 1
    best = ""
    room = min(BYTES_A_TOKEN * max_tokens, high - 1)
    for attempt in range(MAX_COUNTS - 1):
        made = _drawn(read, _chosen(read, room))
        tokens = count(made)
        if tokens <= max_tokens:
            low, best = room, made
            if tokens >= GOOD_SHARE * max_tokens:
                break
        else:
            high = room
        if high - low <= 1:
            break
        guess = room * max_tokens // max(1, tokens)
        halves = attempt > MAX_COUNTS // 2 or not low < guess < high
        room = (low + high) // 2 if halves else guess
    return best


def _read(text: str, hint: str, path: str) -> _Text:
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
    found = pointing.mentions(hint, path)
    places = pointing.places(found, plain, starts, structure)
    return _Text(lines, costs, ordered(len(lines), structure, places), found)


def _chosen(read: _Text, room: int) -> _Choice:
    """The lines that fit into so many bytes, with the markers that stand for the others."""
    marker = read.marker_cost
    shown = bytearray(len(read.lines) + 2)
    shown[0] = shown[-1] = 1
    left = room - marker
    parts: dict[int, int] = {}
    misses = 0
    for line in read.order:
        gaps = marker * (1 - shown[line] - shown[line + 2])
        cost = read.costs[line] + gaps
        alone = read.costs[line] + marker * ((line > 0) + (line + 1 < len(read.lines)))
        if alone > room:
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
        parts[line] = (parts[line] + max(0, left)) * len(read.lines[line]) // read.costs[line]
        left = 0
    return _Choice([line for line in range(len(read.lines)) if shown[line + 1]], parts)


def _close_gaps(shown: bytearray, costs: Sequence[int], marker: int) -> None:
    """Shows the lines that cost no more than the marker that would stand for them."""
    gap = shown.find(0)
    while gap >= 0:
        end = shown.find(1, gap)
        if end - gap <= marker and sum(costs[gap - 1 : end - 1]) <= marker:
            shown[gap:end] = b"\1" * (end - gap)
        gap = shown.find(0, end)


def _drawn(read: _Text, choice: _Choice) -> str:
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


def _joined(line: str, spans: Sequence[tuple[int, int]]) -> str:
    drawn, end = "", 0
    for first, last in spans:
        first, last = max(first, end), min(last, len(line))
        if first < last:
            drawn += ("…" if first > end else "") + line[first:last]
            end = last
    return drawn + ("…" if end < len(line) else "")


def _marker(lines: int) -> str:
    return "… 1 line …" if lines == 1 else f"… {lines} lines …"
