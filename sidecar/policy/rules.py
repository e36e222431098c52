"""Permission rules: their syntax, validation, and which subjects they match.

A rule that allows matches narrowly and one that stops matches widely: `edit(docs/*)` allows the files directly in
docs, and denies all that lies beneath as well. Which rule wins is decided elsewhere (`decide`).

Patterns, by kind:

    read, edit      a glob relative to the project, as in .gitignore: `*.md` by name at any depth, `src/**` beneath
                    a folder, `docs/` in a folder of that name anywhere, `./x` only at the top, `/srv/x` outside the
                    project. `*` and `?` stay within a name; brackets are ordinary characters.
    run             the words of one command: `git log *` with any further words, `npm run test:*` within a word;
                    `run_code:python` code in a language, `run_code:*` in any
    fetch           a host (`example.com`, `*.example.com`, `localhost:8080`), or `https://example.com/docs/*`
    mcp, app-tool   `server/tool`, with `*` in either
    any             `=` and then the exact path, command line, address or tool; `*` for all of the kind
"""

from __future__ import annotations

import re
from typing import Literal, get_args

import msgspec

from ..model.failures import invalid_param

RuleScope = Literal["chat", "project", "user"]
Effect = Literal["allow", "ask", "deny"]
PermissionKind = Literal["read", "edit", "run", "fetch", "mcp", "app-tool"]
"""What a permission is requested for."""

KindPattern = Literal[PermissionKind, "*"]
RuleSource = Literal["app", "answer", "file"]

MAX_PATTERN = 1024
"""Characters of a pattern: several times the longest that people write by hand."""

MAX_EXACT = 16 * 1024
"""Characters of an exact pattern, which may be a whole command line."""

EVERYTHING = ("*", "**")

CODE_PREFIX = "run_code:"
"""The prefix of a pattern about code, before the language."""


class Rule(msgspec.Struct, frozen=True):
    """`folder` restricts an exact command to the folder where it was permitted, relative to the project; None is its
    top.
    """

    id: str
    scope: RuleScope
    effect: Effect
    kind: KindPattern
    pattern: str
    folder: str | None = None
    source: RuleSource = "app"

    @property
    def exact(self) -> str | None:
        """The only subject that it matches."""
        return self.pattern[1:] if self.pattern.startswith("=") else None


def checked_rule(
    *,
    id: str,
    scope: str,
    effect: str,
    kind: str,
    pattern: str,
    folder: str | None = None,
    source: str = "app",
) -> Rule:
    """Return the rule; raise an error that names the wrong field."""
    for name, value, kinds in (
        ("scope", scope, get_args(RuleScope)),
        ("effect", effect, get_args(Effect)),
        ("kind", kind, get_args(KindPattern)),
        ("source", source, get_args(RuleSource)),
    ):
        if value not in kinds:
            raise invalid_param(name, f"must be one of {', '.join(kinds)}")
    if not isinstance(id, str) or not 0 < len(id) <= 200:
        raise invalid_param("id", "must be text of 1 to 200 characters")
    _check_pattern(kind, pattern)
    if folder is not None and (not isinstance(folder, str) or "\0" in folder or len(folder) > MAX_EXACT):
        raise invalid_param("folder", "must be a folder, relative to the project")
    return msgspec.convert(
        {
            "id": id,
            "scope": scope,
            "effect": effect,
            "kind": kind,
            "pattern": pattern,
            "folder": folder,
            "source": source,
        },
        Rule,
    )


def parse_rule_text(text: str) -> tuple[str, str]:
    """Return kind and pattern of a rule as settings spell it: `run(git log *)`, `edit(src/**)`, `*`."""
    if text == "*":
        return "*", "*"
    match = re.fullmatch(r"([a-z-]+)\((.+)\)", text, re.DOTALL)
    kinds = [kind for kind in get_args(KindPattern) if kind != "*"]
    if not match or match[1] not in kinds:
        raise invalid_param(
            "rule",
            f"{text[:80]!r} is not a rule; write a kind ({', '.join(kinds)}) and a pattern, as in run(git log *), or *",
        )
    _check_pattern(match[1], match[2])
    return match[1], match[2]


def rule_text(kind: str, pattern: str) -> str:
    """Return the text that `parse_rule_text` reads."""
    return "*" if kind == "*" else f"{kind}({pattern})"


def _check_pattern(kind: str, pattern: str) -> None:
    if not isinstance(pattern, str) or not pattern.strip("= \t\n"):
        raise invalid_param("pattern", "must say what the rule speaks of; * is everything of the kind")
    exact = pattern.startswith("=")
    if len(pattern) > (MAX_EXACT + 1 if exact else MAX_PATTERN):
        raise invalid_param("pattern", f"has more than {MAX_EXACT if exact else MAX_PATTERN} characters")
    if "\0" in pattern or (not exact and not pattern.isprintable()):
        raise invalid_param(
            "pattern", "has control or invisible characters; write = and the exact text to mean one"
        )
    if kind == "*" and pattern != "*":
        raise invalid_param("pattern", "must be * for a rule of every kind")
    if exact or pattern in EVERYTHING:
        return
    checks = {"read": _check_path, "edit": _check_path, "run": _check_words, "fetch": _check_address}
    checks.get(kind, _check_tool)(pattern)


def _check_path(pattern: str) -> None:
    if "\\" in pattern:
        raise invalid_param(
            "pattern", "has a backslash; separate names by / and write = before a name with * in it"
        )
    if pattern.startswith("!"):
        raise invalid_param(
            "pattern", "begins with !, which is not known here; write a rule with the opposite effect"
        )
    if pattern.startswith("~") or ".." in pattern.split("/"):
        raise invalid_param("pattern", "must be relative to the project, or absolute, without ~ and ..")
    if any("**" in name and name != "**" for name in pattern.split("/")):
        raise invalid_param("pattern", "has ** within a name; it must be alone between slashes, as in src/**")


def _check_words(pattern: str) -> None:
    if any(char in ";|&<>`\"'\\\n" for char in pattern):
        raise invalid_param(
            "pattern", "must be the plain words of one command; write = and the whole line to allow just that"
        )
    if pattern != pattern.strip():
        raise invalid_param("pattern", "begins or ends with a blank")
    if re.match(r"run_code\b", pattern) and not re.fullmatch(rf"{CODE_PREFIX}([a-z]+|\*)( \*)?", pattern):
        raise invalid_param("pattern", "must name a language, as in run_code:python, or run_code:* for any")


def _check_address(pattern: str) -> None:
    if any(char.isspace() or char in "@\\" for char in pattern):
        raise invalid_param("pattern", "must be a host or an address without user name, blank and backslash")
    scheme, found, _ = pattern.partition("://")
    if found and scheme not in ("http", "https"):
        raise invalid_param("pattern", "must begin with http:// or https:// when it is an address")
    host = (pattern.partition("://")[2] if found else pattern).partition("/")[0]
    if not re.fullmatch(r"(\*|(\*\.)?[^*/]+)", host) or (not found and "/" in pattern):
        raise invalid_param(
            "pattern", "must be a host, as in example.com or *.example.com, or a whole address"
        )


def _check_tool(pattern: str) -> None:
    if pattern.count("/") > 1 or any(char.isspace() for char in pattern):
        raise invalid_param("pattern", "must be server/tool, as in github/* or notes/search")
