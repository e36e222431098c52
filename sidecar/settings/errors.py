"""What can be wrong with a setting, said so that the user can mend it: the place, the key, what was expected.

SettingsError          a file, a variable or an option does not hold what it should
└── SettingsConflict   the file has changed since the version that a write expected
"""

from __future__ import annotations


class SettingsError(Exception):
    """`path` and `line` name the place when it is a file; `key` is None when the whole file is meant.

    `names` leads to the place table by table, where the dots of `key` do not tell.
    """

    def __init__(
        self,
        key: str | None,
        message: str,
        *,
        hint: str | None = None,
        path: str | None = None,
        line: int | None = None,
        names: tuple[str, ...] | None = None,
    ) -> None:
        super().__init__(key, message)
        self.key = key
        self.message = message
        self.hint = hint
        self.path = path
        self.line = line
        self.names = names

    def __str__(self) -> str:
        place = self.path if self.line is None else f"{self.path}, line {self.line}"
        parts = [place, self.key and f"`{_cut(self.key)}`", self.message]
        text = ": ".join(part for part in parts if part)
        return _printable(f"{text}. {self.hint}" if self.hint else text)


class SettingsConflict(SettingsError):
    """Somebody else wrote the file in between; read it again and decide anew."""


def _cut(name: str) -> str:
    return name if len(name) <= 80 else name[:80] + "…"


def _printable(text: str) -> str:
    """A project's file may hold anything, also what makes a terminal do things."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
