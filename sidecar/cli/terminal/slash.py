"""The lines of the terminal chat that begin with a slash: which it handles itself, and their help.

All others go to the sidecar: it runs its own commands, refuses unknown ones, and sends the rest to the model. A
command never reaches the model.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import NamedTuple

from sidecar_protocol.messages import CommandInfo

from sidecar.text.suggest import did_you_mean

PATH_COMMANDS = ("open", "close", "pin", "unpin")

MIN_DESCRIPTION = 24
"""Cells for a description beside its command; on a narrower screen it is below."""

HELP = {
    "help": ("", "List the commands."),
    "new": ("", "Start another chat."),
    "retry": ("[here]", "Answer the last prompt again; `here` continues an unfinished answer."),
    "history": ("[N]", "Show the last N turns (default: 20)."),
    "title": ("[TEXT]", "Give the chat a title; without a text, an automatic one."),
    "model": ("[NAME]", "Choose the model of this chat; without a name, list them."),
    "engine": ("[NAME]", "Choose what answers in this chat; without a name, list the engines."),
    "mode": ("[MODE]", "Say what needs no permission: ask, accept-edits, read-only or auto."),
    "quit": ("", "Exit (also Ctrl-D)."),
}


class SlashLine(NamedTuple):
    """A typed line: a command of the terminal with its argument, or input for the sidecar."""

    command: str | None
    text: str


def parse_line(line: str) -> SlashLine:
    name, _, rest = line[1:].partition(" ")
    if line.startswith("/") and name in HELP:
        return SlashLine(name, rest.strip())
    return SlashLine(None, line)


def is_command(text: str) -> bool:
    """Return whether a prompt is a command of either list, or looks like one: `/name`, not a path or `//text`."""
    name = text.removeprefix("/").split(maxsplit=1)[:1]
    return text.startswith("/") and bool(name) and name[0][0].isalpha() and "/" not in name[0]


def help_lines(commands: Iterable[CommandInfo], width: int | None = None) -> list[str]:
    """Return both lists as one, wrapped at words to a `width`; a name in both is handled here."""
    rows = [(f"/{name} {argument}", what) for name, (argument, what) in HELP.items()]
    rows += [
        (f"/{each.name} {each.arguments}", each.description) for each in commands if each.name not in HELP
    ]
    rows.append(("//text", "Send a text that begins with a slash."))
    rows = [(usage.strip(), what) for usage, what in rows]
    longest = max(len(usage) for usage, _ in rows)
    if width is None:
        return [f"{usage:<{longest}}  {what}" for usage, what in rows]
    column = min(longest, max(len(f"/{name} {argument}") for name, (argument, _) in HELP.items()) + 4) + 2
    return [line for usage, what in rows for line in _help_row(usage, what, column, width)]


def _help_row(usage: str, what: str, column: int, width: int) -> list[str]:
    """Return one command: the description beside it, or below if the command is long or the screen narrow."""
    if width - column < MIN_DESCRIPTION:
        return [*_wrap(usage, width, "", "    "), *_wrap(what, width, "  ", "  ")]
    beside = " " * column
    if len(usage) + 2 > column:
        return [usage, *_wrap(what, width, beside, beside)]
    return _wrap(what, width, f"{usage:<{column}}", beside)


def _wrap(text: str, width: int, first: str, others: str) -> list[str]:
    return textwrap.wrap(text, width, initial_indent=first, subsequent_indent=others, break_on_hyphens=False)


def unknown_command(name: str, commands: Iterable[CommandInfo]) -> str:
    """Return the error for an unknown command, with the nearest name of both lists."""
    known = [*HELP, *(each.name for each in commands)]
    near = did_you_mean(name, known, similarity=0.5)
    remedy = f"Did you mean /{near[0]}?" if near else "/help lists the commands."
    return f"There is no command /{name}. {remedy} (//{name} sends it as text.)"
