"""Locks the files of a database, with four locks: the file `-lock`, which all users of the database hold shared,
and a process that moves the files holds exclusively; the file `-repair`, by which a process requests that the
others close the database; the file `-rescue`, held while lost files are copied; and the bytes that SQLite itself
locks in the database.

The kernel releases a lock when its process ends. Programs that do not know these files, such as the SQLite
shell, are detected by the last lock.
"""

from __future__ import annotations

import errno
import os
import time
from contextlib import suppress

from ...model.failures import StorageFailed

try:
    import fcntl
except ImportError:  # Windows: an open file cannot be renamed there
    fcntl = None  # type: ignore[assignment]

LOCK_TIMEOUT_S = 30.0
"""How long opening waits for a repair: salvage reads about 20 MB per second."""

REMOVED_S = 3.0
"""How long a process that finds no database waits for another one, which has it open and checks twice a
second, to restore it."""

RESCUE_S = 3.0
"""How long a process that noticed lost files waits for another one that copies them; then it tries again."""

LOCK_POLL_S = 0.05

_SQLITE_LOCKS = (0x40000000, 512)
"""The byte range that SQLite locks in the database; every connection to a WAL database locks some of it."""


class LockHeld(StorageFailed):
    """Another process has the database open."""

    def __init__(self) -> None:
        super().__init__(
            "corrupt",
            "The database is damaged and another process has it open: close that process, so that it can be repaired",
            action="run_doctor",
            retryable=True,
        )


class Repairing(StorageFailed):
    """Another process is repairing the database."""

    def __init__(self) -> None:
        super().__init__("corrupt", "The database is being repaired", action="retry", retryable=True)


class FileLock:
    """A lock that is held until `release`, which also removes `file`. Without a descriptor nothing could be
    locked."""

    def __init__(self, fd: int | None, file: str | None = None) -> None:
        self._fd = fd
        self._file = file

    def release(self) -> None:
        if self._fd is not None:
            # Removed before the lock is released: who opens it afterwards creates another file.
            if self._file:
                with suppress(OSError):
                    os.unlink(self._file)
            os.close(self._fd)
            self._fd = None


def begin_repair(path: str) -> FileLock:
    """Request that all other processes close the database until the lock is released; Repairing when another
    has requested it.

    If one process removes the file just after another opened it, both hold a lock, on different files.
    `lock_exclusive` decides which one may move files.
    """
    fd = _open(path, "-repair")
    if fd is not None and not _lock(fd, exclusive=True):
        os.close(fd)
        raise Repairing()
    return FileLock(fd, f"{path}-repair")


def repair_is_wanted(path: str) -> bool:
    """Return whether a live process requests the database. A killed one leaves the file behind without its
    lock."""
    if fcntl is None or not os.path.exists(f"{path}-repair"):
        return False
    # Without O_CREAT: asking must not create the file that means "yes".
    fd = _open(path, "-repair", os.O_RDWR)
    if fd is None:
        return False
    try:
        # A shared attempt, so that two processes that ask at once do not take each other for a repair.
        return not _lock(fd, exclusive=False)
    finally:
        os.close(fd)


def await_repair(path: str, timeout_s: float = LOCK_TIMEOUT_S) -> None:
    """Wait until no process requests the database."""
    end = time.monotonic() + timeout_s
    while repair_is_wanted(path) and time.monotonic() < end:
        time.sleep(LOCK_POLL_S)


def lock_rescue(path: str) -> FileLock:
    """Wait until no other process copies lost files of the database; StorageFailed when that takes too long."""
    end, name = time.monotonic() + RESCUE_S, f"{path}-rescue"
    while True:
        fd = _open(path, "-rescue")
        # The file that was opened may be the one that another process removed when it released its lock.
        if fd is None or (_lock(fd, exclusive=True) and _is_at(fd, name)):
            return FileLock(fd, name)
        os.close(fd)
        if time.monotonic() > end:
            message = "Another process copies the files of the database that were removed or replaced"
            raise StorageFailed("io", message, action="retry", retryable=True)
        time.sleep(LOCK_POLL_S)


def await_file(path: str, timeout_s: float = REMOVED_S) -> None:
    """Wait for the database to appear while another process has it open: that process notices the removal and
    restores the file."""
    end = time.monotonic() + timeout_s
    while not os.path.lexists(path) and time.monotonic() < end:
        fd = _open(path)
        if fd is None:
            return
        try:
            # It succeeds when nobody has the database open: then nobody will restore the file, and a new one may
            # be created.
            if _lock(fd, exclusive=True):
                return
        finally:
            os.close(fd)
        time.sleep(LOCK_POLL_S)


def lock_shared(path: str, timeout_s: float = LOCK_TIMEOUT_S) -> FileLock:
    """Lock the database for use. Waits while another process repairs it; then raises StorageFailed."""
    end = time.monotonic() + timeout_s
    fd = _open(path)
    # Repairs go first: a steady stream of new processes would otherwise keep the exclusive lock from ever
    # being free.
    while fd is not None and (repair_is_wanted(path) or not _lock(fd, exclusive=False)):
        if time.monotonic() > end:
            os.close(fd)
            raise StorageFailed(
                "io", "Another process is repairing the database", action="retry", retryable=True
            )
        time.sleep(LOCK_POLL_S)
    return FileLock(fd)


def lock_exclusive(path: str, timeout_s: float = 0.0) -> FileLock | None:
    """Lock the database exclusively; None when another process still has it open after `timeout_s` seconds.

    The caller has closed its own connections: closing a file of the database drops the locks that SQLite
    holds on it.
    """
    fd = _open(path)
    if fd is None:
        return FileLock(None) if fcntl is None else None
    end = time.monotonic() + timeout_s
    # Our own lock first: once we hold it, no process of ours opens the database while the foreign ones
    # are looked for.
    while not (_lock(fd, exclusive=True) and not _in_use(path)):
        if time.monotonic() >= end:
            os.close(fd)
            return None
        time.sleep(LOCK_POLL_S)
    return FileLock(fd)


def _open(path: str, suffix: str = "-lock", how: int = os.O_RDWR | os.O_CREAT) -> int | None:
    if fcntl is None:
        return None
    # O_NOFOLLOW: a link that is named like the lock file would have us create the file that it points at.
    flags = how | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
    try:
        return os.open(path + suffix, flags, 0o600)
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise StorageFailed(
                "io", f"{path}: {os.strerror(error.errno)}", action="retry", retryable=True
            ) from error
        return None  # a read-only folder: no process can repair there either


def _lock(fd: int, *, exclusive: bool) -> bool:
    try:
        fcntl.flock(fd, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks: only SQLite's own locks remain
        # Nobody may move files then, but the database can be used.
        return not exclusive
    return True


def _is_at(fd: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except OSError:
        return False


def _in_use(path: str) -> bool:
    """Return whether a program that does not use our lock has the database open."""
    try:
        fd = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        start, length = _SQLITE_LOCKS
        # POSIX locks, as SQLite uses them: `flock` does not see those.
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, length, start)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False
