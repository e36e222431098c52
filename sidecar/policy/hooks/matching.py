"""Which names a matcher selects. Pure; it only tells a regular expression from plain names.

A matcher of letters, digits, `_`, `-` and `|` is a list of whole names, as in Claude Code. Anything else is a regular
expression that is searched in the name. An expression can backtrack forever, so it never runs in this process:
`MATCHER_PROGRAM` runs it in a child process with a time limit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

_PLAIN = re.compile(r"[\w\-|, ]+", re.ASCII)

MATCH_TIMEOUT_S = 0.2
"""For one expression on some short names; whatever takes longer would never end."""

MATCHER_PROGRAM = f"""
import json, re, signal, sys
def late(*_):
    raise TimeoutError
signal.signal(signal.SIGALRM, late)
def match_names(matcher, names):
    signal.setitimer(signal.ITIMER_REAL, {MATCH_TIMEOUT_S})
    try:
        found = re.compile(matcher)
        return [name for name in names if found.search(name)]
    except TimeoutError:
        return "it takes too long"
    except Exception as error:
        return f"it is no regular expression: {{error}}"[:200]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
print(json.dumps([match_names(*asked) for asked in json.load(sys.stdin)]))
"""
"""Reads a list of [matcher, names], and writes for each the names that it selects, or an error."""

MatchResult = frozenset[str] | str
"""The names that an expression selects, or the error in it."""


def plain_names(matcher: str) -> frozenset[str] | None:
    """Return the names of a matcher that is a list of names; None for a regular expression."""
    if not _PLAIN.fullmatch(matcher):
        return None
    return frozenset(name.strip() for name in re.split(r"[|,]", matcher) if name.strip())


def matcher_input(asked: Sequence[tuple[str, Sequence[str]]]) -> bytes:
    """Return the input of the matcher program."""
    return json.dumps([[matcher, list(names)] for matcher, names in asked]).encode()


def parse_matches(said: bytes | None, count: int) -> list[MatchResult]:
    """Return one result per matcher from the output of the program; a missing one counts as timed out."""
    try:
        answers = json.loads(said or b"")
    except (ValueError, RecursionError):
        answers = None
    if not isinstance(answers, list) or len(answers) != count:
        return ["it takes too long"] * count
    return [frozenset(map(str, one)) if isinstance(one, list) else str(one) for one in answers]
