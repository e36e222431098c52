"""Decode what a terminal sends into typed text, pasted text and named keys. Does no IO.

A key may arrive in pieces, and a paste in many: what is incomplete is kept for the next bytes.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import Literal

import msgspec

PASTE_BEGIN, PASTE_END = "\x1b[200~", "\x1b[201~"

KeyAction = Literal[
    "submit", "newline", "left", "right", "up", "down", "home", "end", "word_left", "word_right",
    "erase_left", "erase_right", "erase_word_left", "erase_word_right", "erase_to_start", "erase_to_end",
    "put_back", "complete", "search", "interrupt", "end_of_input", "escape",
    "clear", "resized", "resumed",
]  # fmt: skip


class Typed(msgspec.Struct, frozen=True):
    """Characters that were typed one by one."""

    text: str


class Pasted(msgspec.Struct, frozen=True):
    """A whole paste, its line ends as newlines."""

    text: str


class KeyPress(msgspec.Struct, frozen=True):
    action: KeyAction


Input = Typed | Pasted | KeyPress

_CONTROLS: dict[str, KeyAction] = {
    "\x01": "home", "\x02": "left", "\x03": "interrupt", "\x04": "end_of_input", "\x05": "end",
    "\x06": "right", "\x07": "escape", "\x08": "erase_left", "\t": "complete", "\n": "submit",
    "\x0b": "erase_to_end", "\x0c": "clear", "\r": "submit", "\x0e": "down", "\x10": "up",
    "\x12": "search", "\x15": "erase_to_start", "\x17": "erase_word_left", "\x19": "put_back",
    "\x7f": "erase_left",
}  # fmt: skip

_SEQUENCES: dict[str, KeyAction] = {
    "[A": "up", "[B": "down", "[C": "right", "[D": "left", "[H": "home", "[F": "end",
    "OA": "up", "OB": "down", "OC": "right", "OD": "left", "OH": "home", "OF": "end",
    "[1~": "home", "[7~": "home", "[4~": "end", "[8~": "end", "[3~": "erase_right",
    "[1;5C": "word_right", "[1;5D": "word_left", "[1;3C": "word_right", "[1;3D": "word_left",
    "[3;5~": "erase_word_right", "[13;2u": "newline", "[27;2;13~": "newline",
    "b": "word_left", "f": "word_right", "d": "erase_word_right", "\x7f": "erase_word_left",
    "\x08": "erase_word_left", "\r": "newline", "\n": "newline",
}  # fmt: skip
"""What may follow an escape character."""

_SEQUENCE = re.compile(r"\[[0-9;:<=>?]*[ -/]*[@-~]|O[ -~]|[^\[O]", re.DOTALL)
_INCOMPLETE = re.compile(r"(\[[0-9;:<=>?]*[ -/]*|O)?\Z")
_TEXT = re.compile(r"[^\x00-\x1f\x7f]+")


class KeyDecoder:
    """Decodes the bytes of one terminal."""

    def __init__(self) -> None:
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._pasted: list[str] | None = None

    @property
    def pending(self) -> bool:
        """Whether the rest of a key or of a paste is missing."""
        return bool(self._rest) or self._pasted is not None

    @property
    def pasting(self) -> bool:
        return self._pasted is not None

    def decode(self, data: bytes) -> Iterator[Input]:
        """Yield the inputs that are complete with these bytes."""
        text, self._rest = self._rest + self._utf8.decode(data), ""
        while text:
            if self._pasted is not None:
                text, pasted = self._take_paste(text)
                if pasted is not None:
                    yield pasted
            elif text[0] == "\x1b":
                match = _SEQUENCE.match(text, 1)
                if match is None and _INCOMPLETE.match(text, 1):
                    self._rest = text
                    return
                code, text = (match[0], text[match.end() :]) if match else ("", text[1:])
                if code == PASTE_BEGIN[1:]:
                    self._pasted = []
                elif code in _SEQUENCES:
                    yield KeyPress(_SEQUENCES[code])
            elif typed := _TEXT.match(text):
                text = text[typed.end() :]
                yield Typed(typed[0])
            else:
                control, text = text[0], text[1:]
                if control in _CONTROLS:
                    yield KeyPress(_CONTROLS[control])

    def flush(self) -> Iterator[Input]:
        """Give up waiting for the rest: a lone escape is a key, and a paste without an end is what came of it."""
        if self._pasted is not None:
            text, self._pasted, self._rest = "".join(self._pasted) + self._rest, None, ""
            yield _paste(text)
        elif self._rest:
            self._rest = ""
            yield KeyPress("escape")

    def _take_paste(self, text: str) -> tuple[str, Pasted | None]:
        assert self._pasted is not None
        inside, end, after = text.partition(PASTE_END)
        if end:
            whole, self._pasted = "".join([*self._pasted, inside]), None
            return after, _paste(whole)
        # The end may be cut in two.
        kept = next((n for n in range(len(PASTE_END) - 1, 0, -1) if text.endswith(PASTE_END[:n])), 0)
        self._pasted.append(text[: len(text) - kept])
        self._rest = text[len(text) - kept :]
        return "", None


def _paste(text: str) -> Pasted:
    return Pasted(text.replace("\r\n", "\n").replace("\r", "\n"))
