"""Parses a unified diff, as models and tools write it, into hunks.

Pure. Tolerates wrong or missing counts, blank lines that lost their space, and text around the diff.
Unsupported operations (a rename, a binary patch) are refused by name. Does not know what the hunks are
applied to.
"""

from __future__ import annotations

import os
import re

import msgspec

from .diff import ESCAPES, parse_hunk_header

MAX_HUNKS = 2000
"""Of one file. Each is compared with all others, because no two may change the same lines."""

Lines = list[tuple[str, str]]


class PatchFailed(Exception):
    """The diff cannot be parsed, or does not fit; the message says where, and what is there instead."""


class Hunk(msgspec.Struct, frozen=True):
    """Lines with their sign (` `, `-` or `+`) and their line end; `number` counts a file's hunks from 1.

    `start` is the stated position, as the number of lines before it; None when there is none.
    """

    number: int
    start: int | None
    lines: tuple[tuple[str, str], ...]

    @property
    def old(self) -> list[str]:
        return [line for sign, line in self.lines if sign != "+"]

    def context(self) -> tuple[int, int]:
        """Return how many lines of context it begins and ends with; the end has none in a hunk without
        changes."""
        signs = "".join(sign for sign, _ in self.lines)
        lead = len(signs) - len(signs.lstrip(" "))
        return lead, len(signs[lead:]) - len(signs[lead:].rstrip(" "))


class FilePatch(msgspec.Struct):
    """The hunks for one file. A path is None for /dev/null; both are "" when the diff names no file."""

    old_path: str | None
    new_path: str | None
    hunks: list[Hunk] = []


def parse_patch(patch: str) -> list[FilePatch]:
    """Return the files that a diff changes, in its order."""
    lines = patch.removesuffix("\n").split("\n")
    if all(line.endswith("\r") for line in lines if line):
        # The diff itself was saved with these line ends; a diff of such a file has them only in its hunks.
        lines = [line.removesuffix("\r") for line in lines]
    files = _Reader(lines).read()
    if not files:
        raise PatchFailed(
            "It has no hunk: a unified diff has lines that begin with @@, and then -, + or a space."
        )
    return files


class _Reader:
    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._at = 0
        self._files: list[FilePatch] = []
        self._announced: FilePatch | None = None
        """What `diff --git` said of a file; its names may follow."""

    def read(self) -> list[FilePatch]:
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.startswith("@@"):
                self._hunk(line)
                continue
            if self._header_at(self._at):
                old, new = _paths(line[4:], self._lines[self._at + 1][4:])
                if self._announced is not None and self._files[-1] is self._announced:
                    self._files.pop()
                self._announced = None
                self._files.append(FilePatch(old, new))
                self._at += 1
            else:
                self._git_line(line)
            self._at += 1
        return [file for file in self._files if file.hunks or None in (file.old_path, file.new_path)]

    def _git_line(self, line: str) -> None:
        """Read a line of git's header before the hunks; a file that is created or deleted empty has nothing
        else."""
        if line.startswith(("rename from ", "copy from ", "GIT binary patch", "Binary files ")):
            raise PatchFailed(f"This cannot be carried out: {line[:100]}")
        named = _GIT_NAMES.fullmatch(line)
        if named:
            self._announced = FilePatch(named[1], named[1])
            self._files.append(self._announced)
        elif self._announced is not None:
            if line.startswith("new file mode "):
                self._announced.old_path = None
            elif line.startswith("deleted file mode "):
                self._announced.new_path = None

    def _hunk(self, head: str) -> None:
        if not self._files:
            self._files.append(FilePatch("", ""))
        hunks = self._files[-1].hunks
        self._announced = None
        numbers = parse_hunk_header(head)
        self._at += 1
        lines = self._body(numbers[1], numbers[3]) if numbers else self._body(None, None)
        number = len(hunks) + 1
        if not lines:
            raise PatchFailed(f"Hunk {number} has no lines.")
        if number > MAX_HUNKS:
            raise PatchFailed(f"It has more than {MAX_HUNKS} hunks for one file.")
        start = None
        if numbers:
            # With a count of 0 the number is that of the line before.
            start = max(0, numbers[0] - 1) if numbers[1] else numbers[0]
        hunks.append(Hunk(number, start, tuple(lines)))

    def _body(self, old: int | None, new: int | None) -> Lines:
        """Return the lines of a hunk: those that its counts state, and what else can only belong to it."""
        lines: Lines = []
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.startswith("\\"):
                if lines:
                    lines[-1] = (lines[-1][0], lines[-1][1].removesuffix("\n"))
            elif self._ends(line, old, new):
                break
            else:
                sign = line[:1] or " "
                lines.append((sign, line[1:] + "\n"))
                old = old - (sign != "+") if old is not None else None
                new = new - (sign != "-") if new is not None else None
            self._at += 1
        return lines

    def _ends(self, line: str, old: int | None, new: int | None) -> bool:
        """Return whether the hunk ends before this line, while its counts still expect so many lines."""
        if line[:1] not in ("", " ", "-", "+"):
            return True
        due = old is not None and new is not None and (old > 0 or new > 0)
        if not line:
            return not due and not self._goes_on()
        if due or old is None:
            # A removed line `-- x` and an added one `++ x` look like the names of the next file.
            return self._header_at(self._at, hunk=True) and (old, new) != (1, 1)
        return line == "-- " or self._header_at(self._at)

    def _goes_on(self) -> bool:
        """Return whether more of a hunk follows after blank lines, which then are context that lost its
        space."""
        for at in range(self._at, len(self._lines)):
            if self._lines[at]:
                return self._lines[at][0] in " -+" and not self._header_at(at)
        return False

    def _header_at(self, at: int, *, hunk: bool = False) -> bool:
        """Return whether the names of a file are here, followed by a hunk."""
        heads = ("--- ", "+++ ", "@@") if hunk else ("--- ", "+++ ")
        there = self._lines[at : at + len(heads)]
        return len(there) == len(heads) and all(map(str.startswith, there, heads))


_GIT_NAMES = re.compile(r"diff --git a/(.+) b/\1")
_ESCAPED = re.compile(rb'\\([abtnvfr"\\]|[0-7]{3})')
_UNESCAPES = {letter: char.encode() for char, letter in ESCAPES.items()}


def _paths(old: str, new: str) -> tuple[str | None, str | None]:
    """Return the two names, without the prefixes a/ and b/ if both have them, or one has and the other is no
    file."""
    first, second = _name(old), _name(new)
    if (first is None or first.startswith("a/")) and (second is None or second.startswith("b/")):
        return first and first[2:], second and second[2:]
    return first, second


def _name(text: str) -> str | None:
    if text.startswith('"') and (end := text.rfind('"')) > 0:
        try:
            return os.fsdecode(_ESCAPED.sub(_unescape, os.fsencode(text[1:end])))
        except UnicodeEncodeError as error:
            raise PatchFailed(f"It names a file that no file can be called: {text[:80]!r}") from error
    name = text.split("\t")[0].strip()
    return None if name == "/dev/null" else name


def _unescape(found: re.Match[bytes]) -> bytes:
    code = found[1]
    return bytes([int(code, 8) & 0xFF]) if code.isdigit() else _UNESCAPES[code]
