"""Copies a whole database to another file with SQLite's backup API, as one consistent state while others
write."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing, suppress

from ...system.files import sync_folder
from .sqlite import Connection, connect

PAGES = 512
"""Pages copied per step, 2 MiB. Others may write between two steps."""

ReportPages = Callable[[int, int], None]
"""Called with the number of copied pages and of all pages."""


def copy(db: Connection, target: str, progress: ReportPages = lambda done, total: None) -> int:
    """Write the database to `target`, which appears completely or not at all; return its size in bytes."""
    part = f"{target}.{os.getpid()}.part"
    # Created before SQLite opens it, because SQLite would make it readable to others where the umask allows
    # that.
    os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        with closing(connect(part, isolation_level=None)) as made:
            # An own read transaction pins the state; without it, each commit of a busy writer would restart
            # the backup.
            db.execute("BEGIN")
            try:
                db.execute("SELECT count(*) FROM sqlite_master").fetchone()
                db.backup(made, pages=PAGES, progress=lambda _, left, total: progress(total - left, total))
            finally:
                db.execute("ROLLBACK")
            # A copy in WAL mode would leave a `-wal` file beside it that a rename does not take along.
            made.execute("PRAGMA journal_mode = DELETE")
        fd = os.open(part, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
        os.replace(part, target)
        sync_folder(os.path.dirname(target))
    except BaseException:
        with suppress(OSError):
            os.unlink(part)
        raise
    return os.path.getsize(target)
