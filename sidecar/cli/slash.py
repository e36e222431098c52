"""The commands of the terminal chat that begin with a slash. They never reach the model."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import NamedTuple


class Slash(NamedTuple):
    """A line that was typed: a command with its argument, or text for the model."""

    command: str | None
    text: str


HELP = {
    "help": ("", "this list"),
    "new": ("", "begin another chat"),
    "retry": ("[here]", "answer the last prompt anew; `here` goes on with an unfinished answer"),
    "history": ("[N]", "the last N turns (20)"),
    "title": ("[TEXT]", "give the chat a title; without a text, an automatic one"),
    "model": ("[NAME]", "choose the model of this chat; without a name, list them"),
    "quit": ("", "leave (also Ctrl-D)"),
}


class Unknown(Exception):
    """No such command; the message names the nearest."""


def read(line: str) -> Slash:
    """What a line means. `//text` is text that begins with a slash."""
    if line.startswith("//"):
        return Slash(None, line[1:])
    if not line.startswith("/"):
        return Slash(None, line)
    name, _, rest = line[1:].partition(" ")
    if name not in HELP:
        raise Unknown(_unknown(name))
    return Slash(name, rest.strip())


def help_lines() -> list[str]:
    width = max(len(f"/{name} {argument}") for name, (argument, _) in HELP.items())
    lines = [f"{f'/{name} {argument}':<{width}}  {what}" for name, (argument, what) in HELP.items()]
    return [*lines, f"{'//text':<{width}}  send a text that begins with a slash"]


def completer(buffer: Callable[[], str]) -> Callable[[str, int], str | None]:
    """Completes command names at the beginning of a line."""

    def complete(text: str, state: int) -> str | None:
        line = buffer()
        found = [f"/{name}" for name in HELP if line.startswith("/") and f"/{name}".startswith(line)]
        return found[state] if state < len(found) else None

    return complete


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name, HELP, n=1, cutoff=0.4)
    remedy = f"Did you mean /{near[0]}?" if near else "/help lists the commands."
    return f"There is no command /{name}. {remedy} (//{name} sends it as text.)"
