"""Code that a model writes to have it run: the languages, and which rules speak of it. Pure text.

Rules name code by its language: `run(run_code:python)`, `run(run_code:*)`. A rule that allows a command never allows
code, not even `run(*)`: what code does cannot be told from its words. Rules that stop commands are read widely: one
for a language's own program (`python *`) stops code in it, and code in which a stopped command's words appear asks.
"""

from __future__ import annotations

import re

from . import matching
from .commands import Parsed, Simple, parse
from .rules import CODE, EVERYTHING, Rule

LANGUAGES = {
    "python": "python python3",
    "javascript": "node deno bun",
    "typescript": "node deno bun tsx ts-node",
    "shell": "sh bash",
    "ruby": "ruby",
    "go": "go",
    "rust": "rustc cargo",
    "php": "php",
    "perl": "perl",
    "r": "Rscript R",
    "elixir": "elixir iex mix",
}
"""With the programs that run each."""

_WORD = re.compile(r"[^\s\"'`,;()<>=|&$@:{}\[\]]+")
_MEMBER = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")


def subject(language: str, code: str) -> str:
    """How code is named where leave is asked for, and by an exact rule."""
    return f"{CODE}{language}\n{code}"


def body(subject: str) -> str:
    """The code of such a subject."""
    return subject.partition("\n")[2]


def speaks_of_code(rule: Rule) -> bool:
    return (rule.exact or rule.pattern).startswith(CODE)


def allows(rule: Rule, language: str) -> bool:
    """Whether the rule speaks for any code in the language."""
    return rule.exact is None and speaks_of_code(rule) and _names(rule.pattern, language)


def stops(rule: Rule, language: str, code: str) -> bool:
    """Whether the rule is about this code, beyond doubt."""
    if rule.exact is not None:
        return rule.exact.split() == subject(language, code).split()
    if rule.pattern in EVERYTHING:
        return True
    if speaks_of_code(rule):
        return _names(rule.pattern, language)
    if language == "shell" and matching.run_wide(rule.pattern, code, parse(code)):
        return True
    alike = [
        Simple((program, *option, "code"))
        for program in LANGUAGES.get(language, "").split()
        for option in ((), ("-c",), ("-e",))
    ]
    return matching.run_wide(rule.pattern, "", Parsed(tuple(alike)))


def may_run(rule: Rule, code: str) -> bool:
    """Whether the words of the command that the rule is about stand in the code, as a script or a list of words."""
    if rule.exact is not None or rule.pattern in EVERYTHING or speaks_of_code(rule):
        return False
    return matching.run_wide(rule.pattern, re.sub(r"[\[\]]", " ", code), Parsed(unclear="it is code"))


def words(code: str) -> list[str]:
    """What may be the name of a file in it. A member of an object (`item.key`) is none, unless it is quoted."""
    found = []
    for match in _WORD.finditer(code):
        around = code[match.start() - 1 : match.start()] + code[match.end() : match.end() + 1]
        if not _MEMBER.fullmatch(match[0]) or any(quote in around for quote in "\"'`"):
            found.append(match[0])
    return found


def _names(pattern: str, language: str) -> bool:
    wanted = pattern.removeprefix(CODE).removesuffix(" *")
    return wanted == "*" or wanted.casefold() == language
