"""Errors of settings, with what the user needs to fix them: the position, the key, what was expected.

SettingsError          a file, a variable or an option does not hold what it should
└── SettingsConflict   the file has changed since the version that a write expected
"""

from __future__ import annotations


class SettingsError(Exception):
    """`path` and `line` name the position in a file; `key` is None when the whole file is meant.

    `names` is the path of tables to the key, when the dots of `key` are ambiguous.
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
        parts = [place, self.key and f"`{_shorten(self.key)}`", self.message]
        text = ": ".join(part for part in parts if part)
        return _printable(f"{text}. {self.hint}" if self.hint else text)


class SettingsConflict(SettingsError):
    """Another process wrote the file meanwhile; read it again and decide again."""


def _shorten(name: str) -> str:
    return name if len(name) <= 80 else name[:80] + "…"


def _printable(text: str) -> str:
    """Escape control characters: the file of a project may contain terminal escape sequences."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
