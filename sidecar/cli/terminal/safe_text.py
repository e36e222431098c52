"""Untrusted text on a screen of limited size: every character visible, no control sequence active, omissions counted.

Knows neither files nor commands, only their lines.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence

import msgspec
from rich.text import Text

MAX_LINE = 2000
"""Characters of a line of output: more than any screen is wide, and a limit for an output without line ends."""

_SEQUENCES = re.compile(r"\x1b\[[0-9;:<=>?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_]")

# Nothing may be hidden in what a user permits: a control character is shown as its picture, and none changes the text
# direction of others.
_CONTROL_PICTURES = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n"} | {
    0x7F: "\u2421"
}
_CONTROL_PICTURES |= dict.fromkeys(
    (*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)), "\ufffd"
)


def visible_text(text: str) -> str:
    """Return text without active control sequences, with every character visible."""
    return text.translate(_CONTROL_PICTURES)


def one_line(text: str, most: int | None = None) -> str:
    """Return the same on a single line, cut after `most` characters."""
    line = visible_text(text).replace("\n", "\u240a").replace("\t", " ")
    return line if most is None or len(line) <= most else line[: max(1, most - 1)] + "…"


class ScreenExcerpt(msgspec.Struct, frozen=True):
    """The beginning of a text; `note` says what is omitted, and is empty when nothing is."""

    lines: list[Text]
    note: str


def first_lines(lines: Sequence[Text], rows: int, width: int) -> ScreenExcerpt:
    """Return as many lines as fit on `rows` rows of the screen. A line that alone does not fit is cut."""
    shown: list[Text] = []
    cut = 0
    for line in lines:
        line = line.copy()
        line.expand_tabs(8)
        needed = max(1, -(-line.cell_len // width))
        if needed > rows:
            if not shown:
                whole = len(line)
                line.truncate(rows * width)
                shown, cut = [line], whole - len(line)
            break
        shown.append(line)
        rows -= needed
    return ScreenExcerpt(shown, _omission_note(len(lines) - len(shown), cut))


def _omission_note(lines: int, characters: int) -> str:
    parts = [f"{characters} characters of this line"] if characters else []
    parts += [f"{lines} more line{'s' if lines > 1 else ''}"] if lines else []
    return f"… {' and '.join(parts)} not shown" if parts else ""


class Tail:
    """The last lines of an output that may be endless."""

    def __init__(self, lines: int) -> None:
        self._lines: deque[str] = deque(maxlen=lines)
        self._open = ""
        self._count = 0

    def add(self, text: str) -> None:
        *whole, last = (self._open + text).split("\n")
        self._lines.extend(line[:MAX_LINE] for line in whole)
        self._count += len(whole)
        self._open = last[-MAX_LINE:]

    @property
    def lines(self) -> list[str]:
        """Return what is visible of them: of an overwritten line only its last state."""
        shown = [*self._lines, *([self._open] if self._open else [])]
        return [_overwritten_line(line) for line in shown[-(self._lines.maxlen or 0) :]]

    @property
    def above(self) -> int:
        """Return how many lines came before these."""
        return self._count + bool(self._open) - len(self.lines)


def _overwritten_line(line: str) -> str:
    plain = _SEQUENCES.sub("", line).rstrip("\r")
    return visible_text(plain.rpartition("\r")[2])
