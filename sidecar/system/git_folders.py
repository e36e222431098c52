"""Finds what makes git run programs, wherever a repository has it: its folders, and files of the project that its
hooks and its configuration name.

Git follows a `.git` file to another folder, a linked work tree to a common one, links to scripts of the project, and
`core.hooksPath`, `include.path` and commands of its configuration anywhere. Reads small files; runs nothing. Blocking.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress

from .folders import holds
from .safe_open import FileRefused, read_regular

GIT_NAMES = ("hooks", "config", "config.worktree", "commondir", "modules")
"""In git's own folder: what makes git run programs, or read its configuration elsewhere."""

WORK_TREE_NAMES = ("config.worktree", "commondir")
"""The same in the folder that a common one has for each linked work tree."""

MAX_POINTER = 8 * 1024
"""Bytes of a file that names a folder."""

MAX_CONFIG = 256 * 1024
"""Bytes of a configuration; a longer one is not read."""

MAX_LISTED = 200
"""Hooks, work trees and included files of one repository."""

_SECTION = re.compile(r'^\s*\[\s*([\w.-]+)\s*(?:"(?:\\.|[^"\\])*")?\s*\]')
_ENTRY = re.compile(r"^\s*([A-Za-z][\w-]*)\s*=\s*(.*)$")
_SPLIT = re.compile(r"""[\s;&|()<>!"'=]+""")
_FILE = re.compile(r"(?=.*[/.])[\w.][\w./+-]*")
"""A word that may be the path of a script: with a folder or a suffix, and no URL, address or option."""

_DATA = frozenset(
    {
        *("url", "pushurl", "fetch", "push", "remote", "merge", "name", "email", "template", "worktree"),
        *("excludesfile", "description", "signingkey"),
    }
)
"""Keys whose values are no programs, though they may be spelled like a file of the project."""

GitLink = tuple[str, str]
"""A path in git's folder, and the path elsewhere that git reads or runs for it."""


def is_git_folder(names: Sequence[str] | set[str]) -> bool:
    """Return whether git takes a folder with these names for a repository."""
    return "HEAD" in names and ("commondir" in names or ("objects" in names and "refs" in names))


def git_folders(git: str) -> list[str]:
    """Return the folders that a `.git` leads to, as real paths: its own, and the one it shares with others."""
    own = os.path.realpath(git)
    if os.path.isfile(own):
        named = _pointer(own, "gitdir:")
        own = os.path.realpath(os.path.join(os.path.dirname(own), named)) if named else ""
    common = _pointer(os.path.join(own, "commondir"))
    shared = os.path.realpath(os.path.join(own, common)) if common else own
    return [folder for folder in dict.fromkeys((own, shared)) if os.path.isdir(folder)]


def work_trees(folder: str) -> list[str]:
    """Return the folders that a repository has for its linked work trees."""
    return [path for path in _listed(os.path.join(folder, "worktrees")) if os.path.isdir(path)]


def enclosing(folder: str) -> str | None:
    """Return the nearest `.git` of a folder or of one above it."""
    while True:
        git = os.path.join(folder, ".git")
        if os.path.lexists(git):
            return git
        folder, below = os.path.dirname(folder), folder
        if folder == below:
            return None


def links(git: str) -> list[GitLink]:
    """Return what is outside of git's folders and makes git run programs; `git` is a `.git`, or a bare repository.

    The targets may be missing: git would read them as soon as they exist.
    """
    folders = git_folders(git)
    tops = dict.fromkeys([os.path.dirname(git), *map(os.path.dirname, folders), *folders])
    found: dict[GitLink, None] = {}
    for folder in folders:
        for path in _steering(folder):
            if os.path.islink(path):
                found[path, os.path.realpath(path)] = None
        for name in ("config", "config.worktree"):
            found.update(dict.fromkeys(_named(os.path.join(folder, name), folder, list(tops))))
    return [link for link in found if not any(holds(folder, link[1]) for folder in folders)]


def _steering(folder: str) -> Iterator[str]:
    for name in GIT_NAMES:
        yield os.path.join(folder, name)
    yield from _listed(os.path.join(folder, "hooks"))


def _named(config: str, folder: str, tops: Sequence[str]) -> Iterator[GitLink]:
    """Return what a configuration names, and those that it includes."""
    waiting = [config]
    for path in waiting:
        for section, key, value in _entries(path):
            value = os.path.expanduser(value)
            if section.startswith("include") and key == "path":
                target = os.path.realpath(os.path.join(os.path.dirname(path), value))
                yield os.path.join(folder, "config"), target
                if target not in waiting and len(waiting) < MAX_LISTED:
                    waiting.append(target)
            elif (section, key) == ("core", "hookspath"):
                for top in tops:
                    yield os.path.join(folder, "hooks"), os.path.realpath(os.path.join(top, value))
            elif (section, key) == ("core", "attributesfile"):
                for top in tops:
                    yield os.path.join(folder, "config"), os.path.realpath(os.path.join(top, value))
            elif key not in _DATA:
                for target in _files(value, tops):
                    yield os.path.join(folder, "config"), target


def _files(value: str, tops: Sequence[str]) -> Iterator[str]:
    """Return the files that a command names: existing ones, and missing ones that are spelled like a file."""
    for word in dict.fromkeys((value, *_SPLIT.split(value))):
        for top in tops if word else ():
            path = os.path.realpath(os.path.join(top, word))
            if os.path.isfile(path) or (_FILE.fullmatch(word) and not os.path.lexists(path)):
                yield path


def _entries(path: str) -> Iterator[tuple[str, str, str]]:
    """Return section, key and value of a configuration, read generously: what git would not accept is harmless."""
    try:
        text = read_regular(path, MAX_CONFIG).decode(errors="surrogateescape")
    except FileRefused:
        return
    section = ""
    for line in text.replace("\\\n", "").splitlines():
        while header := _SECTION.match(line):
            section, line = header[1].casefold(), line[header.end() :]
        if entry := _ENTRY.match(line):
            yield section, entry[1].casefold(), _unquoted(entry[2])


def _unquoted(text: str) -> str:
    """Return a value without quotes, escapes and comment."""
    found: list[str] = []
    quoted = False
    letters = iter(text)
    for letter in letters:
        if letter == '"':
            quoted = not quoted
        elif letter in "#;" and not quoted:
            break
        elif letter != "\0":
            found.append(next(letters, "") if letter == "\\" else letter)
    return "".join(found).strip()


def _pointer(path: str, keyword: str = "") -> str:
    try:
        text = read_regular(path, MAX_POINTER).decode(errors="surrogateescape")
    except FileRefused:
        return ""
    named = text.removeprefix(keyword).strip() if text.startswith(keyword) else ""
    return "" if "\0" in named else named


def _listed(folder: str) -> list[str]:
    with suppress(OSError):
        return [os.path.join(folder, name) for name in sorted(os.listdir(folder))[:MAX_LISTED]]
    return []
