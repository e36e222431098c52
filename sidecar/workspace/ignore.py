"""Decides which files of a project a search skips: by its `.gitignore` files, as git reads them.

A walk asks folder by folder, and an ignored folder is not entered. It reads the `.gitignore` of every folder
on the path and `.git/info/exclude`, only through the workspace, and not the user's own git settings.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..model.failures import Refused
from .globs import BadPattern, Glob, parse_glob
from .paths import ConfinedPath, FolderEntry, Workspace

MAX_FILE = 256 * 1024
"""Bytes of one rule file: a hundred times the longest that people write. A longer one is not read."""

MAX_RULES = 2000
"""Rules read from one file: each is checked for every name below."""

GIT_FOLDER = ".git"
RULES_FILE = ".gitignore"


class _Rule(msgspec.Struct, frozen=True):
    glob: Glob
    hides: bool


class _Level(msgspec.Struct, frozen=True):
    """The rules of one folder, which has `depth` names, and those of the folders above it. The last matching
    rule decides, so they are stored from the last to the first."""

    depth: int
    rules: tuple[_Rule, ...]
    above: _Level | None


class Ignore:
    """The rules for one walk from `start`. A folder that the caller names is searched even if it is ignored:
    then the rules above it do not apply."""

    def __init__(self, workspace: Workspace, start: str = ".") -> None:
        self._workspace = workspace
        self._start = workspace.resolve(start)
        self._levels: dict[tuple[str, ...], _Level | None] = {}
        self._hidden: dict[tuple[str, ...], bool] = {self._start.parts: False}
        level: _Level | None = None
        for depth in range(len(self._start.parts)):
            parts = self._start.parts[:depth]
            level = self._read(parts, level)
            if _hides(level, self._start.parts[: depth + 1], folder=True):
                level = None
        self._above = level

    def without_ignored(self, place: ConfinedPath, entries: Sequence[FolderEntry]) -> list[FolderEntry]:
        """Return the entries of a folder that are not ignored. The folder is the start, or one that was
        returned before."""
        names = {entry.name for entry in entries}
        level = self._level(place.parts, has_rules=RULES_FILE in names or GIT_FOLDER in names)
        if level is None:
            return [entry for entry in entries if entry.name != GIT_FOLDER]
        return [
            entry
            for entry in entries
            if entry.name != GIT_FOLDER
            and not _hides(level, (*place.parts, entry.name), folder=entry.kind == "folder")
        ]

    def hides(self, parts: tuple[str, ...]) -> bool:
        """Return whether a file below the start is ignored, itself or by a folder on its path."""
        if parts[:-1] not in self._hidden:
            for end in range(len(self._start.parts) + 1, len(parts)):
                self._hidden[parts[:end]] = self._hidden[parts[: end - 1]] or self._is_hidden(parts[:end])
        return self._hidden[parts[:-1]] or self._is_hidden(parts, folder=False)

    def _is_hidden(self, parts: tuple[str, ...], *, folder: bool = True) -> bool:
        return parts[-1] == GIT_FOLDER or _hides(self._level(parts[:-1]), parts, folder=folder)

    def _level(self, parts: tuple[str, ...], *, has_rules: bool = True) -> _Level | None:
        """Return the rules that apply in the start or a folder below it; those of its parent are already
        cached."""
        if parts not in self._levels:
            above = self._above if parts == self._start.parts else self._levels[parts[:-1]]
            self._levels[parts] = self._read(parts, above) if has_rules else above
        return self._levels[parts]

    def _read(self, parts: tuple[str, ...], above: _Level | None) -> _Level | None:
        rules = self._rules((*parts, RULES_FILE)) + self._rules((*parts, GIT_FOLDER, "info", "exclude"))
        return _Level(len(parts), rules, above) if rules else above

    def _rules(self, parts: tuple[str, ...]) -> tuple[_Rule, ...]:
        path = "/".join((self._start.root, *parts))
        try:
            text = self._workspace.read_bytes(path, MAX_FILE).decode("utf-8", "surrogateescape")
        except Refused:
            return ()
        rules = (_rule(line) for line in text.removeprefix("\ufeff").split("\n"))
        found = [rule for rule in rules if rule]
        return tuple(reversed(found[:MAX_RULES]))


def _hides(level: _Level | None, parts: tuple[str, ...], *, folder: bool) -> bool:
    """Return what the nearest matching rule says; without one, nothing is ignored."""
    while level is not None:
        names = parts[level.depth :]
        for rule in level.rules:
            if (folder or not rule.glob.folders_only) and rule.glob.matches(names):
                return rule.hides
        level = level.above
    return False


def _rule(line: str) -> _Rule | None:
    """Parse a line of a rule file; None for a comment, an empty line, and what git does not understand."""
    whole = line.removesuffix("\r")
    text = whole.rstrip(" ")
    if text.endswith("\\") and len(whole) > len(text):
        text += " "  # an escaped space is part of the name
    if not text or text.startswith("#"):
        return None
    hides = not text.startswith("!")
    try:
        return _Rule(parse_glob(text if hides else text[1:]), hides)
    except BadPattern:
        return None
