"""Which names a matcher selects. Pure; a regular expression is only told apart from plain names here.

A matcher of letters, digits, `_`, `-` and `|` is a list of whole names, as in Claude Code. Anything else is a regular
expression that is looked for in the name. Who wrote it may have written one that never ends on some name, so it is
never tried in this process: `JUDGE` is the program that tries it, beside us and within a time limit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

_PLAIN = re.compile(r"[\w\-|, ]+", re.ASCII)

SLOW_S = 0.2
"""For one expression on some short names; whatever takes longer would take for ever."""

JUDGE = f"""
import json, re, signal, sys
def late(*_):
    raise TimeoutError
signal.signal(signal.SIGALRM, late)
def judged(matcher, names):
    signal.setitimer(signal.ITIMER_REAL, {SLOW_S})
    try:
        found = re.compile(matcher)
        return [name for name in names if found.search(name)]
    except TimeoutError:
        return "it takes too long"
    except Exception as error:
        return f"it is no regular expression: {{error}}"[:200]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
print(json.dumps([judged(*asked) for asked in json.load(sys.stdin)]))
"""
"""Reads a list of [matcher, names], and writes for each the names that it selects, or why it cannot say."""

Judged = frozenset[str] | str
"""The names that an expression selects, or what is wrong with it."""


def plain(matcher: str) -> frozenset[str] | None:
    """The names of a matcher that is a list of them; None for a regular expression."""
    if not _PLAIN.fullmatch(matcher):
        return None
    return frozenset(name.strip() for name in re.split(r"[|,]", matcher) if name.strip())


def question(asked: Sequence[tuple[str, Sequence[str]]]) -> bytes:
    """What the judge reads."""
    return json.dumps([[matcher, list(names)] for matcher, names in asked]).encode()


def verdicts(said: bytes | None, count: int) -> list[Judged]:
    """What the judge wrote, one for each that was asked; one that says nothing usable has taken too long."""
    try:
        answers = json.loads(said or b"")
    except (ValueError, RecursionError):
        answers = None
    if not isinstance(answers, list) or len(answers) != count:
        return ["it takes too long"] * count
    return [frozenset(map(str, one)) if isinstance(one, list) else str(one) for one in answers]
