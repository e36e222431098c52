"""Ask the user a question of the model in the terminal: choices by their number, and text.

A form is a flat JSON Schema object. Does not know who asks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.text import Text
from sidecar_client import InputAnswer, InputRequest

from .keys import IsOver, forget_typed, read_line
from .permission import NO_LONGER_ASKED
from .safe_text import one_line, visible_text
from .tool_view import INDENT

YES, NO = ("y", "yes", "true"), ("n", "no", "false")


class _Declined(Exception):
    """The user declines to answer."""


class _NoLongerNeeded(Exception):
    """Nobody waits for the answer any more."""


def ask_input(console: Console, request: InputRequest, over: IsOver) -> InputAnswer | None:
    """Return the user's answer; None when it is `over` before there is one."""
    forget_typed()
    form = _Form(console, request, over)
    try:
        return InputAnswer(action="accept", values=form.fill_in())
    except _Declined:
        console.print(Text(f"{INDENT}→ no answer", "dim"))
        return InputAnswer(action="decline")
    except _NoLongerNeeded:
        console.print(Text(f"\n{INDENT}{NO_LONGER_ASKED}", "yellow"))
        return None


class _Form:
    def __init__(self, console: Console, request: InputRequest, over: IsOver) -> None:
        self._console = console
        self._request = request
        self._over = over
        members = request.schema.get("properties")
        self._members: dict[str, Any] = members if isinstance(members, dict) else {}
        required = request.schema.get("required")
        self._required: list[Any] = required if isinstance(required, list) else []

    def fill_in(self) -> dict[str, Any]:
        lines = visible_text(self._request.message).split("\n")
        self._say()
        self._say(Text.assemble(("? ", "bold yellow"), (lines[0], "bold")))
        for line in lines[1:]:
            self._say(Text(f"{INDENT}{line}", "bold"))
        both = self._choice_or_words()
        return self._one_of(*both) if both else self._each()

    def _choice_or_words(self) -> tuple[str, str] | None:
        """Return the fields of a form that takes one of some choices or, instead, free text."""
        choice = [name for name, member in self._members.items() if _choices(member)]
        words = [name for name, member in self._members.items() if not _choices(member)]
        if (
            (len(choice), len(words)) != (1, 1)
            or self._required
            or _type(self._members[words[0]]) != "string"
        ):
            return None
        return choice[0], words[0]

    def _one_of(self, choice: str, words: str) -> dict[str, Any]:
        choices = _choices(self._members[choice])
        self._list(choices)
        said = self._line("A number, or your own words (Enter alone: no answer): ")
        if not said:
            raise _Declined
        chosen = _pick_choice(said, choices)
        return {words: said} if chosen is None else {choice: chosen}

    def _each(self) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for name, member in self._members.items():
            value = self._value(name, member)
            if value is not None:
                values[name] = value
            elif name in self._required:
                raise _Declined
        if not values:
            raise _Declined
        return values

    def _value(self, name: str, member: object) -> Any:
        """Return the value that was entered for a field; None for nothing."""
        choices = _choices(member)
        self._list(choices)
        while said := self._line(self._prompt(name, member)):
            value = _parse_value(said, member)
            if value is not None:
                return value
            self._say(Text(f"{INDENT}{_expected_text(member)}", "yellow"))
        return None

    def _prompt(self, name: str, member: object) -> str:
        alone = "no answer" if len(self._members) == 1 or name in self._required else "leave it out"
        label = "" if len(self._members) == 1 else f"{one_line(_label(name, member))}: "
        return f"{label}{_expected_text(member)} (Enter alone: {alone}): "

    def _list(self, choices: list[Any]) -> None:
        for number, choice in enumerate(choices, 1):
            self._say(Text.assemble(INDENT, (f"{number:>2}", "bold cyan"), f"  {one_line(str(choice))}"))

    def _line(self, prompt: str) -> str:
        self._console.print(Text(INDENT + prompt, "dim"), end="", soft_wrap=True)
        said = read_line(self._over)
        if said is None:
            raise _NoLongerNeeded
        return visible_text(said).strip()

    def _say(self, line: Text | None = None) -> None:
        self._console.print(line or "", soft_wrap=True)


def _choices(member: object) -> list[Any]:
    given = member.get("enum") if isinstance(member, Mapping) else None
    return given if isinstance(given, list) else []


def _type(member: object) -> str:
    return str(member.get("type", "string")) if isinstance(member, Mapping) else "string"


def _label(name: str, member: object) -> str:
    titles = (member.get("title"), member.get("description")) if isinstance(member, Mapping) else ()
    return next((title for title in titles if isinstance(title, str) and title), name)


def _expected_text(member: object) -> str:
    if _choices(member):
        return f"A number from 1 to {len(_choices(member))}"
    return {"boolean": "yes or no", "integer": "A whole number", "number": "A number"}.get(
        _type(member), "Your answer"
    )


def _parse_value(said: str, member: object) -> Any:
    """Parse a line as this field; None when it is invalid."""
    kind = _type(member)
    if choices := _choices(member):
        return _pick_choice(said, choices)
    if kind == "boolean":
        return True if said.lower() in YES else False if said.lower() in NO else None
    if kind in ("integer", "number"):
        try:
            value = int(said) if kind == "integer" else float(said)
        except ValueError:
            return None
        return value if math.isfinite(value) else None
    return said


def _pick_choice(said: str, choices: list[Any]) -> Any:
    """Return the choice with this number or this text."""
    if said.isdecimal() and 1 <= int(said) <= len(choices):
        return choices[int(said) - 1]
    return next((choice for choice in choices if str(choice) == said), None)
