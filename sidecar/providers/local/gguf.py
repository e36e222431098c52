"""The header of a GGUF file. Reads a bounded part of it, whatever the file claims.

It is read, not memory-mapped: truncating a mapped file ends the process with SIGBUS.
"""

from __future__ import annotations

import os
import struct
from typing import Any, BinaryIO

TEMPLATE = "tokenizer.chat_template"

MAX_HEADER_BYTES = 64 * 1024 * 1024
"""Four times the largest known one, which is Gemma 3's with its 262,000 tokens and 514,000 merges."""

MAX_ENTRIES = 10_000
"""A real header has some dozens."""

MAX_TEXT_BYTES = 1024 * 1024
"""Longer texts are skipped: a template has some thousand bytes, a tokenizer as JSON has millions."""

MAX_KEY_BYTES = 65_535
"""The limit of GGUF itself."""

MAX_MEMBERS = 1_000_000
"""Texts in lists that are skipped one by one, which takes a third of a second for so many."""

MANY_ENTRIES = 1024
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


HeaderValue = str | int | float | bool | None
GgufHeader = dict[str, HeaderValue]
"""The key-value pairs of a file."""


class DamagedFile(Exception):
    """The file is not a GGUF, is incomplete, or has implausible values."""


def read_header(file: BinaryIO) -> GgufHeader:
    """Return GGUF's key-value pairs; of a list of numbers only the first, of a list of texts nothing.

    Everything useful precedes the vocabulary, except the chat template. So reading ends there, and the template is
    searched by its key: parsing a million tokens takes a hundred times as long.
    """
    return _Header(file).read()


class _Header:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._at = 0
        self._end = min(os.fstat(file.fileno()).st_size, MAX_HEADER_BYTES)
        self._members = 0

    def read(self) -> GgufHeader:
        if self._take(4) != b"GGUF":
            raise DamagedFile("it does not begin with GGUF")
        version, _tensors, entries = self._scalar(_U32), self._scalar(_U64), self._scalar(_U64)
        if version not in (2, 3) or entries > MAX_ENTRIES:
            raise DamagedFile(f"version {version} with {entries} entries")
        found: GgufHeader = {}
        for _ in range(entries):
            key, kind = self._key(), self._scalar(_U32)
            if kind != _ARRAY:
                found[key] = self._value(kind)
                continue
            kind, length = self._scalar(_U32), self._scalar(_U64)
            if kind == _STRING and length > MANY_ENTRIES and _has_shape(found):
                return found if TEMPLATE in found else found | {TEMPLATE: self._search(TEMPLATE)}
            found[key] = self._first(kind, length)
        return found

    def _value(self, kind: int) -> HeaderValue:
        if kind == _STRING:
            return self._text()
        if kind not in _SCALARS:
            raise DamagedFile(f"unknown type {kind}")
        value: HeaderValue = self._scalar(_SCALARS[kind])
        return value

    def _first(self, kind: int, length: int) -> HeaderValue:
        if kind in _SCALARS and length:
            first: HeaderValue = self._scalar(_SCALARS[kind])
            self._skip(_SCALARS[kind].size * (length - 1))
            return first
        self._members += length
        if length and (kind != _STRING or self._members > MAX_MEMBERS):
            raise DamagedFile(f"a list of type {kind} with {length} members")
        self._skip_texts(length)
        return None

    def _skip_texts(self, count: int) -> None:
        """Skip texts in half of the time that one read per text would take."""
        chunk, at, unpack = b"", 0, _U64.unpack_from
        for _ in range(count):
            if at + 8 > len(chunk):
                self._skip(at - len(chunk))
                chunk, at = self._take(max(8, min(CHUNK_BYTES, self._end - self._at))), 0
            at += 8 + unpack(chunk, at)[0]
        self._skip(at - len(chunk))

    def _search(self, key: str) -> str:
        """Return the text under `key`, anywhere after this position, or nothing."""
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
            raise DamagedFile(f"a key of {length} bytes")
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
        """Skip bytes; also backwards."""
        self._at += length
        if self._at > self._end:
            raise self._too_short()
        self._file.seek(length, os.SEEK_CUR)

    def _too_short(self) -> DamagedFile:
        if self._end == MAX_HEADER_BYTES:
            return DamagedFile(f"its header is longer than {MAX_HEADER_BYTES} bytes")
        return DamagedFile("it ends in the middle of its header")


def _has_shape(found: GgufHeader) -> bool:
    return f"{found.get('general.architecture')}.context_length" in found
