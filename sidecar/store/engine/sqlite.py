"""Selects the SQLite library and classifies its errors. A process uses one SQLite library.

Versions before 3.51.3 can corrupt a WAL database that several processes write and checkpoint. `pysqlite3`
provides a newer one where it has a wheel; it must replace `sqlite3` before aiosqlite is imported.
"""

from __future__ import annotations

import errno
import os
import sys

try:
    import pysqlite3
except ImportError:
    import sqlite3
else:
    sys.modules["sqlite3"] = sqlite3 = pysqlite3
    sys.modules["sqlite3.dbapi2"] = pysqlite3.dbapi2

from ...model.failures import StorageFailed, out_of_memory

Connection = sqlite3.Connection
Error = sqlite3.Error
DatabaseError = sqlite3.DatabaseError
connect = sqlite3.connect
complete_statement = sqlite3.complete_statement

SAFE_VERSION = (3, 51, 3)
"""The first release without the WAL-reset bug."""

VERSION: str = sqlite3.sqlite_version
VERSION_INFO: tuple[int, ...] = sqlite3.sqlite_version_info
IS_SAFE: bool = VERSION_INFO >= SAFE_VERSION

STORAGE_ERRORS = (DatabaseError, sqlite3.InterfaceError, MemoryError, OSError, UnicodeDecodeError)
"""What a statement raises when disk, memory or file fails: InterfaceError without memory for a value,
UnicodeDecodeError when SQLite reports a corrupt name."""

_BUSY = 5
_FULL, _READONLY, _CORRUPT, _NOT_A_DATABASE, _IO, _CANNOT_OPEN = 13, 8, 11, 26, 10, 14
_REASONS = {_FULL: "full", _READONLY: "readonly", _CORRUPT: "corrupt", _NOT_A_DATABASE: "corrupt"}
_OF_ERRNO = {
    errno.ENOSPC: "full",
    getattr(errno, "EDQUOT", errno.ENOSPC): "full",
    errno.EROFS: "readonly",
    errno.EACCES: "readonly",
}
_JOB_ERROR_CODES = {1, 17, 18, 19, 20, 21, 25}
"""Result codes about the statement (ERROR, SCHEMA, TOOBIG, CONSTRAINT, …), not about the disk."""

_NO_TABLE = "no such table: "
"""Every database in use has all tables: without one its contents are lost."""

NO_ROOM_BYTES = 64 * 1024
"""An I/O error with less free space than this counts as a full disk: a commit and the log's index need more
at once."""

_ACTIONS = {"full": "free_disk", "readonly": "check_permissions", "corrupt": "run_doctor", "io": "retry"}


def storage_failure(error: BaseException, path: str | None = None) -> StorageFailed:
    """Convert an error of SQLite or of the file system into the failure of the contract.

    With the path of the database, the file system is checked to say what SQLite only calls an I/O error.
    """
    if isinstance(error, StorageFailed):
        return error
    if isinstance(error, MemoryError):
        return out_of_memory()
    code = primary_code(error)
    is_damage = isinstance(error, UnicodeDecodeError) or _NO_TABLE in str(error)
    reason = "corrupt" if is_damage else _REASONS.get(code, "io")
    if isinstance(error, OSError):
        reason = _OF_ERRNO.get(error.errno or 0, "io")
    if code in (_IO, _CANNOT_OPEN) and path is not None:
        reason = _file_system_reason(path) or reason
    return StorageFailed(
        reason, f"The database reports: {error}", action=_ACTIONS[reason], retryable=reason in ("io", "full")
    )


def disk_full() -> StorageFailed:
    return StorageFailed("full", "The disk is full", action="free_disk", retryable=True)


def primary_code(error: BaseException) -> int:
    """Return SQLite's primary result code; 0 when the error is not SQLite's."""
    return int(getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF


def is_busy(error: BaseException) -> bool:
    """Return whether another connection writes."""
    return primary_code(error) == _BUSY


def is_job_error(error: BaseException) -> bool:
    """Return whether only the job failed; after every other error the whole transaction is rolled back."""
    return isinstance(error, DatabaseError) and primary_code(error) in _JOB_ERROR_CODES


def is_on_readonly_disk(path: str) -> bool:
    """Return whether an existing database is on a disk that nobody can write to."""
    return os.path.exists(path) and _file_system_reason(path) == "readonly"


def _file_system_reason(path: str) -> str | None:
    try:
        found = os.statvfs(os.path.dirname(path) or ".")
    except (OSError, AttributeError):  # Windows has no statvfs
        return None
    if found.f_flag & getattr(os, "ST_RDONLY", 0):
        return "readonly"
    space = found.f_bavail * found.f_frsize
    return "full" if space < NO_ROOM_BYTES or (found.f_files and found.f_favail == 0) else None
