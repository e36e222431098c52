"""What a GGUF file says of itself at its beginning. Reads a bounded part of it, whatever it claims to hold.

It is read, not mapped: a mapped file that somebody truncates meanwhile ends the process.
"""

from __future__ import annotations

import os
import struct
from typing import Any, BinaryIO

TEMPLATE = "tokenizer.chat_template"

MAX_HEADER_BYTES = 64 * 1024 * 1024
"""Four times the largest known, which is Gemma 3's with its 262,000 words and 514,000 merges."""

MAX_ENTRIES = 10_000
"""A real header has some dozens."""

MAX_TEXT_BYTES = 1024 * 1024
"""Longer texts are passed over: a template has some thousand bytes, a tokenizer as JSON has millions."""

MAX_KEY_BYTES = 65_535
"""GGUF's own bound."""

MAX_MEMBERS = 1_000_000
"""Texts in lists that are passed over one by one, which takes a third of a second for so many."""

MANY = 1024
"""A list of more texts than this is the vocabulary."""

CHUNK_BYTES = 256 * 1024

_SCALARS = {
    kind: struct.Struct(form)
    for kind, form in {
        0: "<B",
        1: "<b",
        2: "<H",
        3: "<h",
        4: "<I",
        5: "<i",
        6: "<f",
        7: "<?",
        10: "<Q",
        11: "<q",
        12: "<d",
    }.items()
}
_STRING, _ARRAY = 8, 9
_U32, _U64 = _SCALARS[4], _SCALARS[10]


class Damaged(Exception):
    """The file is no GGUF, or not a whole one, or one that nobody would make."""


def read_header(file: BinaryIO) -> dict[str, Any]:
    """GGUF's key-value pairs; of a list of numbers only the first, of a list of texts nothing.

    All that is of use stands before the vocabulary, except the chat's template. So reading ends there, and the
    template is searched for by its key: going through a million words takes a hundred times as long.
    """
    return _Header(file).read()


class _Header:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._at = 0
        self._end = min(os.fstat(file.fileno()).st_size, MAX_HEADER_BYTES)
        self._members = 0

    def read(self) -> dict[str, Any]:
        if self._take(4) != b"GGUF":
            raise Damaged("it does not begin with GGUF")
        version, _tensors, entries = self._scalar(_U32), self._scalar(_U64), self._scalar(_U64)
        if version not in (2, 3) or entries > MAX_ENTRIES:
            raise Damaged(f"version {version} with {entries} entries")
        found: dict[str, Any] = {}
        for _ in range(entries):
            key, kind = self._key(), self._scalar(_U32)
            if kind != _ARRAY:
                found[key] = self._value(kind)
                continue
            kind, length = self._scalar(_U32), self._scalar(_U64)
            if kind == _STRING and length > MANY and _has_shape(found):
                return found if TEMPLATE in found else found | {TEMPLATE: self._search(TEMPLATE)}
            found[key] = self._first(kind, length)
        return found

    def _value(self, kind: int) -> Any:
        if kind == _STRING:
            return self._text()
        if kind not in _SCALARS:
            raise Damaged(f"unknown type {kind}")
        return self._scalar(_SCALARS[kind])

    def _first(self, kind: int, length: int) -> Any:
        if kind in _SCALARS and length:
            first = self._scalar(_SCALARS[kind])
            self._skip(_SCALARS[kind].size * (length - 1))
            return first
        self._members += length
        if length and (kind != _STRING or self._members > MAX_MEMBERS):
            raise Damaged(f"a list of type {kind} with {length} members")
        self._skip_texts(length)
        return None

    def _skip_texts(self, count: int) -> None:
        """Half of the time that a read for each would take."""
        chunk, at, unpack = b"", 0, _U64.unpack_from
        for _ in range(count):
            if at + 8 > len(chunk):
                self._skip(at - len(chunk))
                chunk, at = self._take(max(8, min(CHUNK_BYTES, self._end - self._at))), 0
            at += 8 + unpack(chunk, at)[0]
        self._skip(at - len(chunk))

    def _search(self, key: str) -> str:
        """The text under `key`, wherever it stands from here on, or nothing."""
        mark = _U64.pack(len(key)) + key.encode()
        seen = b""
        while self._at < self._end:
            seen = seen[-len(mark) :] + self._take(min(CHUNK_BYTES, self._end - self._at))
            if (found := seen.find(mark)) >= 0:
                self._at += found + len(mark) - len(seen)
                self._file.seek(self._at)
                return str(self._value(self._scalar(_U32)))
        return ""

    def _key(self) -> str:
        length = self._scalar(_U64)
        if length > MAX_KEY_BYTES:
            raise Damaged(f"a key of {length} bytes")
        return self._take(length).decode(errors="replace")

    def _text(self) -> str:
        length = self._scalar(_U64)
        if length > MAX_TEXT_BYTES:
            self._skip(length)
            return ""
        return self._take(length).decode(errors="replace")

    def _scalar(self, form: struct.Struct) -> Any:
        return form.unpack(self._take(form.size))[0]

    def _take(self, length: int) -> bytes:
        self._at += length
        # A read is short when the file was truncated after it was opened.
        if self._at > self._end or len(data := self._file.read(length)) < length:
            raise self._too_short()
        return data

    def _skip(self, length: int) -> None:
        """Also backwards."""
        self._at += length
        if self._at > self._end:
            raise self._too_short()
        self._file.seek(length, os.SEEK_CUR)

    def _too_short(self) -> Damaged:
        if self._end == MAX_HEADER_BYTES:
            return Damaged(f"its header is longer than {MAX_HEADER_BYTES} bytes")
        return Damaged("it ends in the middle of its header")


def _has_shape(found: dict[str, Any]) -> bool:
    return f"{found.get('general.architecture')}.context_length" in found
