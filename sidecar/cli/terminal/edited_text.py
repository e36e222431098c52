"""A text that is being edited, and the position in it. Pure: knows neither keys nor the screen."""

from __future__ import annotations

import re

from rich.cells import cell_len

ZERO_WIDTH_JOINER = "\u200d"

_WORD_LEFT = re.compile(r"\w+\W*\Z|\W+\Z")
_WORD_RIGHT = re.compile(r"\W*\w+|\W+")
_BLANK_WORD_LEFT = re.compile(r"\S+\s*\Z|\s+\Z")


class EditedText:
    def __init__(self, text: str = "") -> None:
        self.text = text
        self.position = len(text)
        self._erased = ""

    @property
    def before(self) -> str:
        return self.text[: self.position]

    @property
    def after(self) -> str:
        return self.text[self.position :]

    def set(self, text: str) -> None:
        """Replace all; the position is at the end."""
        self.text, self.position = text, len(text)

    def insert(self, text: str) -> None:
        self.text = self.before + text + self.after
        self.position += len(text)

    def left(self) -> None:
        self.position = self._left_of(self.position)

    def right(self) -> None:
        self.position = self._right_of(self.position)

    def home(self) -> None:
        """Go to the start of the line."""
        self.position = self.before.rfind("\n") + 1

    def end(self) -> None:
        """Go to the end of the line."""
        self.position += len(self.after.partition("\n")[0])

    def word_left(self) -> None:
        self.position = self._start(_WORD_LEFT)

    def word_right(self) -> None:
        self.position = self._word_end()

    def erase_left(self) -> None:
        self._erase(self._left_of(self.position), self.position, keep=False)

    def erase_right(self) -> None:
        self._erase(self.position, self._right_of(self.position), keep=False)

    def erase_word_left(self) -> None:
        self._erase(self._start(_BLANK_WORD_LEFT), self.position)

    def erase_word_right(self) -> None:
        self._erase(self.position, self._word_end())

    def erase_to_start(self) -> None:
        start = self.before.rfind("\n") + 1
        self._erase(start if start < self.position else max(0, start - 1), self.position)

    def erase_to_end(self) -> None:
        line = len(self.after.partition("\n")[0])
        self._erase(self.position, self.position + (line or bool(self.after)))

    def put_back(self) -> None:
        """Insert what was erased last."""
        self.insert(self._erased)

    def line_up(self) -> bool:
        """Go to the same column of the line above; False in the first line."""
        start = self.before.rfind("\n") + 1
        if start == 0:
            return False
        above = self.text.rfind("\n", 0, start - 1) + 1
        self.position = min(above + self.position - start, start - 1)
        return True

    def line_down(self) -> bool:
        """Go to the same column of the line below; False in the last line."""
        line, newline, below = self.after.partition("\n")
        if not newline:
            return False
        column = self.position - (self.before.rfind("\n") + 1)
        start = self.position + len(line) + 1
        self.position = start + min(column, len(below.partition("\n")[0]))
        return True

    def _start(self, pattern: re.Pattern[str]) -> int:
        found = pattern.search(self.before)
        return found.start() if found else 0

    def _word_end(self) -> int:
        found = _WORD_RIGHT.match(self.text, self.position)
        return found.end() if found else self.position

    def _left_of(self, position: int) -> int:
        position = max(0, position - 1)
        while position and _joins(self.text, position):
            position -= 1
        return position

    def _right_of(self, position: int) -> int:
        position = min(len(self.text), position + 1)
        while position < len(self.text) and _joins(self.text, position):
            position += 1
        return position

    def _erase(self, start: int, end: int, *, keep: bool = True) -> None:
        if keep and start < end:
            self._erased = self.text[start:end]
        self.text, self.position = self.text[:start] + self.text[end:], start


def _joins(text: str, position: int) -> bool:
    """Return whether the character here is drawn with the one before: an accent, or a part of an emoji."""
    here, before = text[position], text[position - 1]
    return (ord(here) > 0x2FF and cell_len(here) == 0) or before == ZERO_WIDTH_JOINER
