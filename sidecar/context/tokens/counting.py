"""Counts the tokens of texts, and cuts a text to a number of them. Keeps counts, never texts.

A text here is one block of a message. Tokens do not add up over the parts of a text, so blocks are counted whole; they
do not change once written, so each is counted once. Everything may be called from any thread. The first call for
an encoding loads its table: `load` does it beforehand.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Literal

from . import encodings
from .families import Family
from .pieces import CUT_TOKENS, pieces, well_formed

CACHE_BYTES = 16 << 20
"""Of counts kept: some 55,000 texts, the blocks of a chat with more than 10,000 turns."""

ENTRY_BYTES = 300
"""What one count occupies, whatever the length of its text."""

LINES_SHARE = 0.5
"""A cut falls between lines if that keeps this share of what a cut inside a line keeps."""

_FIRST_LOOK = 6
"""Code points for each token that a cut encodes at first; more than most texts have, few enough to be cheap."""

Keep = Literal["head", "tail"]


class Counter:
    def __init__(self, cache_bytes: int = CACHE_BYTES) -> None:
        self._most = max(1, cache_bytes // ENTRY_BYTES)
        # By encoding, hash and length. Python's hash is 64 bits under a key drawn at start: nobody can aim at an
        # equal one, and it is computed once for each string, which makes a known text cost less than a microsecond.
        self._counts: OrderedDict[tuple[str, int, int], int] = OrderedDict()
        self._lock = threading.Lock()
        self.encoded = 0
        """Code points that went through an encoder to be counted: the work that the cache has not saved."""

    def __len__(self) -> int:
        """How many counts are kept."""
        return len(self._counts)

    def count(self, text: str, family: Family) -> int:
        """The tokens of the text for the family's models; an estimate unless `family.exact`."""
        key = (family.encoding, hash(text), len(text))
        with self._lock:
            found = self._counts.get(key)
            if found is not None:
                self._counts.move_to_end(key)
        if found is None:
            found = _price(well_formed(text), family.encoding)
            self._put(key, found)
        return family.scaled(found)

    def cut(self, text: str, max_tokens: int, family: Family, keep: Keep = "head") -> str:
        """The start or the end of the text that counts at most `max_tokens`, well-formed.

        It ends between lines, where one more line would be too many; or inside a line that takes most of the room,
        where one more code point would be.
        """
        text = well_formed(text)
        cutter = _Cutter(text, family.most(max_tokens), family.encoding, keep)
        return cutter.kept(cutter.lines(cutter.code_points()))

    def _put(self, key: tuple[str, int, int], count: int) -> None:
        with self._lock:
            self.encoded += key[2]
            self._counts[key] = count
            if len(self._counts) > self._most:
                self._counts.popitem(last=False)


def load(family: Family) -> None:
    """Load what counting for the family needs; blocks, so call it in a thread."""
    encodings.encoding(family.encoding)


def is_loaded(family: Family) -> bool:
    return encodings.is_loaded(family.encoding)


def at_most(text: str, family: Family) -> int:
    """A number that no count of the text exceeds, without a table: a token has one byte or more."""
    return family.scaled(len(well_formed(text).encode()))


class _Cutter:
    """Looks for the longest part at one end of a text whose count is within a limit.

    Sizes are in code points, from the end that is kept. The count of a longer part can be smaller by a token or
    two, so each part that comes out was counted itself.
    """

    def __init__(self, text: str, limit: int, encoding: str, keep: Keep) -> None:
        self._text = text
        self._limit = limit
        self._encoding = encoding
        self._head = keep == "head"

    def kept(self, size: int) -> str:
        return self._text[:size] if self._head else self._text[len(self._text) - size :]

    def code_points(self) -> int:
        """The size of a part that fits, and would not with one code point more.

        The tokens almost always lead there at once; where many cuts were charged, growing steps make up for it.
        """
        size, step = self._by_tokens(), 1
        while size + step <= len(self._text) and self._fits(size + step):
            size, step = size + step, 2 * step
        beyond = min(size + step, len(self._text) + 1)
        while beyond - size > 1:
            middle = (size + beyond) // 2
            size, beyond = (middle, beyond) if self._fits(middle) else (size, middle)
        return size

    def lines(self, size: int) -> int:
        """A size of whole lines that is at most `size` and fits; `size` itself where that would keep too little."""
        if size == len(self._text):
            return size
        whole = self._whole(size)
        while whole and not self._fits(whole):
            whole = self._whole(whole - 1)
        return whole if whole >= size * LINES_SHARE else size

    def _by_tokens(self) -> int:
        """The size of a part that fits, which ends with a token of the text around it."""
        part, tokens = self._look()
        number = self._limit
        if len(part) == len(self._text) and self._fits(len(part)):
            return len(part)
        while number > 0:
            side = tokens[:number] if self._head else tokens[-number:]
            size = self._size_of(side)
            excess = _price(self.kept(size), self._encoding) - self._limit
            if excess <= 0:
                return size
            number -= excess
        return 0

    def _look(self) -> tuple[str, list[int]]:
        """An end of the text that has more tokens than the limit, or all of it; with its tokens."""
        width = _FIRST_LOOK * self._limit
        while True:
            part = self.kept(min(width, len(self._text)))
            tokens = _tokens(part, self._encoding)
            if len(tokens) > self._limit or len(part) == len(self._text):
                return part, tokens
            width = 2 * width + 1

    def _size_of(self, side: list[int]) -> int:
        """The whole code points in some tokens, whose edge may lie inside one."""
        return len(encodings.encoding(self._encoding).decode_bytes(side).decode(errors="ignore"))

    def _whole(self, size: int) -> int:
        """The size of the longest part of whole lines within `size`; 0 when there is none."""
        if self._head:
            return self._text.rfind("\n", 0, size) + 1
        end = self._text.find("\n", max(0, len(self._text) - size - 1))
        return 0 if end < 0 else len(self._text) - end - 1

    def _fits(self, size: int) -> bool:
        return _price(self.kept(size), self._encoding) <= self._limit


def _tokens(text: str, encoding: str) -> list[int]:
    encoder = encodings.encoding(encoding)
    return [token for piece in pieces(text) for token in encoder.encode_ordinary(piece)]


def _price(text: str, encoding: str) -> int:
    """Its tokens and what the cuts in its long runs are charged, which together are never more than its bytes."""
    encoder = encodings.encoding(encoding)
    parts = pieces(text)
    counted = sum(len(encoder.encode_ordinary(part)) for part in parts)
    if len(parts) == 1:
        return counted
    return min(counted + CUT_TOKENS * (len(parts) - 1), len(text.encode()))
