"""One setting: its name, what fits it, and who may set it. Which settings there are stands in `keys`.

This floor is imported before anything heavy: it goes without `typing`, `dataclasses` and `re` (5 ms each).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Any, Literal

    Kind = Literal["text", "path", "integer", "seconds", "ratio", "flag", "texts", "paths"]
    Reach = Literal["any", "trusted", "never"]
    Value = str | int | float | tuple[str, ...] | dict[str, Any] | None

MAX_TEXTS = 1000
"""Entries of a list: rules are tried one by one at every call of a tool, and nobody oversees more."""

CLOSE = 0.75
"""How alike two names are, by difflib's measure, when one was probably meant: `max_stepz` is no `max_bytes`."""

_EXPECTED = {
    "path": "a path",
    "ratio": "a share of the window, from 0 to 1: 0.8 is four fifths",
    "flag": "true or false",
    "texts": "a list of texts",
    "paths": "a list of paths",
}


class Key:
    """One setting.

    `project` says whether a project's file may set it: always ("any"), once the user trusts the project
    ("trusted"), or not at all ("never": what holds for the whole process, which serves many projects).
    `files` is False for what only the environment and the command line may set. `each` tells whether a text fits
    in a list, and of a list that `adds`, no layer takes away what an earlier one says.
    """

    __slots__ = (
        "_each",
        "_words",
        "adds",
        "choices",
        "default",
        "doc",
        "environment",
        "files",
        "high",
        "kind",
        "low",
        "name",
        "project",
        "shown",
    )

    def __init__(
        self,
        name: str,
        kind: Kind,
        default: Value,
        doc: str,
        *,
        choices: tuple[str, ...] = (),
        low: int = 0,
        high: int = 0,
        project: Reach = "any",
        environment: str | None = None,
        files: bool = True,
        shown: str | None = None,
        words: str = "",
        each: Callable[[str], bool] | None = None,
        adds: bool = False,
    ) -> None:
        self.name = name
        self.kind: Kind = kind
        self.default = default
        self.doc = doc
        self.choices = choices
        self.low = low
        self.high = high
        self.project: Reach = project
        self.environment = environment
        self.files = files
        self.shown = shown
        self._words = words
        self._each = each or is_text
        self.adds = adds

    @property
    def expected(self) -> str:
        """What the value must be, in words."""
        if self._words:
            return self._words
        if self.choices:
            return "one of " + ", ".join(f'"{choice}"' for choice in self.choices)
        if self.kind == "integer":
            return f"a whole number from {self.low} to {self.high}"
        if self.kind == "seconds":
            return f"a number of seconds from {self.low} to {self.high}"
        return _EXPECTED.get(self.kind, "text that is not empty")

    @property
    def is_list(self) -> bool:
        return self.kind in ("texts", "paths")

    def narrow(self, value: object) -> Value:
        """The value as the program uses it, or None when it is not what is expected."""
        if self.kind == "integer":
            return value if type(value) is int and self.low <= value <= self.high else None
        if self.kind == "seconds":
            number = value if type(value) is int or type(value) is float else -1
            return float(number) if self.low <= number <= self.high else None
        if self.kind == "ratio":
            share = value if type(value) is int or type(value) is float else -1
            return float(share) if 0 < share <= 1 else None
        if self.kind == "flag":
            return value if isinstance(value, bool) else None
        if self.is_list:
            fits = isinstance(value, list | tuple) and len(value) <= MAX_TEXTS and self.misfit(value) is None
            return tuple(value) if fits else None  # type: ignore[arg-type]
        if not isinstance(value, str) or not is_text(value):
            return None
        return value if not self.choices or value in self.choices else None

    def misfit(self, values: Collection[object]) -> tuple[object] | None:
        """The first entry of a list that does not fit, alone in a tuple, since it may be anything."""
        return next(((one,) for one in values if not isinstance(one, str) or not self._each(one)), None)


def meant(name: str, candidates: Collection[str]) -> str | None:
    """What `name` was probably meant to be, as a question for a hint."""
    from difflib import get_close_matches

    # Whoever wrote the file also chose how long the name is, and difflib takes quadratic time.
    table, _, last = name.rpartition(".")
    nearby_wins = sorted(candidates, key=lambda candidate: candidate.rpartition(".")[0] == table)
    by_last = {candidate.rpartition(".")[2]: candidate for candidate in nearby_wins}
    close = [last] if last in by_last else get_close_matches(last[:64], by_last, 2, CLOSE)
    return f"Did you mean {' or '.join(f'`{by_last[found]}`' for found in close)}?" if close else None


def is_text(value: str) -> bool:
    """Whether it can be a name, a path and a JSON string: not blank, no NUL, no half of a surrogate pair."""
    return value.strip() != "" and is_plain(value)


def is_plain(value: str) -> bool:
    """Whether it can be handed to a program: it may be blank, but has no NUL and no half of a surrogate pair."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in value
