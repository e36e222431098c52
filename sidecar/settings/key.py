"""One setting: its name, its valid values, and who may set it. The list of settings is in `keys`.

This layer is imported before anything heavy: it does not use `typing`, `dataclasses` and `re` (5 ms each).
"""

from __future__ import annotations

from ..text.suggest import did_you_mean
from ..text.surrogates import is_well_formed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Any, Literal

    Kind = Literal["text", "path", "integer", "seconds", "ratio", "flag", "texts", "paths"]
    Declared = Literal["trusted", "never"]
    Reach = Literal["any", "trusted", "never"]
    Value = str | int | float | tuple[str, ...] | dict[str, Any] | None

MAX_TEXTS = 1000
"""Entries of a list: rules are matched one by one at every tool call, and nobody can review more."""

UNTRUSTED_KEYS = {
    "permissions.ask": "adds permission requests and removes none",
    "permissions.deny": "adds denials and removes none",
    "tools.deny": "removes tools and adds none",
}
"""The keys that a project may set before the user trusts it, each with the reason why it can only restrict.

Every other key needs trust, so a new one is safe without an entry: more steps, tokens, retries or model requests cost
the user money, larger caps and gates send more of the user's files, and a longer list of rules could allow more.
"""

MIN_SIMILARITY = 0.75
"""How similar two names are, by difflib's measure, when one was probably meant: `max_stepz` is not `max_bytes`."""

_EXPECTED = {
    "path": "a path",
    "ratio": "a share of the window, from 0 to 1: 0.8 is four fifths",
    "flag": "true or false",
    "texts": "a list of texts",
    "paths": "a list of paths",
}


class SettingKey:
    """One setting.

    `project` says whether the file of a project may set it: always ("any", for `UNTRUSTED_KEYS`), once the user
    trusts the project ("trusted"), or not at all ("never": what applies to the whole process, which serves many
    projects). `files` is False for what only the environment and the command line may set. `each` validates the text,
    or each text of a list. For a list that `adds`, no layer removes the entries of an earlier one.
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
        project: Declared = "trusted",
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
        self.project: Reach = "any" if name in UNTRUSTED_KEYS else project
        self.environment = environment
        self.files = files
        self.shown = shown
        self._words = words
        self._each = each or is_text
        self.adds = adds

    @property
    def expected(self) -> str:
        """Return a description of the valid values."""
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
        """Return the value as the program uses it, or None when it is invalid."""
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
        if not isinstance(value, str) or not is_text(value) or not self._each(value):
            return None
        return value if not self.choices or value in self.choices else None

    def misfit(self, values: Collection[object]) -> tuple[object] | None:
        """Return the first invalid entry of a list in a tuple, since the entry may be anything, even None."""
        return next(((one,) for one in values if not isinstance(one, str) or not self._each(one)), None)


def suggestion_for(name: str, candidates: Collection[str]) -> str | None:
    """What `name` was probably meant to be, as a question for a hint."""
    table, _, last = name.rpartition(".")
    nearby_wins = sorted(candidates, key=lambda candidate: candidate.rpartition(".")[0] == table)
    by_last = {candidate.rpartition(".")[2]: candidate for candidate in nearby_wins}
    close = [last] if last in by_last else did_you_mean(last, by_last, count=2, similarity=MIN_SIMILARITY)
    return f"Did you mean {' or '.join(f'`{by_last[found]}`' for found in close)}?" if close else None


def is_text(value: str) -> bool:
    """Return whether it can be a name, a path and a JSON string: not blank, no NUL, no lone surrogate."""
    return value.strip() != "" and is_plain(value)


def is_plain(value: str) -> bool:
    """Return whether it can be a program argument: it may be blank, but has no NUL and no lone surrogate."""
    return "\0" not in value and is_well_formed(value)
