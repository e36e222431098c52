"""Counts the tokens of texts, and cuts a text to a number of them. Caches counts, never texts.

A text is one block of a message. The tokens of parts do not add up to those of the whole, so blocks are
counted whole; they do not change once written, so each is counted once. Everything is thread-safe. A process that
counts much loads an encoder: `load` does it in advance.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Literal

from ...text.surrogates import well_formed
from ...text.token_estimate import MANY_CHARACTERS_PER_TOKEN
from . import encodings
from .families import TokenizerFamily
from .pieces import CUT_TOKENS, MAX_RUN, pieces

CACHE_BYTES = 16 << 20
"""Of cached counts: about 55,000 texts, the blocks of a chat with more than 10,000 turns."""

ENTRY_BYTES = 300
"""The memory of one count, whatever the length of its text."""

LINES_SHARE = 0.5
"""A cut is made between lines if that keeps this share of what a cut inside a line keeps."""

KeepEnd = Literal["head", "tail"]


class TokenCounter:
    def __init__(self, cache_bytes: int = CACHE_BYTES) -> None:
        self._most = max(1, cache_bytes // ENTRY_BYTES)
        # By encoding, hash and length. Python's hash is 64 bits with a random key per process, so nobody can
        # construct a collision, and it is computed once per string: a known text costs less than a
        # microsecond.
        self._counts: OrderedDict[tuple[str, int, int], int] = OrderedDict()
        self._lock = threading.Lock()
        self.encoded = 0
        """Code points that were encoded to be counted: the work that the cache did not save."""

    def __len__(self) -> int:
        """Return how many counts are cached."""
        return len(self._counts)

    def count(self, text: str, family: TokenizerFamily) -> int:
        """Return the tokens of the text for the family's models; an estimate unless `family.exact`."""
        key = (family.encoding, hash(text), len(text))
        with self._lock:
            found = self._counts.get(key)
            if found is not None:
                self._counts.move_to_end(key)
        if found is None:
            found = _price(well_formed(text), family.encoding)
            self._put(key, found)
        return family.scaled(found)

    def cut(self, text: str, max_tokens: int, family: TokenizerFamily, keep: KeepEnd = "head") -> str:
        """Return the start or the end of the text with at most `max_tokens`, well-formed.

        It ends between lines, where one more line would be too many, or inside a line that takes most of the
        limit, where one more code point would be too many.
        """
        text = well_formed(text)
        cutter = _Cutter(text, family.most(max_tokens), family.encoding, keep)
        return cutter.part_of_size(cutter.lines(cutter.code_points()))

    def _put(self, key: tuple[str, int, int], count: int) -> None:
        with self._lock:
            self.encoded += key[2]
            self._counts[key] = count
            if len(self._counts) > self._most:
                self._counts.popitem(last=False)


def load(family: TokenizerFamily) -> None:
    """Load what counting for the family needs; blocks, so call it in a thread."""
    encodings.encoding(family.encoding)


def is_ready(family: TokenizerFamily) -> bool:
    """Whether counting for the family loads nothing."""
    return encodings.is_ready(family.encoding)


class _Cutter:
    """Finds the longest part at one end of a text whose count is within a limit.

    Sizes are in code points, from the end that is kept. A longer part can have a token or two less, so each
    returned part was counted itself.
    """

    def __init__(self, text: str, limit: int, encoding: str, keep: KeepEnd) -> None:
        self._text = text
        self._limit = limit
        self._encoding = encoding
        self._head = keep == "head"

    def part_of_size(self, size: int) -> str:
        return self._text[:size] if self._head else self._text[len(self._text) - size :]

    def code_points(self) -> int:
        """Return the size of a part that fits, and would not with one more code point.

        The tokens almost always lead there at once; where many cuts were charged, growing steps correct it.
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
        """Return a size of whole lines that fits, where one more line does not; `size` if that would keep too
        little."""
        if size == len(self._text):
            return size
        whole = self._whole(size)
        while whole and not self._fits(whole):
            whole = self._whole(whole - 1)
        whole = self._with_lines_that_fit(whole, size)
        return whole if whole >= size * LINES_SHARE else size

    def _with_lines_that_fit(self, whole: int, size: int) -> int:
        """Return `whole` plus the lines after it that also fit.

        `size` is no upper bound: line ends can merge into one token with those that follow, so a part can
        exceed the limit where a longer one does not.
        """
        while whole < len(self._text):
            more = self._next_whole(whole)
            near = min(more, max(size, whole) + MAX_RUN)
            if near < more and _price(self.part_of_size(near), self._encoding) > self._limit + 2 * CUT_TOKENS:
                break  # a long line that exceeds the limit by more than merging can save: the rest is not encoded
            if not self._fits(more):
                break
            whole = more
        return whole

    def _by_tokens(self) -> int:
        """Return the size of a part that fits and ends with a token of the surrounding text."""
        part, tokens = self._look()
        number = self._limit
        if len(part) == len(self._text) and self._fits(len(part)):
            return len(part)
        while number > 0:
            side = tokens[:number] if self._head else tokens[-number:]
            size = self._size_of(side)
            excess = _price(self.part_of_size(size), self._encoding) - self._limit
            if excess <= 0:
                return size
            number -= excess
        return 0

    def _look(self) -> tuple[str, list[bytes]]:
        """Return an end of the text with more tokens than the limit, or all of it, and its tokens."""
        width = MANY_CHARACTERS_PER_TOKEN * self._limit
        while True:
            part = self.part_of_size(min(width, len(self._text)))
            tokens = _tokens(part, self._encoding)
            if len(tokens) > self._limit or len(part) == len(self._text):
                return part, tokens
            width = 2 * width + 1

    @staticmethod
    def _size_of(side: list[bytes]) -> int:
        """Return the number of whole code points in these tokens, whose border may be inside one."""
        return len(b"".join(side).decode(errors="ignore"))

    def _whole(self, size: int) -> int:
        """Return the size of the longest part of whole lines within `size`; 0 when there is none."""
        if self._head:
            return self._text.rfind("\n", 0, size) + 1
        end = self._text.find("\n", max(0, len(self._text) - size - 1))
        return 0 if end < 0 else len(self._text) - end - 1

    def _next_whole(self, whole: int) -> int:
        """Return the size of `whole`, which ends between lines, plus one line."""
        if self._head:
            end = self._text.find("\n", whole)
            return len(self._text) if end < 0 else end + 1
        return len(self._text) - 1 - self._text.rfind("\n", 0, max(0, len(self._text) - whole - 1))

    def _fits(self, size: int) -> bool:
        return _price(self.part_of_size(size), self._encoding) <= self._limit


def _tokens(text: str, encoding: str) -> list[bytes]:
    return [token for piece in pieces(text) for token in encodings.split(encoding, piece)]


def _price(text: str, encoding: str) -> int:
    """Return the tokens plus the charge for cuts in long runs, together never more than the bytes."""
    parts = pieces(text)
    counted = sum(encodings.count(encoding, part) for part in parts)
    if len(parts) == 1:
        return counted
    return min(counted + CUT_TOKENS * (len(parts) - 1), len(text.encode()))
