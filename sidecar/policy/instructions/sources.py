"""Find the files with rules and read them: those of a project through the workspace, the user's directly.

A project is never walked as a whole: only known names at its top and in the folders above the given paths, and the
rule folders there. A file that cannot be read or parsed becomes a rule with a `problem`, and the others apply. Does
not decide which rules apply to a prompt.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from ...model.failures import Refused
from ...system.safe_open import FileRefused, read_regular
from ...workspace.paths import FolderEntry, PathKind, Workspace
from ..protected import secret_reason
from .cache import MAX_FILE_BYTES, LoadImport, RuleCache
from .parsing import Format, rule_file_text
from .rule import Instruction, MalformedRule

PLAIN_FILES = ("AGENTS.md", "CLAUDE.md", "GEMINI.md", ".github/copilot-instructions.md", ".cursorrules")
"""Files of plain text, in the order in which they are read."""

FILES_WITH_IMPORTS = frozenset(PLAIN_FILES[:3])
RULE_FOLDERS: tuple[tuple[str, Format], ...] = ((".cursor/rules", "cursor"), (".sidecar/rules", "own"))

MAX_FOLDERS = 500
"""Folders of the project that are checked: those of all open files, ten deep, and more."""


def read_rules(
    workspace: Workspace | None,
    user_folder: str | None,
    paths: Sequence[str] = (),
    further: Sequence[str] = (),
    left_out: Callable[[str], str | None] | None = None,
) -> list[Instruction]:
    """Return all rules, the project's first, each by its path. `user_folder` is the folder of the user's own rules,
    which may be missing; `further` are files and folders that the user has named, which must exist.

    Nested rules are searched only in the folders above `paths`. `left_out` returns why a file of the project must not
    be read.
    """
    found = [] if workspace is None else _ProjectRules(workspace, left_out).rules(paths)
    found += _read_user_rules(user_folder, further)
    return sorted(found, key=lambda one: (one.scope != "project", one.path))


class _ProjectRules:
    def __init__(self, workspace: Workspace, left_out: Callable[[str], str | None] | None = None) -> None:
        self._workspace = workspace
        self._left_out = left_out
        self._cache = RuleCache("project", self._bytes)

    def rules(self, paths: Sequence[str]) -> list[Instruction]:
        for folder in self._folders(paths):
            there = self._names_present(folder)
            prefix = f"{folder}/" if folder else ""
            for name in PLAIN_FILES:
                if _first(name) in there:
                    load = self._loader(folder) if name in FILES_WITH_IMPORTS else None
                    self._cache.add(prefix + name, "plain", folder, load)
            for name, format in RULE_FOLDERS:
                if _first(name) in there:
                    self._add_beneath(prefix + name, format, folder)
        return self._cache.rules

    def _folders(self, paths: Sequence[str]) -> list[str]:
        """Return the top of the project, the folders above the paths, and those paths that are folders."""
        found: set[tuple[str, ...]] = set()
        for path in paths:
            with suppress(Refused):  # a path may be anything that somebody has named
                place = self._workspace.resolve(path)
                if place.root == self._workspace.root:
                    found.update(place.parts[:end] for end in range(1, len(place.parts) + 1))
        nearest = sorted(found, key=lambda parts: (len(parts), parts))[:MAX_FOLDERS]
        return ["", *map("/".join, nearest)]

    def _names_present(self, folder: str) -> set[str]:
        """Return which of the known names the folder has. Most have none: a lookup is cheaper than opening each."""
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
            self._cache.add_all(levels, format, folder, top.count("/"))
        except Refused as refused:
            if refused.name != "not_found":
                self._cache.problem(top, _refusal_message(refused), "unreadable", folder)

    def _loader(self, folder: str) -> LoadImport:
        """Return the loader for one file with imports: paths are relative to its folder, and all share one size
        limit.
        """
        space = MAX_FILE_BYTES

        def load(name: str) -> str | None:
            nonlocal space
            path = os.path.join(folder, name)
            if self._is_sent(path, folder):
                return None
            try:
                data = self._bytes(path, space)
            except FileNotFoundError as error:
                raise MalformedRule("there is no such file", "missing") from error
            space -= len(data)
            return rule_file_text(data)

        return load

    def _is_sent(self, path: str, folder: str) -> bool:
        """Return whether the file applies wherever the importing one does, and so is in the prompt already."""
        try:
            place = self._workspace.resolve(path)
        except Refused as refused:
            raise MalformedRule(_refusal_message(refused), "unreadable") from refused
        above = folder.split("/") if folder else []
        prefixes = ("".join(f"{name}/" for name in above[:end]) for end in range(len(above) + 1))
        return any(place.shown == prefix + name for prefix in prefixes for name in PLAIN_FILES)

    def _bytes(self, path: str, max_bytes: int = MAX_FILE_BYTES) -> bytes:
        try:
            data = self._workspace.read_bytes(path, max_bytes)
            # A link may have led to another name than the requested one.
            real = self._workspace.relative(self._workspace.real(path))
        except Refused as refused:
            if refused.name == "not_found":
                raise FileNotFoundError(path) from refused
            raise MalformedRule(_refusal_message(refused), "unreadable") from refused
        if secret_reason(path) or secret_reason(real):
            words = "by its name it holds keys or passwords, which are not sent unasked"
            raise MalformedRule(words, "withheld")
        reason = self._left_out(path) if self._left_out else None
        if reason:
            raise MalformedRule(reason, "withheld")
        return data


def _first(path: str) -> str:
    return path.partition("/")[0]


_FIRST = tuple(dict.fromkeys(map(_first, (*PLAIN_FILES, *(name for name, _ in RULE_FOLDERS)))))


def _is_in(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


def _read_user_rules(folder: str | None, further: Sequence[str]) -> list[Instruction]:
    cache = RuleCache("user", _user_bytes)
    for top in dict.fromkeys((*([folder] if folder else ()), *further)):
        if top != folder and not os.path.isdir(top):
            if not cache.add(top, "own"):
                cache.problem(top, "there is no such file or folder", "missing")
            continue
        try:
            cache.add_all(_walk(top), "own", deep=top.count("/"))
        except OSError as error:
            cache.problem(top, f"the folder cannot be read: {error.strerror}", "unreadable")
    return cache.rules


def _user_bytes(path: str) -> bytes:
    try:
        return read_regular(path, MAX_FILE_BYTES)
    except FileRefused as refused:
        if isinstance(refused.__cause__, FileNotFoundError):
            raise FileNotFoundError(path) from refused
        raise MalformedRule(str(refused), "unreadable") from refused


def _walk(top: str) -> Iterator[tuple[str, list[FolderEntry]]]:
    """Walk the user's own folder as the workspace walks a project; yield nothing when it does not exist."""
    waiting = [top]
    while waiting:
        here = waiting.pop()
        entries = _list_folder(here)
        yield here, entries
        waiting.extend(f"{here}/{entry.name}" for entry in reversed(entries) if entry.kind == "folder")


def _list_folder(folder: str) -> list[FolderEntry]:
    try:
        with os.scandir(folder) as found:
            return sorted((_entry(item) for item in found), key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _entry(item: os.DirEntry[str]) -> FolderEntry:
    is_folder = item.is_dir(follow_symlinks=False)
    kind: PathKind = "link" if item.is_symlink() else "folder" if is_folder else "file"
    return FolderEntry(item.name, kind, 0)


def _refusal_message(refused: Refused) -> str:
    """Return the refusal as part of a sentence."""
    return refused.message[0].lower() + refused.message[1:]
