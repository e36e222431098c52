"""Lines `@path` in an instruction file: the text of the named file replaces the line.

Not recursive: lines in that text are not expanded. A line counts only outside of code, alone, and when it looks like
a path, unlike `@someone` and `@decorator`. A failed import stays as it is written and is noted. The caller opens
files.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from .rule import MalformedRule

MAX_IMPORTS = 20
"""Imports of one file. More would not fit in a prompt."""

_LINE = re.compile(r"\s{0,3}@(\S*[./]\S*)\s*")
_CODE = re.compile(r"\s{0,3}(`{3,}|~{3,})")


class ExpandedText(msgspec.Struct, frozen=True):
    text: str
    notes: tuple[str, ...] = ()


def expand_imports(text: str, load: Callable[[str], str | None]) -> ExpandedText:
    """Expand the imports. `load` returns the text of a file, None when it is sent anyway, and raises `MalformedRule`
    on failure.
    """
    if "@" not in text:
        return ExpandedText(text)
    lines: list[str] = []
    notes: list[str] = []
    done: set[str] = set()
    fence = ""
    for line in text.split("\n"):
        fence = _fence_after(line, fence)
        found = _LINE.fullmatch(line)
        if fence or not found:
            lines.append(line)
            continue
        name = found[1]
        try:
            if len(done) == MAX_IMPORTS and name not in done:
                raise MalformedRule(f"{MAX_IMPORTS} imports of one file are the most")
            lines.append("" if name in done else load(name) or "")
            done.add(name)
        except MalformedRule as error:
            lines.append(line)
            notes.append(f"@{name} was not imported: {error}")
    return ExpandedText("\n".join(lines).strip("\n"), tuple(notes))


def _fence_after(line: str, fence: str) -> str:
    """Return the fence that is open after this line: as many of the same character, or more, close it."""
    found = _CODE.match(line)
    if not found:
        return fence
    if not fence:
        return found[1]
    return "" if found[1].startswith(fence) and not line.strip(" `~") else fence
