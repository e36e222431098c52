"""Matches the lines of two texts: what changed between them, and where a text nearly occurs.

Pure, and bounded in time for any input: a result may be coarser than possible, never wrong. Lines are
compared whole; callers decide what a line is.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from ..system.lazy import lazy_module

if TYPE_CHECKING:
    import difflib
else:
    difflib = lazy_module("difflib")

MAX_PAIRS = 1_000_000
"""Pairs of lines per comparison, about 150 ns each. It is enough for about 1,000 lines that moved or recur,
in a file of any length; lines on only one side cost nothing."""

MAX_DEPTH = 12
"""How often a range is divided at its unique lines; each division reads the range once."""

MAX_COMMON = 1024
NEAR_LINES = 100
"""git's own values: a line that occurs this often in the other text always counts as common, and so many
lines on either side decide whether a common line is among unmatched ones."""

MAX_WANTED = 200
MAX_TRIES = 2000
"""Lines that are searched when a text is not found, and lines of the file that are tried for one of them."""

_LONG = 200
"""Characters of a line that are compared: enough to identify it."""

_STRANGE, _ORDINARY, _COMMON = range(3)
"""Lines that the other text contains never, sometimes and often."""

_EXTREMES = re.compile(b"[^%c]+" % _ORDINARY)

Region = tuple[int, int, int, int]
"""A change: lines of the old text from and to (exclusive), and of the new text."""

MatchingBlock = tuple[int, int, int]
"""Equal lines: where they start in the old text and in the new one, and how many there are."""

LineT = TypeVar("LineT", bound=Hashable)


def changed_regions(old: Sequence[LineT], new: Sequence[LineT]) -> list[Region]:
    """Return the regions that differ, from the top; what is between them is equal. They never touch.

    They are minimal with two exceptions. A common line among unmatched ones, such as a blank line in a
    rewritten part, belongs to them: git does the same, whose counts must be equal, and it reads better. And
    where `MAX_PAIRS` is too small to find the shortest edit, a short one is used.
    """
    regions: list[Region] = []
    at_old = at_new = 0
    for start_old, start_new, count in [*_Comparison(old, new).run(), (len(old), len(new), 0)]:
        if (start_old, start_new) != (at_old, at_new):
            regions.append((at_old, start_old, at_new, start_new))
        at_old, at_new = start_old + count, start_new + count
    return regions


class _Comparison:
    """Compares equal head and tail first, then finds the shortest edit of the lines between that are on both
    sides.

    If that takes too long, lines that occur once on both sides and keep their order are matched, and the
    ranges between them are compared separately. A reader would do the same, but it can cost a few lines. A
    range without such lines counts as changed.
    """

    def __init__(self, old: Sequence[Hashable], new: Sequence[Hashable]) -> None:
        self._old = old
        self._new = new
        self._pairs_left = MAX_PAIRS
        self._blocks: list[MatchingBlock] = []

    @cached_property
    def _counts(self) -> tuple[Counter[Hashable], Counter[Hashable]]:
        return Counter(self._old), Counter(self._new)

    def run(self) -> list[MatchingBlock]:
        """Return blocks of equal lines, in order; adjacent ones are joined."""
        self._compare(0, len(self._old), 0, len(self._new), 0)
        joined: list[MatchingBlock] = []
        for block in self._blocks:
            if joined and (last := joined[-1])[0] + last[2] == block[0] and last[1] + last[2] == block[1]:
                joined[-1] = (last[0], last[1], last[2] + block[2])
            elif block[2]:
                joined.append(block)
        return joined

    def _compare(self, a: int, a_end: int, b: int, b_end: int, depth: int) -> None:
        # Most edits change little: equal head and tail make the rest short before anything costs more.
        head = a
        while a < a_end and b < b_end and self._old[a] == self._new[b]:
            a, b = a + 1, b + 1
        self._blocks.append((head, b - (a - head), a - head))
        tail = a_end
        while a < a_end and b < b_end and self._old[a_end - 1] == self._new[b_end - 1]:
            a_end, b_end = a_end - 1, b_end - 1
        if a < a_end and b < b_end:
            self._compare_middle(a, a_end, b, b_end, depth)
        self._blocks.append((a_end, b_end, tail - a_end))

    def _compare_middle(self, a: int, a_end: int, b: int, b_end: int, depth: int) -> None:
        counts, others = Counter(self._old[a:a_end]), Counter(self._new[b:b_end])
        olds = [
            at for at in _matchable_lines(self._old, a, a_end, self._counts[1]) if self._old[at] in others
        ]
        news = [
            at for at in _matchable_lines(self._new, b, b_end, self._counts[0]) if self._new[at] in counts
        ]
        old, new = [self._old[at] for at in olds], [self._new[at] for at in news]
        # A range that is too hard leaves as much for all that follow.
        way = _ShortestEdit(old, new, self._pairs_left // 2)
        blocks = way.blocks()
        self._pairs_left -= way.pairs
        if blocks is not None:
            for i, j, count in blocks:
                self._stay(olds[i : i + count], news[j : j + count])
        elif depth < MAX_DEPTH:
            anchors = _longest_rising(_unique_pairs(old, new, counts, others))
            if anchors:
                self._divide([(olds[i], news[j]) for i, j in anchors], (a, a_end, b, b_end), depth)

    def _stay(self, olds: list[int], news: list[int]) -> None:
        count = len(olds)
        if count and olds[-1] - olds[0] == news[-1] - news[0] == count - 1:
            self._blocks.append((olds[0], news[0], count))
        else:
            self._blocks.extend((i, j, 1) for i, j in zip(olds, news, strict=True))

    def _divide(self, anchors: list[tuple[int, int]], whole: Region, depth: int) -> None:
        a, a_end, b, b_end = whole
        for i, j in anchors:
            self._compare(a, i, b, j, depth + 1)
            self._blocks.append((i, j, 1))
            a, b = i + 1, j + 1
        self._compare(a, a_end, b, b_end, depth + 1)


class _ShortestEdit:
    """The fewest lines to remove and add, by E. Myers' "An O(ND) difference algorithm and its variations".

    A point (x, y) is before line x of the old text and line y of the new one, on the diagonal x - y. Equal
    lines advance along it without cost; a step removes a line, to the diagonal above, or adds one, to the one
    below. A row has the furthest x that a number of steps reaches, on every other diagonal from the lowest
    up.
    """

    def __init__(self, old: list[Hashable], new: list[Hashable], max_pairs: int) -> None:
        self._old = old
        self._new = new
        self._max_pairs = max_pairs
        self._rows: list[array[int]] = []
        self.pairs = 0
        """How many pairs of lines were compared."""

    def blocks(self) -> list[MatchingBlock] | None:
        """Return the equal lines, from the top; None when they are not found within the bound."""
        olds, news = len(self._old), len(self._new)
        starts = [0]
        while self._follow(starts):
            row, steps = self._rows[-1], len(self._rows)
            if self._furthest(steps - 1, olds - news) == olds:
                return self._way_back()
            # Diagonals that begin outside of both texts are skipped: they lead nowhere.
            lower = [-1, *row] if steps <= news else row
            upper = [*(row if steps <= news else row[1:]), *([-1] if steps <= olds else [])]
            starts = [_next(below, above) for below, above in zip(lower, upper, strict=False)]
        return None

    def _follow(self, starts: list[int]) -> bool:
        """Add the row that begins at these x, as far as equal lines lead; False when the bound is reached."""
        old, new, olds, news = self._old, self._new, len(self._old), len(self._new)
        row = []
        diagonal = self._lowest(len(self._rows))
        self.pairs += len(starts)
        for start in starts:
            x, y = start, start - diagonal
            while x < olds and y < news and old[x] == new[y]:
                x, y = x + 1, y + 1
            row.append(x)
            diagonal += 2
            # Counted here, where the time goes: the bound is one of time, not of lines.
            self.pairs += x - start
            if self.pairs > self._max_pairs:
                return False
        self._rows.append(array("i", row))
        return True

    def _way_back(self) -> list[MatchingBlock]:
        blocks: list[MatchingBlock] = []
        diagonal = len(self._old) - len(self._new)
        for steps in range(len(self._rows) - 1, -1, -1):
            x = self._furthest(steps, diagonal)
            below, above = (self._furthest(steps - 1, diagonal + side) for side in (-1, 1))
            start = _next(below, above)
            blocks.append((start, start - diagonal, x - start))
            diagonal += -1 if start > above else 1
        return blocks[::-1]

    def _furthest(self, steps: int, diagonal: int) -> int:
        """Return the furthest x on a diagonal; -1 if it cannot be reached, which is also the position before
        the first step."""
        if steps < 0:
            return -1
        at, between = divmod(diagonal - self._lowest(steps), 2)
        row = self._rows[steps]
        return row[at] if not between and 0 <= at < len(row) else -1

    def _lowest(self, steps: int) -> int:
        news = len(self._new)
        return -steps if steps <= news else steps - 2 * news


def _next(below: int, above: int) -> int:
    """Return where a diagonal is entered by one step: a line is removed on the one below it, or added on the
    one above."""
    return above if above > below else below + 1


def nearest_lines(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    """Return the first line, from 0, where `wanted` nearly occurs in `lines`; None when nothing is similar.

    White space at the ends of lines is ignored. The position is where most lines agree or, where none does,
    that of the line most similar to the longest wanted one.
    """
    wanted = wanted[:MAX_WANTED]
    places: dict[str, list[int]] = {}
    for at, line in enumerate(lines):
        places.setdefault(line.strip(), []).append(at)
    votes: Counter[int] = Counter()
    for at, line in enumerate(wanted):
        # A line that is everywhere says little about the position.
        found = places.get(line.strip(), ()) if line.strip() else ()
        if len(found) <= MAX_TRIES:
            votes.update(place - at for place in found if place >= at)
    if votes:
        return max(votes, key=lambda place: (votes[place], -place))
    return _most_similar(lines, wanted)


def _most_similar(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    at = max(range(len(wanted)), key=lambda at: len(wanted[at].strip()), default=0)
    line = wanted[at].strip()[:_LONG] if wanted else ""
    if not line:
        return None
    words = set(line.split())
    sharing = sorted(range(len(lines)), key=lambda at: -len(words.intersection(lines[at].split())))
    matcher = difflib.SequenceMatcher(None, b=line, autojunk=False)
    best, best_ratio = None, 0.5
    for place in sharing[:MAX_TRIES]:
        matcher.set_seq1(lines[place].strip()[:_LONG])
        if matcher.real_quick_ratio() > best_ratio and matcher.quick_ratio() > best_ratio:
            ratio = matcher.ratio()
            if ratio > best_ratio:
                best, best_ratio = place, ratio
    return None if best is None else max(0, best - at)


def _matchable_lines(lines: Sequence[Hashable], start: int, end: int, others: Counter[Hashable]) -> list[int]:
    """Return the lines that can match one of the other text, whose counts are given.

    Lines that the other text does not contain cannot. A common line is skipped too if unmatched lines on both
    sides, up to the next ordinary line, outnumber common ones three to one.
    """
    common = min(1 << (len(lines).bit_length() + 1) // 2, MAX_COMMON)
    counts = [others.get(line, 0) for line in lines[start:end]]
    kinds = bytes([_COMMON if count >= common else count and _ORDINARY for count in counts])
    asked = bytearray(kinds)
    for run in _EXTREMES.finditer(kinds):
        for at in range(*run.span()) if _STRANGE in run[0] else ():
            if kinds[at] == _COMMON and _among_strangers(kinds, at, *run.span()):
                asked[at] = _STRANGE
    return [at for at, kind in enumerate(asked, start) if kind != _STRANGE]


def _among_strangers(kinds: bytes, at: int, start: int, end: int) -> bool:
    low, high = max(start, at - NEAR_LINES), min(end, at + NEAR_LINES + 1)
    above, beneath = kinds.count(_STRANGE, low, at), kinds.count(_STRANGE, at, high)
    # The line itself counts once for each side, as in git.
    commons = high - low + 1 - above - beneath
    return bool(above and beneath) and above + beneath > 3 * commons


def _unique_pairs(
    old: Sequence[Hashable], new: Sequence[Hashable], counts: Counter[Hashable], others: Counter[Hashable]
) -> list[tuple[int, int]]:
    """Return positions of the lines that occur exactly once on both sides, by their order in the old text."""
    places = {line: at for at, line in enumerate(new) if others[line] == 1 and counts[line] == 1}
    return [(at, places[line]) for at, line in enumerate(old) if line in places]


def _longest_rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest sequence of pairs that increases on both sides: what keeps its order."""
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for index, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place)
        before.append(last[length - 1] if length else -1)
        ends[length : length + 1] = [place]
        last[length : length + 1] = [index]
    run = []
    at = last[-1] if last else -1
    while at >= 0:
        run.append(pairs[at])
        at = before[at]
    return run[::-1]
