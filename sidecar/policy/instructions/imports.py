"""Lines `@path` in a file with instructions: the named file's text takes the line's place.

Once: lines in that text are not followed. A line is one only outside of code, alone, and when it looks like a
path, as `@someone` and `@decorator` do not. What cannot be imported is left as it is written and noted.
Opening files is the caller's.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from .rule import Malformed

MAX_IMPORTS = 20
"""Of one file. More is a book, and no part of it would fit a prompt."""

_LINE = re.compile(r"\s{0,3}@(\S*[./]\S*)\s*")
_CODE = re.compile(r"\s{0,3}(`{3,}|~{3,})")


class Imported(msgspec.Struct, frozen=True):
    text: str
    notes: tuple[str, ...] = ()


def imported(text: str, load: Callable[[str], str | None]) -> Imported:
    """`load` gives the text of a named file, None when it is sent anyway, and raises `Malformed` when it cannot be."""
    if "@" not in text:
        return Imported(text)
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
                raise Malformed(f"{MAX_IMPORTS} imports of one file are the most")
            lines.append("" if name in done else load(name) or "")
            done.add(name)
        except Malformed as error:
            lines.append(line)
            notes.append(f"@{name} was not imported: {error}")
    return Imported("\n".join(lines).strip("\n"), tuple(notes))


def _fence_after(line: str, fence: str) -> str:
    """The fence that is open after this line: as many of the same sign, or more, close it."""
    found = _CODE.match(line)
    if not found:
        return fence
    if not fence:
        return found[1]
    return "" if found[1].startswith(fence) and not line.strip(" `~") else fence
