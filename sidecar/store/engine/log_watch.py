"""Detects that the write-ahead log was truncated or overwritten in place, by comparing it with its index.

SQLite would not notice: it appends behind the hole and later copies zeros from it into the database. A check
costs two `pread` and one `fstat` more. Knows the file format of the log and its index, but no table.
"""

from __future__ import annotations

import os
import struct
from contextlib import suppress

_INDEX_BYTES = 96
"""The index starts with two equal copies of its header; they differ only while a commit changes them."""

_HEADER = struct.Struct("=12x B x H I 12x 8s 8x")
"""Of one copy: whether it is valid, the page size, the number of committed frames, the salt of the log."""

_LOG_HEADER, _FRAME_HEADER = 32, 24
_SALT = slice(16, 24)
_LARGEST_PAGE = 65536
"""Stored as 1, because it does not fit its field."""


class LogWatch:
    """Descriptors of the log and of its index, for as long as connections to the database are open: closing one
    of the index earlier would drop SQLite's locks."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._fds: dict[str, int] = {}

    def close(self) -> None:
        for fd in self._fds.values():
            os.close(fd)
        self._fds.clear()

    def is_overwritten(self) -> bool:
        """Return whether the log contains less than its index says, or another log."""
        try:
            index = self._read_index()
            if index is None or self._has_frames_of(index):
                return False
            # SQLite writes the frames before the header of the index, and empties the header before it restarts
            # the log: only an unchanged header contradicts the log.
            return self._read_index() == index
        except OSError:
            return False  # a disk that does not respond: the next read or write reports it

    def _read_index(self) -> bytes | None:
        """Return the header of the index; None while it is being changed or when there is no index."""
        fd = self._open("-shm")
        found = os.pread(fd, _INDEX_BYTES, 0) if fd is not None else b""
        first, second = found[: _HEADER.size], found[_HEADER.size :]
        return first if len(found) == _INDEX_BYTES and first == second else None

    def _has_frames_of(self, index: bytes) -> bool:
        is_valid, page, frames, salt = _HEADER.unpack(index)
        fd = self._open("-wal")
        if fd is None or not is_valid or not frames:
            return True
        frame = _FRAME_HEADER + (_LARGEST_PAGE if page == 1 else page)
        if os.fstat(fd).st_size < _LOG_HEADER + frames * frame:
            return False
        return os.pread(fd, _LOG_HEADER, 0)[_SALT] == bytes(salt)

    def _open(self, suffix: str) -> int | None:
        if suffix not in self._fds:
            flags = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
            with suppress(OSError):
                self._fds[suffix] = os.open(self._path + suffix, flags)
        return self._fds.get(suffix)
