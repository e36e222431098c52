"""Which words of a command or of code name files that a rule withholds from reading or changing.

A command that names such a file asks: its effect on the file is unknown. What a command reaches without naming it is
not found here. The subject's `PathNames` looks up the names of paths.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from ..system.lazy import lazy_module
from . import code, matching
from .commands import ParsedCommand, SimpleCommand
from .programs import only_reads, program_name, walked_folders
from .protected import normalized_path
from .rules import Rule, rule_text
from .tables import LISTERS

if TYPE_CHECKING:
    from ..workspace.paths import ReadFilter
    from . import git_history
    from .decide import Subject
else:
    git_history = lazy_module("sidecar.policy.git_history")

MAX_WORD = 4096
"""Characters of a word that may be a path: the limit of the system."""


def path_stops(rule: Rule, path: str) -> bool:
    """Return whether a rule that denies or asks matches this path."""
    if rule.exact is not None:
        return normalized_path(rule.exact).casefold() == normalized_path(path).casefold()
    return matching.path_may_match(rule.pattern, path)


def make_check(
    subject: Subject,
    rules: Sequence[Rule],
    kind: Literal["read", "edit"],
    *,
    folders: bool = True,
    walks: bool = False,
) -> ReadFilter:
    """Return a check that gives the rule, as text, that withholds a path of a command; with `folders` also for a
    folder that contains only what the rule matches, and if the command `walks`, for the whole project.
    """
    stopping = [rule for rule in rules if rule.kind == kind and rule.effect != "allow"]

    def is_withheld(rule: Rule, path: str) -> bool:
        pattern = rule.pattern if rule.exact is None else rule.exact
        names = subject.stoppable_names(path, rule)
        if walks and any(map(_contains_all, names)):
            return True
        return any(
            path_stops(rule, name) or (folders and matching.lies_above(pattern, name)) for name in names
        )

    def check(path: str) -> str | None:
        if not stopping or not path or len(path) > MAX_WORD:
            return None
        whole = posixpath.join(subject.folder or "", path)
        paths = (whole, *(subject.real.expand(whole) if subject.real else ()))
        found = next((rule for rule in stopping if any(is_withheld(rule, each) for each in paths)), None)
        return rule_text(kind, found.pattern) if found else None

    return check


def find_withheld(subject: Subject, parsed: ParsedCommand | None, rules: Sequence[Rule]) -> str | None:
    """Return why a command or code asks that names a withheld file."""
    if subject.kind != "run":
        return None
    if parsed is None or not parsed.commands:
        text = code.code_of(subject.text) if parsed is None else subject.text
        words = code.file_words(text) if parsed is None else _loose(text)
        found = find_named(words, make_check(subject, rules, "read")) or find_named(
            words, make_check(subject, rules, "edit")
        )
        if found is None and git_history.mentions_git_files(text):
            found = make_check(subject, rules, "read", walks=True)("/")
    else:
        found = _named_by_commands(subject, parsed, rules)
    return f"it names what a rule keeps back: {found}"[:300] if found else None


def find_in_command(
    subject: Subject, simple: SimpleCommand, rules: Sequence[Rule], visited: Sequence[str] = ()
) -> str | None:
    """Return the rule that withholds what one command names. A read-only program changes nothing, and one that only
    lists names reads no file; `visited` are folders that the line changes to first.
    """
    words = list(simple.argv[1:])
    if visited and program_name(simple.argv) != "cd":
        words += [posixpath.join(*(step.lstrip("/") for step in visited), word) for word in words]
    lists = program_name(simple.argv) in LISTERS and simple.risk is None
    walked = [] if lists else walked_folders(simple.argv)
    found = find_named(words, make_check(subject, rules, "read", folders=not lists)) or find_named(
        walked, make_check(subject, rules, "read", walks=True)
    )
    if found or only_reads(simple.argv):
        return found
    return find_named(words, make_check(subject, rules, "edit", folders=not lists)) or find_named(
        walked, make_check(subject, rules, "edit", walks=True)
    )


def find_named(words: Iterable[str], check: ReadFilter) -> str | None:
    """Return what `check` returns for the first path in these words, also within an option, a URL or a script."""
    for word in dict.fromkeys(words):
        for piece in (word, *re.split(r"[\s=:@,;&|<>()\"'`$]+", word)):
            reason = check(piece)
            if reason:
                return reason
    return None


def _contains_all(path: str) -> bool:
    """Return whether a path is the project or contains it. Its absolute names are other folders."""
    return normalized_path(path) in (".", "/") or normalized_path(path).split("/")[0] == ".."


def visited_folders(parsed: ParsedCommand) -> list[str]:
    """Return the folders that a line changes to with `cd`."""
    return [
        word for simple in parsed.commands if program_name(simple.argv) == "cd" for word in simple.argv[1:]
    ]


def _named_by_commands(subject: Subject, parsed: ParsedCommand, rules: Sequence[Rule]) -> str | None:
    visited = visited_folders(parsed)
    each = (find_in_command(subject, simple, rules, visited) for simple in parsed.commands)
    found = next(filter(None, each), None)
    if found is None and parsed.unclear:
        found = find_named(_loose(subject.text), make_check(subject, rules, "read"))
    return found


def _loose(text: str) -> list[str]:
    return [word for words in matching.loose_words(text) for word in words]
