"""Standing answers to what a tool may do: how a rule is spelled, checked, and which subjects it speaks of.

A rule that gives leave is read narrowly and one that stops is read widely: `edit(docs/*)` allows the files directly in
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

from ..model.failures import invalid

Scope = Literal["chat", "project", "user"]
Effect = Literal["allow", "ask", "deny"]
Kind = Literal["read", "edit", "run", "fetch", "mcp", "app-tool", "*"]
Source = Literal["app", "answer", "file"]

MAX_PATTERN = 1024
"""Characters of a pattern: several times the longest that anybody writes by hand."""

MAX_EXACT = 16 * 1024
"""Of an exact one, which may be a whole command line."""

EVERYTHING = ("*", "**")

CODE = "run_code:"
"""Begins a pattern that speaks of code, before the language."""


class Rule(msgspec.Struct, frozen=True):
    """`folder` binds leave for an exact command to where it was given, relative to the project; None is its top."""

    id: str
    scope: Scope
    effect: Effect
    kind: Kind
    pattern: str
    folder: str | None = None
    source: Source = "app"

    @property
    def exact(self) -> str | None:
        """The one subject that it speaks of."""
        return self.pattern[1:] if self.pattern.startswith("=") else None

    @property
    def gives_leave(self) -> bool:
        return self.effect == "allow"


def checked(
    *,
    id: str,
    scope: str,
    effect: str,
    kind: str,
    pattern: str,
    folder: str | None = None,
    source: str = "app",
) -> Rule:
    """The rule, or a refusal that names the field that is wrong."""
    for name, value, kinds in (
        ("scope", scope, get_args(Scope)),
        ("effect", effect, get_args(Effect)),
        ("kind", kind, get_args(Kind)),
        ("source", source, get_args(Source)),
    ):
        if value not in kinds:
            raise invalid(name, f"must be one of {', '.join(kinds)}")
    if not isinstance(id, str) or not 0 < len(id) <= 200:
        raise invalid("id", "must be text of 1 to 200 characters")
    _check_pattern(kind, pattern)
    if folder is not None and (not isinstance(folder, str) or "\0" in folder or len(folder) > MAX_EXACT):
        raise invalid("folder", "must be a folder, relative to the project")
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


def from_text(text: str) -> tuple[str, str]:
    """Kind and pattern of a rule as settings spell it: `run(git log *)`, `edit(src/**)`, `*`."""
    if text == "*":
        return "*", "*"
    match = re.fullmatch(r"([a-z-]+)\((.+)\)", text, re.DOTALL)
    kinds = [kind for kind in get_args(Kind) if kind != "*"]
    if not match or match[1] not in kinds:
        raise invalid(
            "rule",
            f"{text[:80]!r} is no rule; write a kind ({', '.join(kinds)}) and a pattern, as in run(git log *), or *",
        )
    _check_pattern(match[1], match[2])
    return match[1], match[2]


def to_text(kind: str, pattern: str) -> str:
    """As `from_text` reads it."""
    return "*" if kind == "*" else f"{kind}({pattern})"


def _check_pattern(kind: str, pattern: str) -> None:
    if not isinstance(pattern, str) or not pattern.strip("= \t\n"):
        raise invalid("pattern", "must say what the rule speaks of; * is everything of the kind")
    exact = pattern.startswith("=")
    if len(pattern) > (MAX_EXACT + 1 if exact else MAX_PATTERN):
        raise invalid("pattern", f"has more than {MAX_EXACT if exact else MAX_PATTERN} characters")
    if "\0" in pattern or (not exact and not pattern.isprintable()):
        raise invalid(
            "pattern", "has control or invisible characters; write = and the exact text to mean one"
        )
    if kind == "*" and pattern != "*":
        raise invalid("pattern", "must be * for a rule of every kind")
    if exact or pattern in EVERYTHING:
        return
    checks = {"read": _check_path, "edit": _check_path, "run": _check_words, "fetch": _check_address}
    checks.get(kind, _check_tool)(pattern)


def _check_path(pattern: str) -> None:
    if "\\" in pattern:
        raise invalid(
            "pattern", "has a backslash; separate names by / and write = before a name with * in it"
        )
    if pattern.startswith("!"):
        raise invalid(
            "pattern", "begins with !, which is not known here; write a rule with the opposite effect"
        )
    if pattern.startswith("~") or ".." in pattern.split("/"):
        raise invalid("pattern", "must be relative to the project, or absolute, without ~ and ..")
    if any("**" in name and name != "**" for name in pattern.split("/")):
        raise invalid("pattern", "has ** within a name; it stands alone between slashes, as in src/**")


def _check_words(pattern: str) -> None:
    if any(char in ";|&<>`\"'\\\n" for char in pattern):
        raise invalid(
            "pattern", "must be the plain words of one command; write = and the whole line to allow just that"
        )
    if pattern != pattern.strip():
        raise invalid("pattern", "begins or ends with a blank")
    if re.match(r"run_code\b", pattern) and not re.fullmatch(rf"{CODE}([a-z]+|\*)( \*)?", pattern):
        raise invalid("pattern", "must name a language, as in run_code:python, or run_code:* for any")


def _check_address(pattern: str) -> None:
    if any(char.isspace() or char in "@\\" for char in pattern):
        raise invalid("pattern", "must be a host or an address without user name, blank and backslash")
    scheme, found, _ = pattern.partition("://")
    if found and scheme not in ("http", "https"):
        raise invalid("pattern", "must begin with http:// or https:// when it is an address")
    host = (pattern.partition("://")[2] if found else pattern).partition("/")[0]
    if not re.fullmatch(r"(\*|(\*\.)?[^*/]+)", host) or (not found and "/" in pattern):
        raise invalid("pattern", "must be a host, as in example.com or *.example.com, or a whole address")


def _check_tool(pattern: str) -> None:
    if pattern.count("/") > 1 or any(char.isspace() for char in pattern):
        raise invalid("pattern", "must be server/tool, as in github/* or notes/search")
