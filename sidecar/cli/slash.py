"""The lines of the terminal chat that begin with a slash: which it obeys itself, and what completes them.

All others are the sidecar's: it answers its own commands, refuses those that there are not, and sends the rest to the
model. A command never reaches the model.
"""

from __future__ import annotations

import difflib
import os
import shlex
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from sidecar_protocol.messages import CommandInfo

MAX_COMPLETIONS = 200
"""Files of a folder that are offered: more fill the screen and help nobody."""

PATH_COMMANDS = ("open", "close", "pin", "unpin")

HELP = {
    "help": ("", "this list"),
    "new": ("", "begin another chat"),
    "retry": ("[here]", "answer the last prompt anew; `here` goes on with an unfinished answer"),
    "history": ("[N]", "the last N turns (20)"),
    "title": ("[TEXT]", "give the chat a title; without a text, an automatic one"),
    "model": ("[NAME]", "choose the model of this chat; without a name, list them"),
    "mode": ("[MODE]", "what goes without asking: ask, accept-edits, read-only or auto"),
    "quit": ("", "leave (also Ctrl-D)"),
}


class Slash(NamedTuple):
    """A line that was typed: a command of the terminal's own with its argument, or what goes to the sidecar."""

    command: str | None
    text: str


def read(line: str) -> Slash:
    name, _, rest = line[1:].partition(" ")
    if line.startswith("/") and name in HELP:
        return Slash(name, rest.strip())
    return Slash(None, line)


def help_lines(commands: Iterable[CommandInfo]) -> list[str]:
    """Both lists as one; a name that is in both is obeyed here."""
    rows = [(f"/{name} {argument}", what) for name, (argument, what) in HELP.items()]
    rows += [
        (f"/{each.name} {each.arguments}", each.description) for each in commands if each.name not in HELP
    ]
    rows.append(("//text", "send a text that begins with a slash"))
    width = max(len(usage.strip()) for usage, _ in rows)
    return [f"{usage.strip():<{width}}  {what}" for usage, what in rows]


def unknown(name: str, commands: Iterable[CommandInfo]) -> str:
    """What to say of a command that there is not, with the nearest of both lists."""
    known = [*HELP, *(each.name for each in commands)]
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    remedy = f"Did you mean /{near[0]}?" if near else "/help lists the commands."
    return f"There is no command /{name}. {remedy} (//{name} sends it as text.)"


class Completer:
    """Completes a line for `readline`: names of commands, and paths behind those that take one."""

    def __init__(
        self,
        buffer: Callable[[], str],
        commands: Callable[[], list[CommandInfo]],
        project: Callable[[], str | None],
    ) -> None:
        self._buffer = buffer
        self._commands = commands
        self._project = project
        self._found: list[str] = []

    def __call__(self, text: str, state: int) -> str | None:
        # `readline` drops what a completer raises, and with it the line that is being typed is left as it is.
        if state == 0:
            self._found = list(self._completions(self._buffer()))
        return self._found[state] if state < len(self._found) else None

    def _completions(self, line: str) -> Iterator[str]:
        name, blank, rest = line.removeprefix("/").partition(" ")
        if not line.startswith("/"):
            return
        if not blank:
            names = dict.fromkeys([*HELP, *(each.name for each in self._commands())])
            yield from (f"/{each}" for each in names if each.startswith(name))
        elif name in PATH_COMMANDS and (project := self._project()) is not None:
            typed = rest.lstrip()
            yield from (f"/{name} {path}" for path in _paths(project, typed.lstrip("'")))


def _paths(project: str, typed: str) -> Iterator[str]:
    """The paths of the project that begin so; a folder ends with a slash, and blanks stand in quotes."""
    folder, _, start = typed.rpartition("/")
    try:
        entries = sorted(os.scandir(os.path.join(project, folder)), key=lambda entry: entry.name)
    except (OSError, ValueError):
        return
    found = [
        entry
        for entry in entries
        if entry.name.startswith(start) and (start.startswith(".") or not entry.name.startswith("."))
    ]
    for entry in found[:MAX_COMPLETIONS]:
        path = f"{folder}/{entry.name}" if folder else entry.name
        if entry.name.isprintable():
            yield f"{_open_quote(path)}/" if entry.is_dir() else shlex.quote(path)


def _open_quote(path: str) -> str:
    """The path of a folder, in which one goes on to type: a quote that it needs is closed by its file."""
    return path if shlex.quote(path) == path else f"'{path}"
