"""Which SQLite runs, and how its errors are told apart. One SQLite library in a process.

Versions before 3.51.3 can corrupt a WAL database that several processes write and checkpoint. `pysqlite3`
brings a newer one where it has a wheel; it must stand in for `sqlite3` before aiosqlite is imported.
"""

from __future__ import annotations

import os
import sys

try:
    import pysqlite3
except ImportError:
    import sqlite3
else:
    sys.modules["sqlite3"] = sqlite3 = pysqlite3
    sys.modules["sqlite3.dbapi2"] = pysqlite3.dbapi2

from ..model.failures import StorageFailed, no_memory

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

FAULTS = (DatabaseError, sqlite3.InterfaceError, MemoryError, OSError, UnicodeDecodeError)
"""What a statement raises when the disk, the memory or the file is at fault: the second when there is no memory for a
value, the last when SQLite names garbage."""

_FULL, _READONLY, _CORRUPT, _NOT_A_DATABASE, _IO, _CANNOT_OPEN = 13, 8, 11, 26, 10, 14
_INDEX_CORRUPT = 267  # SQLITE_CORRUPT_VTAB: a full-text index contradicts itself, the rows do not
_REASONS = {_FULL: "full", _READONLY: "readonly", _CORRUPT: "corrupt", _NOT_A_DATABASE: "corrupt"}
_OF_A_JOB = {1, 17, 18, 19, 20, 21, 25}
"""Results that say something of the statement (ERROR, SCHEMA, TOOBIG, CONSTRAINT, …), nothing of the disk."""

_ACTIONS = {"full": "free_disk", "readonly": "check_permissions", "corrupt": "run_doctor", "io": "retry"}


def storage_failure(error: BaseException, path: str | None = None) -> StorageFailed:
    """The failure of the contract that stands for an error of SQLite or of the file system.

    With the database's path, what SQLite only calls an I/O error is told apart by asking the file system.
    """
    if isinstance(error, StorageFailed):
        return error
    if isinstance(error, MemoryError):
        return no_memory()
    code = primary_code(error)
    reason = "corrupt" if isinstance(error, UnicodeDecodeError) else _REASONS.get(code, "io")
    if code in (_IO, _CANNOT_OPEN) and path is not None:
        reason = _of_file_system(path) or reason
    return StorageFailed(
        reason, f"The database said: {error}", action=_ACTIONS[reason], retryable=reason in ("io", "full")
    )


def primary_code(error: BaseException) -> int:
    """SQLite's primary result code; 0 when the error is not SQLite's."""
    return int(getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF


def is_of_the_job(error: BaseException) -> bool:
    """Whether only the job is wrong; after every other error the whole transaction is undone."""
    return isinstance(error, DatabaseError) and primary_code(error) in _OF_A_JOB


def is_of_an_index(error: BaseException) -> bool:
    """Whether a full-text index is damaged, which is made anew from the rows."""
    return int(getattr(error, "sqlite_errorcode", 0) or 0) == _INDEX_CORRUPT


def is_on_readonly_disk(path: str) -> bool:
    """Whether the disk of a database that is there cannot be written by anybody."""
    return os.path.exists(path) and _of_file_system(path) == "readonly"


def _of_file_system(path: str) -> str | None:
    try:
        found = os.statvfs(os.path.dirname(path) or ".")
    except (OSError, AttributeError):  # Windows has no statvfs
        return None
    if found.f_flag & getattr(os, "ST_RDONLY", 0):
        return "readonly"
    return "full" if found.f_bavail == 0 or (found.f_files and found.f_favail == 0) else None
