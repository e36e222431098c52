"""Long pasted texts in a prompt: on the screen each is a short note, and one character for the editor. Does no IO."""

from __future__ import annotations

MAX_SHOWN_LINES = 10
MAX_SHOWN_CHARACTERS = 1000
"""A paste within both limits is shown and edited as text; a longer one would fill the screen."""

_FIRST = 0xF0000
"""Private characters stand for the texts: one that somebody pastes is put into a text of its own."""


class Pastes:
    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def hold(self, text: str) -> str:
        """Return what the editor inserts for a pasted text: the text, or a character that stands for it."""
        private = any(ord(character) >= _FIRST for character in text)
        if not private and len(text) <= MAX_SHOWN_CHARACTERS and text.count("\n") < MAX_SHOWN_LINES:
            return text
        mark = chr(_FIRST + len(self._texts))
        self._texts[mark] = text
        return mark

    def with_notes(self, text: str) -> str:
        """Return the text with a note for each long paste."""
        return "".join(_note(self._texts[each]) if each in self._texts else each for each in text)

    def whole(self, text: str) -> str:
        """Return the text with each paste in full."""
        return "".join(self._texts.get(each, each) for each in text)


def _note(text: str) -> str:
    lines = text.rstrip("\n").count("\n") + 1
    return f"[pasted {lines:,} lines]" if lines > 1 else f"[pasted {len(text):,} characters]"
