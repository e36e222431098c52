"""The short head that stands for a text which is kept out of the window. Pure.

First and last lines, what failed, what its reader hopes to find, the words that tell it from others, how to get the
rest.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from ..model.index import WORDS_IN_IT
from .query import is_stop, parse, plan
from .ranking import Matcher
from .stems import folded

READ = 64 * 1024
"""Code points at either end of a text that are looked at: a failure is told where it happens or where all ends."""

LONG = 300
"""Code points of a line that are shown: a minified file is one line."""

FIRST, LAST = 2, 3
"""Lines at the ends that come before everything else."""

FAILURES = 10
WANTED = 6
"""Lines that tell of a failure, and lines that have to do with the intent."""

WORDS = 12
MARK = 5
"""Tokens of a mark for left out lines, and of the line end."""

_FAILED = re.compile(
    r"(?i:\b(?:errors?|fail(?:ed|ures?|s)?|exception|traceback|panic(?:ked)?|fatal|denied|refused|abort(?:ed)?"
    r"|undefined|unresolved|cannot|segfault|timed? ?out|not found|exit(?:ed)? (?:code|status) [1-9]\d*)\b)"
    r"|\b[A-Z]\w*(?:Error|Exception)\b"
)
_FINE = re.compile(r"(?i)\b(?:0|no) (?:errors?|fail\w*|warnings?)\b")
_NAME = re.compile(r"(?<![^\W_])[^\W\d_][^\W_]{3,39}(?![^\W_])")


def preview(
    text: str,
    *,
    label: str,
    id: str,
    intent: str | None = None,
    max_tokens: int,
    count: Callable[[str], int],
    tail_lines: int = 50,
) -> str:
    """At most `max_tokens` by `count`; the id stands first and is always there."""
    lines = _Lines(text)
    parts = [f"[{id} {label[:120]}: {lines.total} lines. Search it, or get lines of it, by this id.]"]
    room = max_tokens - count(parts[0]) - MARK
    if room < 0:
        return f"[{id}]"
    telling = _distinctive(lines)
    words = f"{WORDS_IN_IT}{', '.join(telling)}]"
    if telling and (price := count(words) + MARK) <= room // 4:
        parts.append(words)
        room -= price
    shown = lines.chosen(_wishes(lines, intent, tail_lines), room, count)
    made = "\n".join([*parts, *lines.told(shown)])
    while count(made) > max_tokens and shown:
        shown.pop()
        made = "\n".join([*parts, *lines.told(shown)])
    return made


class _Lines:
    """The lines at both ends of a text, by their numbers from 0. What lies between the ends is not looked at."""

    def __init__(self, text: str) -> None:
        plain = text.removesuffix("\n")
        self.total = plain.count("\n") + 1
        if len(plain) <= 2 * READ:
            self._known = dict(enumerate(plain.split("\n")))
        else:
            first, last = plain[:READ].split("\n"), plain[-READ:].split("\n")
            self._known = dict(enumerate(first))
            self._known.update(enumerate(last, max(self.total - len(last), 0)))
        self.numbers = list(self._known)

    def text(self, number: int) -> str:
        return self._known[number]

    def has(self, number: int) -> bool:
        return number in self._known

    def shown(self, number: int) -> str:
        line = self._known[number]
        return line if len(line) <= LONG else f"{line[:LONG]} …"

    def chosen(self, wishes: Iterable[int], room: int, count: Callable[[str], int]) -> list[int]:
        """The first of the wished lines, as long as there is room."""
        taken: list[int] = []
        for number in dict.fromkeys(wishes):
            price = count(self.shown(number)) + MARK
            if price > room:
                break
            taken.append(number)
            room -= price
        return taken

    def told(self, numbers: Sequence[int]) -> list[str]:
        """These lines in their order, with marks where some are left out."""
        made: list[str] = []
        for before, number in pairwise([-1, *sorted(numbers)]):
            if number > before + 1:
                made.append(f"… {number - before - 1} lines …")
            made.append(self.shown(number))
        left = self.total - 1 - max(numbers, default=-1)
        return [*made, f"… {left} lines …"] if left else made


def _wishes(lines: _Lines, intent: str | None, tail_lines: int) -> list[int]:
    """Numbers of lines in the order in which they would be shown."""
    known = lines.numbers
    failed = [at for at in known if _FAILED.search(lines.text(at)) and not _FINE.search(lines.text(at))]
    half = FAILURES // 2
    telling = failed if len(failed) <= FAILURES else failed[:half] + failed[-half:]
    tail = known[max(0, len(known) - tail_lines) :][::-1]
    return [
        *known[:FIRST],
        *tail[:LAST],
        *_wanted(lines, intent),
        *telling,
        *(at + 1 for at in telling if lines.has(at + 1)),
        *known[: FIRST * 3],
        *tail,
        *known[: FIRST * 12],
    ]


def _wanted(lines: _Lines, intent: str | None) -> list[int]:
    """The lines that hold most of the intent's words, rarer words before common ones."""
    terms = plan(parse(intent or "")).terms
    if not terms:
        return []
    known = lines.numbers
    rough = Matcher(terms).rough([folded(lines.text(at)) for at in known])
    often = Counter(term for found in rough.values() for term in found)
    worth = {at: sum(terms[term].weight / often[term] for term in set(found)) for at, found in rough.items()}
    return [known[at] for at in sorted(worth, key=lambda at: (-worth[at], at))[:WANTED]]


def _distinctive(lines: _Lines) -> list[str]:
    """Words that a text says some times, but not everywhere: what it could be searched for."""
    often: Counter[str] = Counter()
    for number in lines.numbers:
        often.update(set(_NAME.findall(lines.text(number))))
    most = max(2, len(lines.numbers) // 10)
    telling = [word for word, times in often.items() if times <= most and not is_stop(word.lower())]
    return sorted(telling, key=lambda word: (-min(often[word], 4) * min(len(word), 14), word))[:WORDS]
