"""Whole databases from one file to another by SQLite's own API, which sees one moment also while others write."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing, suppress

from ..system.files import sync_folder
from .sqlite import Connection, connect

PAGES = 512
"""Copied at once: 2 MiB. Between two such steps others may write."""

Progress = Callable[[int, int], None]
"""Is told how many pages are copied, and how many there are."""


def copy(db: Connection, target: str, progress: Progress = lambda done, total: None) -> int:
    """Write the database to `target`, which appears whole or not at all; its size in bytes."""
    part = f"{target}.{os.getpid()}.part"
    os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        with closing(connect(part, isolation_level=None)) as made:
            # A transaction of our own holds the moment, so that a busy writer does not make it start over and over.
            db.execute("BEGIN")
            try:
                db.execute("SELECT count(*) FROM sqlite_master").fetchone()
                db.backup(made, pages=PAGES, progress=lambda _, left, total: progress(total - left, total))
            finally:
                db.execute("ROLLBACK")
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
