"""A unified diff applied to a text: whole or not at all.

Pure. Line numbers in a model's diff may be wrong, its lines may not: each hunk is looked for at its line, then
nearby, then with up to two lines of context left out at either end, as patch(1) does. What fits nowhere, or at
two places equally well, is an error. How a diff is written is known in `unidiff`; of files nothing is known here.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import islice, product, takewhile

import msgspec

from .lines import nearest
from .text import TextFile, lines_of
from .unidiff import Hunk, PatchFailed

MAX_FUZZ = 2
"""Lines of context that may differ at either end of a hunk."""

_SHOWN_LINES = 12
_SHOWN_LETTERS = 160
"""What an error shows of a hunk and of the file: enough to see what differs."""


class Patched(msgspec.Struct, frozen=True):
    """The new text (as `TextFile.encoded` takes it), and for each hunk where it went."""

    text: str
    places: tuple[Landing, ...]


class Landing(msgspec.Struct, frozen=True):
    """The first changed line in the new text, from 1, and how many lines the hunk was off from what it states."""

    line: int
    off: int


def apply(file: TextFile, hunks: tuple[Hunk, ...]) -> Patched:
    """The file's text with all hunks applied.

    A diff without any `\\r` was written by someone who does not see the file's line ends, and so keeps them. Any
    other is taken at its word. A byte order mark stays, whether the diff shows it or not.
    """
    if file.bom:
        hunks = tuple(map(_without_mark, hunks))
    if file.newline in ("\r\n", "\r") and not any("\r" in line for hunk in hunks for _, line in hunk.lines):
        done = _Target(file.plain).apply(hunks)
        return Patched(file.with_ends(done.text), done.places)
    return _Target(file.text).apply(hunks)


class _Found(msgspec.Struct, frozen=True):
    """Where a hunk's changed lines are, without the context around them, and what comes in their place."""

    start: int
    end: int
    lines: list[str]
    off: int


class _Target:
    """The lines of a text. All hunks are found in the text as it is, so that their order does not matter."""

    def __init__(self, text: str) -> None:
        self._lines = lines_of(text)
        self._places: dict[bool, dict[str, list[int]]] = {}

    @cached_property
    def _bare(self) -> list[str]:
        return [line.rstrip("\r\n") for line in self._lines]

    def apply(self, hunks: tuple[Hunk, ...]) -> Patched:
        found: list[_Found] = []
        for hunk in hunks:
            found.append(self._find(hunk, found))
        out: list[str] = []
        at = 0
        places: dict[int, Landing] = {}
        # Sorting is stable: what two hunks insert at one place stays in the order of the hunks.
        for index, change in sorted(enumerate(found), key=lambda pair: (pair[1].start, pair[1].end)):
            out += self._lines[at : change.start]
            places[index] = Landing(len(out) + 1, change.off)
            out += change.lines
            at = change.end
        out += self._lines[at:]
        return Patched(_joined(out), tuple(places[index] for index in range(len(found))))

    def _find(self, hunk: Hunk, taken: list[_Found]) -> _Found:
        """The hunk's place: the least bent fit, and of several the one nearest to the stated line."""
        if not hunk.old:
            return self._insertion(hunk)
        lead, trail = hunk.context()
        for top, bottom in sorted(product(range(MAX_FUZZ + 1), repeat=2), key=sum):
            if top > lead or bottom > trail or top + bottom >= len(hunk.old):
                continue
            wanted = hunk.old[top : len(hunk.old) - bottom]
            for bare in (False, True):
                stated = None if hunk.start is None else hunk.start + top
                fits = (self._changed(hunk, at - top, bare) for at in self._fits(wanted, bare, stated))
                free = (fit for fit in fits if not any(_overlap(fit, other) for other in taken))
                found = _only(free, hunk)
                if found is not None:
                    return found
        raise PatchFailed(self._misfit(hunk))

    def _fits(self, wanted: list[str], bare: bool, stated: int | None) -> Iterator[int]:
        """The places where these lines stand, the nearest to the stated one first; with `bare`, whatever their
        line ends are. Most hunks are where they say, and then nothing else is looked at."""
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
        # The rarest of the lines leaves the fewest places to compare.
        rarest = min(range(len(wanted)), key=lambda at: len(known.get(wanted[at], ())))
        starts = [place - rarest for place in known.get(wanted[rarest], ())]
        if stated is not None:
            starts = sorted((at for at in starts if at != stated), key=lambda at: abs(at - stated))
        yield from (at for at in starts if at >= 0 and lines[at : at + len(wanted)] == wanted)

    def _insertion(self, hunk: Hunk) -> _Found:
        at = hunk.start if hunk.start is not None else 0
        if (hunk.start is None and self._lines) or at > len(self._lines):
            raise PatchFailed(f"Hunk {hunk.number} has no line of the file in it, so its place is not known.")
        return _Found(at, at, [line for _, line in hunk.lines], 0)

    def _changed(self, hunk: Hunk, at: int, bare: bool) -> _Found:
        """The change that a hunk makes when its first old line is at `at`."""
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
            # The diff does not say that the last line has no end, so it does not mean to give it one.
            out[-1] = out[-1].rstrip("\r\n")
        return _Found(start, here, out, at - hunk.start if hunk.start is not None else 0)

    def _end_near(self, at: int) -> str:
        """The line end of the line before, else of the next."""
        for line in (*self._lines[max(0, at - 1) : at], *self._lines[at : at + 1]):
            if line.endswith("\n"):
                return "\r\n" if line.endswith("\r\n") else "\n"
        return "\n"

    def _misfit(self, hunk: Hunk) -> str:
        where = "" if hunk.start is None else f" at line {hunk.start + 1} or anywhere else"
        words = f"Hunk {hunk.number} does not fit{where}. It expects:\n{_shown(hunk.old)}"
        near = nearest(self._bare, [line.rstrip("\r\n") for line in hunk.old])
        if near is None:
            return f"{words}\nNothing in the file is like it."
        there = self._bare[near : near + len(hunk.old)]
        return f"{words}\nThe nearest is, from line {near + 1}:\n{_shown(there)}"


def _without_mark(hunk: Hunk) -> Hunk:
    lines = tuple((sign, line.removeprefix("\ufeff")) for sign, line in hunk.lines)
    return msgspec.structs.replace(hunk, lines=lines) if hunk.start == 0 else hunk


def _only(fits: Iterator[_Found], hunk: Hunk) -> _Found | None:
    """The first of the fits, if no other is as near; without a stated line all are equally near."""
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


def _overlap(one: _Found, other: _Found) -> bool:
    return one.start < other.end and other.start < one.end


def _joined(lines: list[str]) -> str:
    """The lines as one text: only the last may be without an end."""
    open_ended = [at for at, line in enumerate(lines[:-1]) if not line.endswith("\n")]
    for at in open_ended:
        lines[at] += "\r\n" if at and lines[at - 1].endswith("\r\n") else "\n"
    return "".join(lines)


def _shown(lines: list[str]) -> str:
    shown = ["  " + line.rstrip("\r\n")[:_SHOWN_LETTERS] for line in lines[:_SHOWN_LINES]]
    if len(lines) > _SHOWN_LINES:
        shown.append(f"  … {len(lines) - _SHOWN_LINES} more lines")
    return "\n".join(shown)
