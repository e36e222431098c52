"""The reserve: a file beside the database that is deleted when the disk is full, so that turns can commit
their end.

All processes of one database share it. It is looked up by name each time, because another process may have
deleted it.
"""

from __future__ import annotations

import errno
import os

RESERVE_BYTES = 256 * 1024
"""About sixty pages: the ends of several turns at once."""

_NO_SPACE = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}


class Reserve:
    """`path` is that of the database; without one there is no reserve."""

    def __init__(self, path: str | None) -> None:
        self.database = path
        self._path = f"{path}-reserve" if path else None

    def ensure(self) -> bool:
        """Create or refill the reserve; False when the disk has no space for it."""
        if self._path is None or os.path.exists(self._path):
            return True
        return self._fill(self._path)

    def release(self) -> bool:
        """Delete the reserve to free its space; False when another process did."""
        if self._path is None:
            return False
        try:
            os.unlink(self._path)
        except OSError:
            return False
        return True

    def _fill(self, path: str) -> bool:
        part = f"{path}.{os.getpid()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
        try:
            fd = os.open(part, flags, 0o600)
            try:
                _allocate(fd)
            finally:
                os.close(fd)
            # By another name first: a process that looks for the reserve meanwhile must not find half of it and
            # release that.
            os.replace(part, path)
        except OSError as error:
            _discard(part)
            # After another error than lack of space, the disk may still accept what the database writes.
            return error.errno not in _NO_SPACE
        return True


def _allocate(fd: int) -> None:
    """Allocate real blocks: a sparse file would reserve nothing."""
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(fd, 0, RESERVE_BYTES)
            return
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                raise
    data = memoryview(os.urandom(RESERVE_BYTES))  # a compressing file system would store zeros in no space
    while data:
        data = data[os.write(fd, data) :]


def _discard(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return
