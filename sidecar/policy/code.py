"""Code that a model writes to run it: the languages, and which rules match it. Pure text.

Rules name code by its language: `run(run_code:python)`, `run(run_code:*)`. A rule that allows a command never allows
code, not even `run(*)`: the effect of code cannot be read from its text. Rules that stop commands match widely: one
for a language's own program (`python *`) stops code in it, and code that contains the words of a stopped command
asks.
"""

from __future__ import annotations

import re

from . import matching
from .commands import ParsedCommand, SimpleCommand, parse_command
from .rules import CODE_PREFIX, EVERYTHING, Rule

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
"""The languages, with the programs that run each."""

_WORD = re.compile(r"[^\s\"'`,;()<>=|&$@:{}\[\]]+")
_MEMBER = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")


def code_subject(language: str, code: str) -> str:
    """Return how code is named in permission requests and in an exact rule."""
    return f"{CODE_PREFIX}{language}\n{code}"


def code_of(code_subject: str) -> str:
    """Return the code of such a subject."""
    return code_subject.partition("\n")[2]


def is_code_rule(rule: Rule) -> bool:
    return (rule.exact or rule.pattern).startswith(CODE_PREFIX)


def allows_language(rule: Rule, language: str) -> bool:
    """Return whether the rule allows any code in the language."""
    return rule.exact is None and is_code_rule(rule) and _names_language(rule.pattern, language)


def matches_code(rule: Rule, language: str, code: str) -> bool:
    """Return whether the rule certainly matches this code."""
    if rule.exact is not None:
        return rule.exact.split() == code_subject(language, code).split()
    if rule.pattern in EVERYTHING:
        return True
    if is_code_rule(rule):
        return _names_language(rule.pattern, language)
    if language == "shell" and matching.command_may_match(rule.pattern, code, parse_command(code)):
        return True
    alike = [
        SimpleCommand((program, *option, "code"))
        for program in LANGUAGES.get(language, "").split()
        for option in ((), ("-c",), ("-e",))
    ]
    return matching.command_may_match(rule.pattern, "", ParsedCommand(tuple(alike)))


def mentions_command(rule: Rule, code: str) -> bool:
    """Return whether the code contains the words of the rule's command, as a script or a list of words."""
    if rule.exact is not None or rule.pattern in EVERYTHING or is_code_rule(rule):
        return False
    return matching.command_may_match(
        rule.pattern, re.sub(r"[\[\]]", " ", code), ParsedCommand(unclear="it is code")
    )


def file_words(code: str) -> list[str]:
    """Return possible file names in the code. A member of an object (`item.key`) is none, unless it is quoted."""
    found = []
    for match in _WORD.finditer(code):
        around = code[match.start() - 1 : match.start()] + code[match.end() : match.end() + 1]
        if not _MEMBER.fullmatch(match[0]) or any(quote in around for quote in "\"'`"):
            found.append(match[0])
    return found


def _names_language(pattern: str, language: str) -> bool:
    wanted = pattern.removeprefix(CODE_PREFIX).removesuffix(" *")
    return wanted == "*" or wanted.casefold() == language
