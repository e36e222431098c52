"""Applies a unified diff to a text: completely or not at all.

Pure. Line numbers in a model's diff may be wrong, its lines may not: each hunk is searched at its line, then
nearby, then with up to two lines of context ignored at either end, as patch(1) does. A hunk that fits
nowhere, or at two positions equally well, is an error. `unidiff` parses diffs; nothing is known of files
here.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import islice, product, takewhile

import msgspec

from .lines import nearest_lines
from .text import TextFile, split_lines
from .unidiff import Hunk, PatchFailed

MAX_FUZZ = 2
"""Lines of context that may differ at either end of a hunk."""

_SHOWN_LINES = 12
_SHOWN_LETTERS = 160
"""What an error shows of a hunk and of the file: enough to see the difference."""


class PatchedText(msgspec.Struct, frozen=True):
    """The new text (as `TextFile.encoded` takes it), and the position of each hunk."""

    text: str
    places: tuple[HunkPosition, ...]


class HunkPosition(msgspec.Struct, frozen=True):
    """The first changed line in the new text, from 1, and the offset of the hunk from its stated line."""

    line: int
    off: int


def apply(file: TextFile, hunks: tuple[Hunk, ...]) -> PatchedText:
    """Return the file's text with all hunks applied.

    A diff without any `\\r` was written by someone who does not see the file's line ends, and so keeps them.
    Any other diff is applied literally. A byte order mark stays, whether the diff shows it or not.
    """
    if file.bom:
        hunks = tuple(map(_without_end_mark, hunks))
    if file.newline in ("\r\n", "\r") and not any("\r" in line for hunk in hunks for _, line in hunk.lines):
        done = _Target(file.plain).apply(hunks)
        return PatchedText(file.with_ends(done.text), done.places)
    return _Target(file.text).apply(hunks)


class _HunkMatch(msgspec.Struct, frozen=True):
    """Where a hunk's changed lines are, without the context around them, and their replacement."""

    start: int
    end: int
    lines: list[str]
    off: int


class _Target:
    """The lines of a text. All hunks are located in the original text, so that their order does not matter."""

    def __init__(self, text: str) -> None:
        self._lines = split_lines(text)
        self._places: dict[bool, dict[str, list[int]]] = {}

    @cached_property
    def _bare(self) -> list[str]:
        return [line.rstrip("\r\n") for line in self._lines]

    def apply(self, hunks: tuple[Hunk, ...]) -> PatchedText:
        found: list[_HunkMatch] = []
        for hunk in hunks:
            found.append(self._find(hunk, found))
        out: list[str] = []
        at = 0
        places: dict[int, HunkPosition] = {}
        # Sorting is stable: what two hunks insert at one position stays in the order of the hunks.
        for index, change in sorted(enumerate(found), key=lambda pair: (pair[1].start, pair[1].end)):
            out += self._lines[at : change.start]
            places[index] = HunkPosition(len(out) + 1, change.off)
            out += change.lines
            at = change.end
        out += self._lines[at:]
        return PatchedText(_join(out), tuple(places[index] for index in range(len(found))))

    def _find(self, hunk: Hunk, taken: list[_HunkMatch]) -> _HunkMatch:
        """Return the hunk's position: the fit with the least fuzz, and of several the one nearest to the
        stated line."""
        if not hunk.old:
            return self._insertion(hunk)
        lead, trail = hunk.context()
        # From no fuzz to the most: context that fits exactly anywhere is better than context that nearly fits
        # here.
        for top, bottom in sorted(product(range(MAX_FUZZ + 1), repeat=2), key=sum):
            if top > lead or bottom > trail or top + bottom >= len(hunk.old):
                continue
            wanted = hunk.old[top : len(hunk.old) - bottom]
            # Models often lose the line ends of a file; with them first, a mixed file is changed exactly.
            for bare in (False, True):
                stated = None if hunk.start is None else hunk.start + top
                fits = (self._change_at(hunk, at - top, bare) for at in self._fits(wanted, bare, stated))
                free = (fit for fit in fits if not any(_overlap(fit, other) for other in taken))
                # Raises when two places are equally near: guessing would change the wrong one silently.
                found = _only(free, hunk)
                if found is not None:
                    return found
        raise PatchFailed(self._mismatch_message(hunk))

    def _fits(self, wanted: list[str], bare: bool, stated: int | None) -> Iterator[int]:
        """Return the positions of these lines, the nearest to the stated one first; with `bare`, ignoring
        line ends. Most hunks are at their stated line, and then nothing else is searched."""
        lines = self._bare if bare else self._lines
        if bare:
            wanted = [line.rstrip("\r\n") for line in wanted]
        if stated is not None and lines[stated : stated + len(wanted)] == wanted:
            yield stated
        if bare not in self._places:
            places = self._places[bare] = {}
            for at, line in enumerate(lines):
                places.setdefault(line, []).append(at)
        known = self._places[bare]
        # The rarest of the lines leaves the fewest positions to compare.
        rarest = min(range(len(wanted)), key=lambda at: len(known.get(wanted[at], ())))
        starts = [place - rarest for place in known.get(wanted[rarest], ())]
        if stated is not None:
            starts = sorted((at for at in starts if at != stated), key=lambda at: abs(at - stated))
        yield from (at for at in starts if at >= 0 and lines[at : at + len(wanted)] == wanted)

    def _insertion(self, hunk: Hunk) -> _HunkMatch:
        at = hunk.start if hunk.start is not None else 0
        if (hunk.start is None and self._lines) or at > len(self._lines):
            raise PatchFailed(f"Hunk {hunk.number} contains no line of the file, so its position is unknown.")
        return _HunkMatch(at, at, [line for _, line in hunk.lines], 0)

    def _change_at(self, hunk: Hunk, at: int, bare: bool) -> _HunkMatch:
        """Return the change that a hunk makes when its first old line is at `at`."""
        lead, trail = hunk.context()
        core = hunk.lines[lead : len(hunk.lines) - trail]
        start = here = at + lead
        out: list[str] = []
        for sign, line in core:
            if sign == "+":
                out.append(line.rstrip("\r\n") + self._end_near(here) if bare else line)
            else:
                out += [self._lines[here]] if sign == " " else []
                here += 1
        if bare and out and here == len(self._lines) and not self._lines[-1].endswith("\n"):
            # The diff does not say that the last line has no line end, so it does not mean to add one.
            out[-1] = out[-1].rstrip("\r\n")
        return _HunkMatch(start, here, out, at - hunk.start if hunk.start is not None else 0)

    def _end_near(self, at: int) -> str:
        """Return the line end of the previous line, otherwise of the next."""
        for line in (*self._lines[max(0, at - 1) : at], *self._lines[at : at + 1]):
            if line.endswith("\n"):
                return "\r\n" if line.endswith("\r\n") else "\n"
        return "\n"

    def _mismatch_message(self, hunk: Hunk) -> str:
        where = "" if hunk.start is None else f" at line {hunk.start + 1} or anywhere else"
        words = f"Hunk {hunk.number} does not fit{where}. It expects:\n{_show_lines(hunk.old)}"
        near = nearest_lines(self._bare, [line.rstrip("\r\n") for line in hunk.old])
        if near is None:
            return f"{words}\nNothing in the file is similar."
        there = self._bare[near : near + len(hunk.old)]
        return f"{words}\nThe nearest is, from line {near + 1}:\n{_show_lines(there)}"


def _without_end_mark(hunk: Hunk) -> Hunk:
    lines = tuple((sign, line.removeprefix("\ufeff")) for sign, line in hunk.lines)
    return msgspec.structs.replace(hunk, lines=lines) if hunk.start == 0 else hunk


def _only(fits: Iterator[_HunkMatch], hunk: Hunk) -> _HunkMatch | None:
    """Return the first of the fits if no other is as near; without a stated line all are equally near."""
    first = next(fits, None)
    if first is None or (first.off == 0 and hunk.start is not None):
        return first
    others = takewhile(lambda fit: abs(fit.off) == abs(first.off), fits)
    tied = [first, *islice(others, _SHOWN_LINES - 1)]
    if len(tied) > 1:
        places = ", ".join(str(line) for line in sorted(fit.start + 1 for fit in tied))
        raise PatchFailed(
            f"Hunk {hunk.number} fits equally well at lines {places}. Give its line number, or more context."
        )
    return first


def _overlap(one: _HunkMatch, other: _HunkMatch) -> bool:
    return one.start < other.end and other.start < one.end


def _join(lines: list[str]) -> str:
    """Return the lines as one text: only the last may lack a line end."""
    open_ended = [at for at, line in enumerate(lines[:-1]) if not line.endswith("\n")]
    for at in open_ended:
        lines[at] += "\r\n" if at and lines[at - 1].endswith("\r\n") else "\n"
    return "".join(lines)


def _show_lines(lines: list[str]) -> str:
    shown = ["  " + line.rstrip("\r\n")[:_SHOWN_LETTERS] for line in lines[:_SHOWN_LINES]]
    if len(lines) > _SHOWN_LINES:
        shown.append(f"  … {len(lines) - _SHOWN_LINES} more lines")
    return "\n".join(shown)
