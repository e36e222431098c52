"""Ask the user for permission in the terminal: show the action, and read one key.

The text comes from models, files and commands, so control sequences are escaped. Decides nothing itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

import msgspec
from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.control import Control
from rich.segment import ControlType
from rich.text import Text
from sidecar_client import PermissionAnswer, PermissionRequest
from sidecar_protocol.messages import Decision

from .keys import INTERRUPT, IsOver, read_line, single_keys
from .safe_text import first_lines, one_line, visible_text
from .tool_view import INDENT, Sentence, diff_lines

MIN_ROWS = 6
"""Rows for a diff or a command on however small a screen: less could not be judged."""

FRAME_ROWS = 15
"""Rows for everything else: title, reason, folder, sandbox, notes, and one row per choice."""

MAX_FEEDBACK = 4000
"""Characters for the model: more than a terminal accepts as one line."""

NO_LONGER_ASKED = "No longer asked: it was decided elsewhere, or the turn is over."

MAX_RULE_ROWS = 3
MIN_RULE_CELLS = 10

SHOW_ALL = "v"

_RULE_INDENT = INDENT * 3


_UP_AND_ERASE = Control((ControlType.CURSOR_UP, 1), (ControlType.ERASE_IN_LINE, 2))


class KeyChoice(msgspec.Struct, frozen=True):
    """The meaning of a key."""

    words: str
    decision: Decision
    feedback: bool = False
    stop: bool = False


CHOICES = {
    "y": KeyChoice("yes, this once", "allow_once"),
    "c": KeyChoice("yes, in this chat", "allow_chat"),
    "a": KeyChoice("always in this project", "allow_always"),
    "n": KeyChoice("no", "deny_once"),
    "d": KeyChoice("never in this project", "deny_always"),
    "f": KeyChoice("no, and tell the model why", "deny_once", feedback=True),
    "s": KeyChoice("no, and stop", "deny_once", stop=True),
}


def ask_permission(
    console: Console, request: PermissionRequest, project: str | None, over: IsOver
) -> PermissionAnswer | None:
    """Return the user's answer; None when it is `over` before there is one. Ctrl-C is raised."""
    card = PermissionCard(console, request, _folder(request, project))
    # Switch to single keys before printing: one that is pressed as soon as the question is visible is not lost.
    with single_keys() as key:
        card.show()
        choice = _read_choice(card, key, over)
        card.erase_choices()
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


class PermissionCard:
    """A permission request on the screen."""

    def __init__(self, console: Console, request: PermissionRequest, folder: str | None) -> None:
        self._console = console
        self._request = request
        self._folder = folder
        self._rules = {option.decision: option.rule for option in request.options}
        self._menu_rows = 0
        below = len(list(self._choice_lines())) - len(self.choices)
        rows = max(MIN_ROWS, console.height - FRAME_ROWS - below)
        self._matter = _action_lines(request)
        self._excerpt = first_lines(self._matter, rows, max(1, console.width - len(INDENT)))

    @property
    def choices(self) -> dict[str, KeyChoice]:
        return {key: choice for key, choice in CHOICES.items() if choice.decision in self._rules}

    @property
    def cut(self) -> bool:
        return bool(self._excerpt.note)

    def show(self) -> None:
        request = self._request
        self._line()
        self._words(Text.assemble(("? ", "bold yellow"), (one_line(request.title), "bold")))
        if request.reason:
            self._words(Text(f"{INDENT}asked because {one_line(request.reason)}", "dim"))
        self._lines(self._excerpt.lines)
        if self.cut:
            self._words(Text(f"{INDENT}{self._excerpt.note}; [{SHOW_ALL}] shows all", "yellow"))
        if self._folder:
            self._line(Text(f"{INDENT}in {one_line(self._folder)}", "dim"))
        if request.sandbox and not request.sandbox.active:
            why = f": {one_line(request.sandbox.reason)}" if request.sandbox.reason else ""
            self._words(Text(f"{INDENT}not in a sandbox{why}", "yellow"))
        self.show_choices()

    def show_all(self) -> None:
        self.erase_choices()
        self._lines(self._matter)
        self.show_choices()

    def show_choices(self, remark: str = "") -> None:
        for line in self._choice_lines():
            self._menu_line(line)
        if remark:
            self._menu_line(Text(INDENT + remark, "yellow"))

    def _choice_lines(self) -> Iterator[Text]:
        """Yield the choices, each with its rule: beside it, or below where the screen is too narrow."""
        width = max(len(choice.words) for choice in self.choices.values())
        above = ""
        for key, choice in self.choices.items():
            line = Text.assemble(INDENT, (f"[{key}]", "bold cyan"), f" {choice.words}")
            rule = one_line(self._rules.get(choice.decision) or "")
            beside = " " * (width - len(choice.words) + 2) + rule
            if rule and line.cell_len + cell_len(beside) < self._console.width:
                yield line.append(beside, "dim")
            elif rule and rule == above:
                yield line.append(" (the same)", "dim")
            else:
                yield line
                yield from self._rule_lines(rule)
                above = rule or above

    def _rule_lines(self, rule: str) -> list[Text]:
        """Return a rule on lines of its own: what is allowed for good must be readable."""
        if not rule:
            return []
        width = max(MIN_RULE_CELLS, self._console.width - len(_RULE_INDENT) - 1)
        rows = chop_cells(rule, width)
        cut = rows if len(rows) <= MAX_RULE_ROWS else [*rows[: MAX_RULE_ROWS - 1], "…"]
        return [Text(_RULE_INDENT + row, "dim") for row in cut]

    def remind(self) -> None:
        keys = [*self.choices, *([SHOW_ALL] if self.cut else [])]
        self.erase_choices()
        self.show_choices(f"Press one of {', '.join(keys)}.")

    def erase_choices(self) -> None:
        """Remove the choices from the screen; the question itself stays."""
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

    def _words(self, text: Text) -> None:
        """Print a sentence, wrapped at words and indented."""
        self._console.print(Sentence(text))

    def _line(self, line: Text | None = None) -> None:
        self._console.print(line or "", soft_wrap=True)


def _read_choice(card: PermissionCard, key: Callable[[IsOver], str | None], over: IsOver) -> KeyChoice | None:
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


def _feedback(console: Console, over: IsOver) -> str | None:
    console.print(Text(f"{INDENT}Tell the model: ", "bold"), end="")
    said = read_line(over)
    if said is None:
        console.print()
    return said if said is None else visible_text(said).strip()


def _action_lines(request: PermissionRequest) -> list[Text]:
    """Return the action, line by line."""
    if request.changes:
        return [line for change in request.changes for line in diff_lines(change)]
    lines = visible_text(request.subject).split("\n")
    if request.kind != "run":
        return [Text(line) for line in lines]
    if request.language is not None:
        return [Text(lines[0], "dim"), *(Text(line, "bold") for line in lines[1:])]
    return [Text(f"{'$' if number == 0 else ' '} {line}", "bold") for number, line in enumerate(lines)]


def _folder(request: PermissionRequest, project: str | None) -> str | None:
    """Return the working folder of a command."""
    if request.folder is None or project is None:
        return None
    return os.path.normpath(os.path.join(project, request.folder))
