"""The permanent answers that a user is offered when a call asks for permission: as narrow as the call itself. Pure."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from . import matching
from .decide import Subject, parse_subject, protection_reason
from .protected import normalized_path
from .rules import MAX_EXACT, Effect, KindPattern, RuleScope, rule_text

MAX_SUGGESTED = 20
"""Files of one call for which a permanent rule is offered: nobody reads a longer list."""


class Suggestion(msgspec.Struct, frozen=True):
    """A permanent answer that the user could give: the rules that it would record, one per pattern."""

    decision: Literal["allow_chat", "allow_always", "deny_always"]
    scope: RuleScope
    effect: Effect
    kind: KindPattern
    patterns: tuple[str, ...]
    folder: str | None = None

    @property
    def text(self) -> str:
        return ", ".join(rule_text(self.kind, pattern) for pattern in self.patterns)


def suggestions(subject: Subject) -> tuple[Suggestion, ...]:
    """Return the permanent answers to offer. Protected names get none that allows: they ask each time."""
    # Exact text, never a wildcard: the user has seen this call and no other.
    patterns = _suggested_patterns(subject)
    if not patterns:
        return ()
    folder = normalized_path(subject.folder or ".") if subject.kind == "run" else None
    deny = Suggestion("deny_always", "project", "deny", subject.kind, patterns)
    if subject.always_asks or any(
        protection_reason(each, parse_subject(each)) for each in _per_command(subject)
    ):
        return (deny,)
    return (
        Suggestion("allow_chat", "chat", "allow", subject.kind, patterns, folder),
        Suggestion("allow_always", "project", "allow", subject.kind, patterns, folder),
        deny,
    )


def _per_command(subject: Subject) -> list[Subject]:
    """Return one subject per command."""
    if not subject.commands:
        return [subject]
    return [msgspec.structs.replace(subject, text=text, commands=()) for text in subject.commands]


def _suggested_patterns(subject: Subject) -> tuple[str, ...]:
    """Return the patterns of a permanent answer: as narrow as what was asked."""
    if subject.kind == "fetch":
        found = matching.parse_address(subject.text)
        return (found.place,) if found else ()
    if subject.kind in ("read", "edit"):
        patterns = tuple(f"={normalized_path(path)}" for path in subject.files)
    elif subject.commands:
        patterns = tuple(dict.fromkeys(f"={command}" for command in subject.commands))
    elif subject.kind == "run" or not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", subject.text):
        patterns = (f"={subject.text}",)
    else:
        patterns = (subject.text,)
    fits = all(
        len(pattern) <= MAX_EXACT and "\0" not in pattern and pattern.strip("= \t\n") for pattern in patterns
    )
    return patterns if fits and len(patterns) <= MAX_SUGGESTED else ()
