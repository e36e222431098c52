"""Builds the preview of a text that is sent to the model in place of the whole. Pure.

It contains first and last lines, failures, lines that match the intent, distinctive words, and how to get the
rest.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from ..model.index import WORDS_IN_IT
from ..text.folding import remove_accents
from .query import is_stop, parse_query, plan_query
from .ranking import Matcher

READ_CHARACTERS = 64 * 1024
"""Code points at either end of a text that are read: a failure is printed where it happens or at the end."""

MAX_LINE = 300
"""Code points of a line that are shown: a minified file is one line."""

HEAD_LINES, TAIL_LINES = 2, 3
"""Lines at the ends that come before everything else."""

MAX_FAILURE_LINES = 10
MAX_INTENT_LINES = 6
"""Lines that report a failure, and lines that match the intent."""

MAX_WORDS = 12
MARK = 5
"""Tokens of an omission mark, and of the line end."""

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
    """Return at most `max_tokens` by `count`; the id comes first and is always included."""
    lines = _Lines(text)
    parts = [f"[{id} {label[:120]}: {lines.total} lines. Search it, or get lines of it, by this id.]"]
    space = max_tokens - count(parts[0]) - MARK
    if space < 0:
        return f"[{id}]"
    telling = _distinctive_words(lines)
    words = f"{WORDS_IN_IT}{', '.join(telling)}]"
    if telling and (price := count(words) + MARK) <= space // 4:
        parts.append(words)
        space -= price
    shown = lines.choose_lines(_line_order(lines, intent, tail_lines), space, count)
    made = "\n".join([*parts, *lines.render(shown)])
    while count(made) > max_tokens and shown:
        shown.pop()
        made = "\n".join([*parts, *lines.render(shown)])
    return made


class _Lines:
    """The lines at both ends of a text, by their numbers from 0. The middle is not read."""

    def __init__(self, text: str) -> None:
        plain = text.removesuffix("\n")
        self.total = plain.count("\n") + 1
        if len(plain) <= 2 * READ_CHARACTERS:
            self._known = dict(enumerate(plain.split("\n")))
        else:
            first, last = plain[:READ_CHARACTERS].split("\n"), plain[-READ_CHARACTERS:].split("\n")
            self._known = dict(enumerate(first))
            self._known.update(enumerate(last, max(self.total - len(last), 0)))
        self.numbers = list(self._known)

    def text(self, number: int) -> str:
        return self._known[number]

    def has(self, number: int) -> bool:
        return number in self._known

    def clip_line(self, number: int) -> str:
        line = self._known[number]
        return line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]} …"

    def choose_lines(self, wishes: Iterable[int], space: int, count: Callable[[str], int]) -> list[int]:
        """Return the first of the wanted lines that fit."""
        taken: list[int] = []
        for number in dict.fromkeys(wishes):
            price = count(self.clip_line(number)) + MARK
            if price > space:
                break
            taken.append(number)
            space -= price
        return taken

    def render(self, numbers: Sequence[int]) -> list[str]:
        """Return these lines in their order, with marks where some are omitted."""
        made: list[str] = []
        for before, number in pairwise([-1, *sorted(numbers)]):
            if number > before + 1:
                made.append(f"… {number - before - 1} lines …")
            made.append(self.clip_line(number))
        left = self.total - 1 - max(numbers, default=-1)
        return [*made, f"… {left} lines …"] if left else made


def _line_order(lines: _Lines, intent: str | None, tail_lines: int) -> list[int]:
    """Return line numbers in the order in which they would be shown."""
    known = lines.numbers
    failed = [at for at in known if _FAILED.search(lines.text(at)) and not _FINE.search(lines.text(at))]
    half = MAX_FAILURE_LINES // 2
    telling = failed if len(failed) <= MAX_FAILURE_LINES else failed[:half] + failed[-half:]
    tail = known[max(0, len(known) - tail_lines) :][::-1]
    return [
        *known[:HEAD_LINES],
        *tail[:TAIL_LINES],
        *_intent_lines(lines, intent),
        *telling,
        *(at + 1 for at in telling if lines.has(at + 1)),
        *known[: HEAD_LINES * 3],
        *tail,
        *known[: HEAD_LINES * 12],
    ]


def _intent_lines(lines: _Lines, intent: str | None) -> list[int]:
    """Return the lines that contain most of the intent's words, rarer words before common ones."""
    terms = plan_query(parse_query(intent or "")).terms
    if not terms:
        return []
    known = lines.numbers
    rough = Matcher(terms).rough([remove_accents(lines.text(at)) for at in known])
    often = Counter(term for found in rough.values() for term in found)
    worth = {at: sum(terms[term].weight / often[term] for term in set(found)) for at, found in rough.items()}
    return [known[at] for at in sorted(worth, key=lambda at: (-worth[at], at))[:MAX_INTENT_LINES]]


def _distinctive_words(lines: _Lines) -> list[str]:
    """Return words that a text contains several times, but not everywhere: good search terms."""
    often: Counter[str] = Counter()
    for number in lines.numbers:
        often.update(set(_NAME.findall(lines.text(number))))
    most = max(2, len(lines.numbers) // 10)
    telling = [word for word, times in often.items() if times <= most and not is_stop(word.lower())]
    return sorted(telling, key=lambda word: (-min(often[word], 4) * min(len(word), 14), word))[:MAX_WORDS]
