"""Finds the files with rules and reads them: a project's through the workspace, the user's as they are.

A project is never walked as a whole: looked at are its top and the folders above the paths in play, for names
that are known beforehand, and the folders of rules in them. A file that cannot be read or understood becomes
a rule with a `problem`, and the others hold. Which rules apply to a prompt is not decided here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress

from ...model.failures import Refused
from ...system.files import FileRefused, read_regular
from ...workspace.paths import Entry, Kind, Workspace
from ..protected import secret
from .parsing import Format, text_of
from .rule import Instruction, Malformed
from .shelf import MAX_FILE, Load, Shelf

PLAIN = ("AGENTS.md", "CLAUDE.md", "GEMINI.md", ".github/copilot-instructions.md", ".cursorrules")
"""Text as it is, in the order in which it is read."""

IMPORTING = frozenset(PLAIN[:3])
RULE_FOLDERS: tuple[tuple[str, Format], ...] = ((".cursor/rules", "cursor"), (".sidecar/rules", "own"))

MAX_FOLDERS = 500
"""Folders of the project looked at: those of all open files, ten deep, and more."""


def read(
    workspace: Workspace | None,
    user_folder: str | None,
    paths: Sequence[str] = (),
    further: Sequence[str] = (),
) -> list[Instruction]:
    """All rules, the project's first, each by its path. `user_folder` is the folder of the user's own rules, which need
    not be there; `further` are files and folders that the user has named, which must.

    `paths` are those in play: nested rules are looked for in the folders above them, and nowhere else.
    """
    found = [] if workspace is None else _Project(workspace).rules(paths)
    found += _users(user_folder, further)
    return sorted(found, key=lambda one: (one.scope != "project", one.path))


class _Project:
    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._shelf = Shelf("project", self._bytes)

    def rules(self, paths: Sequence[str]) -> list[Instruction]:
        for folder in self._folders(paths):
            there = self._present(folder)
            prefix = f"{folder}/" if folder else ""
            for name in PLAIN:
                if _first(name) in there:
                    load = self._loader(folder) if name in IMPORTING else None
                    self._shelf.add(prefix + name, "plain", folder, load)
            for name, format in RULE_FOLDERS:
                if _first(name) in there:
                    self._add_beneath(prefix + name, format, folder)
        return self._shelf.rules

    def _folders(self, paths: Sequence[str]) -> list[str]:
        """The project's top, the folders above the paths, and the paths themselves where they are folders."""
        found: set[tuple[str, ...]] = set()
        for path in paths:
            with suppress(Refused):  # a path in play may be anything that somebody has named
                place = self._workspace.resolve(path)
                if place.root == self._workspace.root:
                    found.update(place.parts[:end] for end in range(1, len(place.parts) + 1))
        nearest = sorted(found, key=lambda parts: (len(parts), parts))[:MAX_FOLDERS]
        return ["", *map("/".join, nearest)]

    def _present(self, folder: str) -> set[str]:
        """Which of the known names the folder has, if it is one. Most have none: looking is cheaper than opening."""
        try:
            descriptor = self._workspace.open_dir(folder or ".")
        except Refused:
            return set()
        try:
            return {name for name in _FIRST if _is_in(descriptor, name)}
        finally:
            os.close(descriptor)

    def _add_beneath(self, top: str, format: Format, folder: str) -> None:
        levels = ((place.shown, entries) for place, entries in self._workspace.walk(top))
        try:
            self._shelf.add_all(levels, format, folder, top.count("/"))
        except Refused as refused:
            if refused.name != "not_found":
                self._shelf.problem(top, _in_words(refused), folder)

    def _loader(self, folder: str) -> Load:
        """For one file with imports: their paths begin at its folder, and all of them share one bound."""
        room = MAX_FILE

        def load(name: str) -> str | None:
            nonlocal room
            path = os.path.join(folder, name)
            if self._is_sent(path, folder):
                return None
            try:
                data = self._bytes(path, room)
            except FileNotFoundError as error:
                raise Malformed("there is no such file") from error
            room -= len(data)
            return text_of(data)

        return load

    def _is_sent(self, path: str, folder: str) -> bool:
        """Whether the file holds wherever the importing one does, and so is in the prompt already."""
        try:
            place = self._workspace.resolve(path)
        except Refused as refused:
            raise Malformed(_in_words(refused)) from refused
        above = folder.split("/") if folder else []
        prefixes = ("".join(f"{name}/" for name in above[:end]) for end in range(len(above) + 1))
        return any(place.shown == prefix + name for prefix in prefixes for name in PLAIN)

    def _bytes(self, path: str, max_bytes: int = MAX_FILE) -> bytes:
        try:
            data = self._workspace.read_bytes(path, max_bytes)
            # A link may have led to another name than the one that was asked for.
            real = self._workspace.relative(self._workspace.real(path))
        except Refused as refused:
            if refused.name == "not_found":
                raise FileNotFoundError(path) from refused
            raise Malformed(_in_words(refused)) from refused
        if secret(path) or secret(real):
            raise Malformed("by its name it holds keys or passwords, which are not sent unasked")
        return data


def _first(path: str) -> str:
    return path.partition("/")[0]


_FIRST = tuple(dict.fromkeys(map(_first, (*PLAIN, *(name for name, _ in RULE_FOLDERS)))))


def _is_in(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


def _users(folder: str | None, further: Sequence[str]) -> list[Instruction]:
    shelf = Shelf("user", _user_bytes)
    for top in dict.fromkeys((*([folder] if folder else ()), *further)):
        if top != folder and not os.path.isdir(top):
            if not shelf.add(top, "own"):
                shelf.problem(top, "there is no such file or folder")
            continue
        try:
            shelf.add_all(_walk(top), "own", deep=top.count("/"))
        except OSError as error:
            shelf.problem(top, f"the folder cannot be read: {error.strerror}")
    return shelf.rules


def _user_bytes(path: str) -> bytes:
    try:
        return read_regular(path, MAX_FILE)
    except FileRefused as refused:
        if isinstance(refused.__cause__, FileNotFoundError):
            raise FileNotFoundError(path) from refused
        raise Malformed(str(refused)) from refused


def _walk(top: str) -> Iterator[tuple[str, list[Entry]]]:
    """As the workspace walks, in the user's own folder; nothing when it is not there."""
    waiting = [top]
    while waiting:
        here = waiting.pop()
        entries = _listed(here)
        yield here, entries
        waiting.extend(f"{here}/{entry.name}" for entry in reversed(entries) if entry.kind == "folder")


def _listed(folder: str) -> list[Entry]:
    try:
        with os.scandir(folder) as found:
            return sorted((_entry(item) for item in found), key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _entry(item: os.DirEntry[str]) -> Entry:
    is_folder = item.is_dir(follow_symlinks=False)
    kind: Kind = "link" if item.is_symlink() else "folder" if is_folder else "file"
    return Entry(item.name, kind, 0)


def _in_words(refused: Refused) -> str:
    """The refusal in the middle of a sentence."""
    return refused.message[0].lower() + refused.message[1:]
