"""The reserve: a file beside the database that is given up when the disk is full, so that turns can commit their end.

All processes on one database share it. It is asked for by its name each time, because another may have given it up.
"""

from __future__ import annotations

import errno
import os

RESERVE_BYTES = 256 * 1024
"""Some sixty pages: the ends of several turns at once."""

_NO_SPACE = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}


class Reserve:
    """`path` is the database's; without one, nothing is kept back."""

    def __init__(self, path: str | None) -> None:
        self._path = f"{path}-reserve" if path else None

    def hold(self) -> bool:
        """Have the reserve, filled anew if it must be; False when the disk has no room for it."""
        if self._path is None or os.path.exists(self._path):
            return True
        return self._fill(self._path)

    def give_up(self) -> bool:
        """Give the room back; False when another has."""
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
            os.replace(part, path)
        except OSError as error:
            _discard(part)
            # Where no file can be made for another reason, the disk may still take what the database writes.
            return error.errno not in _NO_SPACE
        return True


def _allocate(fd: int) -> None:
    """Blocks that are there: a sparse file would keep nothing back."""
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(fd, 0, RESERVE_BYTES)
            return
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                raise
    data = memoryview(os.urandom(RESERVE_BYTES))  # a file system that compresses would swallow zeros
    while data:
        data = data[os.write(fd, data) :]


def _discard(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return
