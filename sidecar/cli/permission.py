"""Asks a person in the terminal for leave: shows what would be done, and reads one key.

What is shown comes from models, files and commands, so none of it is obeyed by the terminal. Decides nothing itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import msgspec
from rich.console import Console
from rich.control import Control
from rich.segment import ControlType
from rich.text import Text
from sidecar_client import PermissionAnswer, PermissionRequest
from sidecar_protocol.messages import Decision

from .calls import INDENT, diff_lines
from .excerpts import beginning, exact, one_line
from .keys import INTERRUPT, Over, read_line, single_keys

MIN_ROWS = 6
"""Rows for a diff or a command on however small a screen: less of it could not be judged."""

FRAME_ROWS = 14
"""Rows for all else: title, reason, folder, notes, and a row for each choice."""

MAX_FEEDBACK = 4000
"""Characters for the model: more than a terminal takes as one line."""

NO_LONGER_ASKED = "No longer asked: it was decided elsewhere, or the turn is over."

SHOW_ALL = "v"


_UP_AND_ERASE = Control((ControlType.CURSOR_UP, 1), (ControlType.ERASE_IN_LINE, 2))


class Choice(msgspec.Struct, frozen=True):
    """What a key means."""

    words: str
    decision: Decision
    feedback: bool = False
    stop: bool = False


CHOICES = {
    "y": Choice("yes, this once", "allow_once"),
    "c": Choice("yes, in this chat", "allow_chat"),
    "a": Choice("always in this project", "allow_always"),
    "n": Choice("no", "deny_once"),
    "d": Choice("never in this project", "deny_always"),
    "f": Choice("no, and tell the model why", "deny_once", feedback=True),
    "s": Choice("no, and stop", "deny_once", stop=True),
}


def ask_permission(
    console: Console, request: PermissionRequest, project: str | None, over: Over
) -> PermissionAnswer | None:
    """The person's answer; None when it is `over` before there is one. Ctrl-C is raised."""
    card = Card(console, request, _folder(request, project))
    # Keys first, then words: one that is pressed as soon as the question can be read is not lost.
    with single_keys() as key:
        card.show()
        choice = _chosen(card, key, over)
        card.put_away()
    feedback = _feedback(console, over) if choice is not None and choice.feedback else ""
    if choice is None or feedback is None:
        console.print(Text(INDENT + NO_LONGER_ASKED, "yellow"))
        return None
    console.print(Text(f"{INDENT}→ {choice.words}", "dim"))
    return PermissionAnswer(
        decision=choice.decision,
        feedback=feedback[:MAX_FEEDBACK] or None,
        then="stop" if choice.stop else "continue",
    )


class Card:
    """A question for leave as it stands on the screen."""

    def __init__(self, console: Console, request: PermissionRequest, folder: str | None) -> None:
        self._console = console
        self._request = request
        self._folder = folder
        self._rules = {option.decision: option.rule for option in request.options}
        rows = max(MIN_ROWS, console.height - FRAME_ROWS)
        self._menu_rows = 0
        self._matter = _matter(request)
        self._excerpt = beginning(self._matter, rows, max(1, console.width - len(INDENT)))

    @property
    def choices(self) -> dict[str, Choice]:
        return {key: choice for key, choice in CHOICES.items() if choice.decision in self._rules}

    @property
    def cut(self) -> bool:
        return bool(self._excerpt.note)

    def show(self) -> None:
        request = self._request
        self._line()
        self._line(Text.assemble(("? ", "bold yellow"), (one_line(request.title), "bold")))
        if request.reason:
            self._line(Text(f"{INDENT}asked because {one_line(request.reason)}", "dim"))
        self._lines(self._excerpt.lines)
        if self.cut:
            self._line(Text(f"{INDENT}{self._excerpt.note}; [{SHOW_ALL}] shows all", "yellow"))
        if self._folder:
            self._line(Text(f"{INDENT}in {one_line(self._folder)}", "dim"))
        self.show_choices()

    def show_all(self) -> None:
        self.put_away()
        self._lines(self._matter)
        self.show_choices()

    def show_choices(self, remark: str = "") -> None:
        width = max(len(choice.words) for choice in self.choices.values())
        for key, choice in self.choices.items():
            line = Text.assemble(INDENT, (f"[{key}]", "bold cyan"), f" {choice.words}")
            if rule := self._rules.get(choice.decision):
                used = len(INDENT) + len("[y] ") + width + 2
                shown = one_line(rule, max(20, self._console.width - used))
                line.append(" " * (width - len(choice.words) + 2)).append(shown, "dim")
            self._menu_line(line)
        if remark:
            self._menu_line(Text(INDENT + remark, "yellow"))

    def remind(self) -> None:
        keys = [*self.choices, *([SHOW_ALL] if self.cut else [])]
        self.put_away()
        self.show_choices(f"Press one of {', '.join(keys)}.")

    def put_away(self) -> None:
        """Take the choices off the screen; the question itself stays to be read."""
        if not self._console.is_dumb_terminal:
            for _ in range(self._menu_rows):
                self._console.control(_UP_AND_ERASE)
        self._menu_rows = 0

    def _menu_line(self, line: Text) -> None:
        line.truncate(self._console.width, overflow="ellipsis")
        self._line(line)
        self._menu_rows += 1

    def _lines(self, lines: Sequence[Text]) -> None:
        for line in lines:
            self._line(Text(INDENT).append_text(line))

    def _line(self, line: Text | None = None) -> None:
        self._console.print(line or "", soft_wrap=True)


def _chosen(card: Card, key: Callable[[Over], str | None], over: Over) -> Choice | None:
    while (pressed := key(over)) is not None:
        if pressed == INTERRUPT:
            raise KeyboardInterrupt
        choice = card.choices.get(pressed.lower())
        if choice is not None:
            return choice
        if pressed.lower() == SHOW_ALL and card.cut:
            card.show_all()
        else:
            card.remind()
    return None


def _feedback(console: Console, over: Over) -> str | None:
    console.print(Text(f"{INDENT}Tell the model: ", "bold"), end="")
    said = read_line(over)
    if said is None:
        console.print()
    return said if said is None else exact(said).strip()


def _matter(request: PermissionRequest) -> list[Text]:
    """What would be done, line by line."""
    if request.changes:
        return [line for change in request.changes for line in diff_lines(change)]
    lines = exact(request.subject).split("\n")
    if request.kind != "run":
        return [Text(line) for line in lines]
    if request.language is not None:
        return [Text(lines[0], "dim"), *(Text(line, "bold") for line in lines[1:])]
    return [Text(f"{'$' if number == 0 else ' '} {line}", "bold") for number, line in enumerate(lines)]


def _folder(request: PermissionRequest, project: str | None) -> str | None:
    """Where a command would run."""
    if request.folder is None or project is None:
        return None
    return os.path.normpath(os.path.join(project, request.folder))
