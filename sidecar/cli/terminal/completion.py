"""Complete what is typed in the terminal chat: commands, their paths, and `@file` in a prompt. Reads folders only."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator
from itertools import islice

import msgspec
from sidecar_protocol.messages import CommandInfo

from .slash import HELP, PATH_COMMANDS

MAX_COMPLETIONS = 200
"""Files that are offered: more fill the screen and help nobody."""

MAX_VISITED = 20_000
"""Files and folders that are visited to find a name anywhere in the project: a key must not take seconds."""

_TYPED_MENTION = re.compile(r'(?:^|(?<=\s))@("[^"\n]*|[^\s"]*)\Z')
_MENTION = re.compile(r'(?:^|(?<=\s))@(?:"([^"\n]+)"|([^\s"]+))')
_AFTER_PATH = re.compile(r"(:\d+(-\d+)?)?[.,;:!?)\]}'\"]*\Z")
_SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "venv", "target", "dist", "build"})


class _Path(msgspec.Struct, frozen=True):
    """A path of the project; that of a folder ends with a slash."""

    text: str
    folder: bool


class Completer:
    """Completes the text before the cursor."""

    def __init__(self, commands: Callable[[], list[CommandInfo]], project: Callable[[], str | None]) -> None:
        self._commands = commands
        self._project = project

    def __call__(self, text: str) -> list[str]:
        """Return what the whole text may become."""
        if (typed := _TYPED_MENTION.search(text)) and (project := self._project()) is not None:
            begun = text[: typed.start()]
            found = _paths(project, typed[1].removeprefix('"')) or _named(project, typed[1])
            return [f"{begun}@{_mention(path)}" for path in found]
        return list(self._commands_and_paths(text))

    def _commands_and_paths(self, line: str) -> Iterator[str]:
        name, blank, rest = line.removeprefix("/").partition(" ")
        if not line.startswith("/"):
            return
        if not blank:
            names = dict.fromkeys([*HELP, *(each.name for each in self._commands())])
            yield from (f"/{each}" for each in names if each.startswith(name))
        elif name in PATH_COMMANDS and (project := self._project()) is not None:
            typed = rest.lstrip()
            yield from (f"/{name} {_quoted(path)}" for path in _paths(project, typed.lstrip("'")))


def mentioned_files(text: str, project: str | None) -> list[str]:
    """Return the files of the project that a prompt names by `@file`; `@` before anything else is text."""
    if project is None:
        return []
    named = (quoted or _without_position(project, plain) for quoted, plain in _MENTION.findall(text))
    return list(dict.fromkeys(path for path in named if _is_file(project, path)))


def _without_position(project: str, path: str) -> str:
    """Return a path without lines and punctuation behind it, unless the file has that name."""
    return path if _is_file(project, path) else _AFTER_PATH.sub("", path)


def _is_file(project: str, path: str) -> bool:
    try:
        return os.path.isfile(os.path.join(project, path))
    except ValueError:
        return False


def _paths(project: str, typed: str) -> list[_Path]:
    """Return the paths of the project with this prefix."""
    folder, _, start = typed.rpartition("/")
    try:
        entries = sorted(os.scandir(os.path.join(project, folder)), key=lambda entry: entry.name)
    except (OSError, ValueError):
        return []
    found = [
        _Path(f"{folder}/{entry.name}" if folder else entry.name, entry.is_dir())
        for entry in entries
        if entry.name.startswith(start) and (start.startswith(".") or not entry.name.startswith("."))
    ]
    return [path for path in found if path.text.isprintable()][:MAX_COMPLETIONS]


def _named(project: str, part: str) -> list[_Path]:
    """Return the files anywhere in the project whose name begins with this."""
    if not part or "/" in part:
        return []
    found = (
        path for path in islice(_files(project), MAX_VISITED) if path.rpartition("/")[2].startswith(part)
    )
    return [_Path(path, False) for path in islice(found, MAX_COMPLETIONS) if path.isprintable()]


def _files(project: str) -> Iterator[str]:
    """Yield the files of the project; hidden folders and those of tools are left out."""
    for folder, folders, names in os.walk(project):
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and name not in _SKIPPED_FOLDERS
        )
        inside = os.path.relpath(folder, project).replace(os.sep, "/")
        yield from (name if inside == "." else f"{inside}/{name}" for name in sorted(names))


def _mention(path: _Path) -> str:
    """Return a path after `@`. That of a folder has an open quote: typing continues in it."""
    if not re.search(r"\s", path.text):
        return f"{path.text}/" if path.folder else path.text
    return f'"{path.text}/' if path.folder else f'"{path.text}"'


def _quoted(path: _Path) -> str:
    """Return a path after a command, quoted if it must be. That of a folder has an open quote."""
    quoted = shlex.quote(path.text)
    if not path.folder:
        return quoted
    return f"{path.text}/" if quoted == path.text else f"'{path.text}/"
