"""Detects that the open files of a database are no longer the ones at its path.

Another program may remove, rename, replace or overwrite them at any time, and SQLite would keep writing to
unreachable files. A check costs three `stat` calls and one `pread`, some microseconds. Knows no table.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Literal

import msgspec

from ...model.failures import StorageFailed
from ...system.own_files import Inode
from .log_watch import LogWatch
from .sqlite import Connection, storage_failure

_MAGIC = b"SQLite format 3\0"
_TOKEN = slice(68, 72)
"""The application id in the database header: random, set once, equal in every copy of the database."""

COPIED_AT_ONCE = 1 << 20


class Loss(msgspec.Struct, frozen=True):
    """`file` was removed or replaced; `overwritten` means that it is the same file, the database or its log, with
    other contents now."""

    kind: Literal["removed", "replaced", "overwritten"]
    file: str

    @property
    def reason(self) -> str:
        return "removed" if self.kind == "removed" else "replaced"


class DatabaseFiles:
    """Descriptors of the database's files.

    Opened before the first connection and closed after the last one: POSIX locks belong to the process, and
    closing a descriptor of the file earlier would drop SQLite's locks.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        # Kept open to compare contents: the inode alone does not show that a file was overwritten in place,
        # and it may be reused after a removal.
        self._fd = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        self._inode = inode_of(os.fstat(self._fd))
        self._beside: dict[str, Inode] = {}
        self._log = LogWatch(path)
        self._token: bytes | None = None
        self._had_header = self._has_token = False
        self.rescues = 0
        """How often this database was rescued before it was opened."""

    def close(self) -> None:
        self._log.close()
        os.close(self._fd)

    @property
    def inode(self) -> Inode:
        """Device and inode of the opened database."""
        return self._inode

    @property
    def token(self) -> int | None:
        """The application id of the opened database; None before it was read."""
        return int.from_bytes(self._token, "big", signed=True) if self._token else None

    def has_header(self) -> bool:
        """Return whether the file starts with a database header now."""
        return os.pread(self._fd, 16, 0) == _MAGIC

    def copy_contents(self, target: str) -> None:
        """Copy the current contents of the database's own file, without its log."""
        writing = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            place = 0
            while data := os.pread(self._fd, COPIED_AT_ONCE, place):
                place += os.write(writing, data)
        finally:
            os.close(writing)

    def look(self, _: Connection) -> Loss | None:
        """As `loss`, in the thread of a connection: a disk that does not respond blocks nothing else."""
        return self.loss()

    def loss(self) -> Loss | None:
        """Return what happened to the files since they were opened; None when they are unchanged."""
        try:
            if inode_of(os.stat(self._path)) != self._inode:
                return Loss("replaced", self._path)
        except (FileNotFoundError, NotADirectoryError):
            return Loss("removed", self._path)
        except OSError as error:
            if error.errno == errno.ELOOP:
                return Loss("replaced", self._path)
            return None  # a disk that does not respond: the next read or write reports it
        return self._loss_beside() or self._loss_within()

    def _loss_beside(self) -> Loss | None:
        """Check the write-ahead log and its index, which stay the same files while any process has the
        database open."""
        for suffix in ("-wal", "-shm"):
            file, known = self._path + suffix, self._beside.get(suffix)
            try:
                found = inode_of(os.stat(file))
            except OSError:
                if known:
                    return Loss("removed", file)
                continue
            # First seen counts as ours: SQLite creates them with the first connection, after this object was
            # made.
            if self._beside.setdefault(suffix, found) != found:
                return Loss("replaced", file)
        return Loss("overwritten", f"{self._path}-wal") if self._log.is_overwritten() else None

    def _loss_within(self) -> Loss | None:
        try:
            header = os.pread(self._fd, 100, 0)
        except OSError:
            return None
        if header[:16] != _MAGIC:
            return Loss("overwritten", self._path) if self._had_header else None
        self._had_header = True
        token = header[_TOKEN]
        # Zeros are normal until the first checkpoint writes the header page.
        if not any(token):  # the id is still only in the log
            return Loss("overwritten", self._path) if self._has_token else None
        self._has_token = True
        self._token = self._token or token
        return Loss("overwritten", self._path) if self._token != token else None

    def learn(self, db: Connection) -> None:
        """Read what identifies the database from one of its connections."""
        if token := int(db.execute("PRAGMA application_id").fetchone()[0]):
            self._token = token.to_bytes(4, "big", signed=True)
        self.rescues = count_rescues(db)


def count_rescues(db: Connection) -> int:
    """Return how often a database was copied from files that were removed or replaced."""
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'counters'").fetchone():
        return 0  # a database that is being created
    row = db.execute("SELECT value FROM counters WHERE name = 'rescues'").fetchone()
    return int(row[0]) if row else 0


def open_files(path: str) -> DatabaseFiles:
    """Open the files of an existing database; StorageFailed when it does not exist."""
    try:
        return DatabaseFiles(path)
    except FileNotFoundError as error:
        raise files_lost(Loss("removed", path)) from error
    except OSError as error:
        raise storage_failure(error, path) from error


def files_lost(loss: Loss, copy: str | None = None) -> StorageFailed:
    """Build the error for writers: what happened, where the chats are, and what to do."""
    happened = {
        "removed": "was removed while the database was in use",
        "replaced": "was replaced while the database was in use",
        "overwritten": "was overwritten while the database was in use",
    }[loss.kind]
    remedy = (
        f"What it held is in {copy}: end every sidecar on it, then `sidecar restore {copy}` brings that back,"
        " and a new start without that goes on with the file that is there now"
        if copy
        else "What can still be read is being copied; free the folder for writing when this stays"
    )
    return StorageFailed(
        loss.reason,
        f"{loss.file} {happened}. {remedy}",
        action="restore" if copy else "retry",
        retryable=copy is None,
    )


def inode_of(found: os.stat_result) -> Inode:
    return found.st_dev, found.st_ino


class Rescued(msgspec.Struct, frozen=True):
    """`file` is the copy, or the database's own path when the copy was moved there. `by_other`: another
    process put its copy there, which contains every acknowledged commit."""

    file: str
    is_back: bool
    by_other: bool = False


Rescue = Callable[[str, Loss, DatabaseFiles, Connection], Rescued]
"""Copies everything that a connection to lost files can read."""
