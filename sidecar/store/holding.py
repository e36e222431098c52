"""Who has a database open: a lock beside it, shared by all who use it and taken alone by who moves its files.

The lock is the kernel's, so it ends with its process. Programs that do not know it, such as SQLite's own shell, are
seen by the locks that SQLite holds on the database itself.
"""

from __future__ import annotations

import errno
import os
import time

from ..model.failures import StorageFailed

try:
    import fcntl
except ImportError:  # Windows: a file that somebody has open cannot be renamed there
    fcntl = None  # type: ignore[assignment]

PATIENCE_S = 30.0
"""How long one who opens a database waits for one who repairs it: salvage reads some 20 MB a second."""

STEP_S = 0.05

_SQLITE_LOCKS = (0x40000000, 512)
"""Where SQLite locks bytes of the database; every connection to a WAL database holds some of them."""


class Held(StorageFailed):
    """Another process has the database open."""

    def __init__(self) -> None:
        super().__init__(
            "corrupt",
            "The database is damaged and another process has it open: close that one, so that it can be repaired",
            action="run_doctor",
            retryable=True,
        )


class Hold:
    """A lock that is held until `release`. Without a descriptor nothing could be locked."""

    def __init__(self, fd: int | None) -> None:
        self._fd = fd

    def release(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def share(path: str, patience: float = PATIENCE_S) -> Hold:
    """Use the database. Waits while another process repairs it; after that, StorageFailed."""
    fd = _open(path)
    end = time.monotonic() + patience
    while fd is not None and not _lock(fd, alone=False):
        if time.monotonic() > end:
            os.close(fd)
            raise StorageFailed(
                "io", "Another process is repairing the database", action="retry", retryable=True
            )
        time.sleep(STEP_S)
    return Hold(fd)


def alone(path: str) -> Hold | None:
    """Have the database to oneself, or None when anybody else has it open.

    The caller has closed its own connections: closing a database's file drops the locks that SQLite holds on it.
    """
    fd = _open(path)
    if fd is None:
        return Hold(None) if fcntl is None else None
    if _lock(fd, alone=True) and not _in_use(path):
        return Hold(fd)
    os.close(fd)
    return None


def _open(path: str) -> int | None:
    if fcntl is None:
        return None
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
    try:
        return os.open(f"{path}-lock", flags, 0o600)
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise StorageFailed(
                "io", f"{path}: {os.strerror(error.errno)}", action="retry", retryable=True
            ) from error
        return None  # a folder that cannot be written: nobody can repair there either


def _lock(fd: int, *, alone: bool) -> bool:
    try:
        fcntl.flock(fd, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks: SQLite's own are all there is
        return not alone
    return True


def _in_use(path: str) -> bool:
    """Whether a program that does not know our lock has the database open."""
    try:
        fd = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        start, length = _SQLITE_LOCKS
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, length, start)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False
