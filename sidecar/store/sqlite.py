"""Which SQLite runs, and how its errors are told apart. One SQLite library in a process.

Versions before 3.51.3 can corrupt a WAL database that several processes write and checkpoint. `pysqlite3`
brings a newer one where it has a wheel; it must stand in for `sqlite3` before aiosqlite is imported.
"""

from __future__ import annotations

import sys

try:
    import pysqlite3
except ImportError:
    import sqlite3
else:
    sys.modules["sqlite3"] = sqlite3 = pysqlite3
    sys.modules["sqlite3.dbapi2"] = pysqlite3.dbapi2

from ..model.failures import StorageFailed

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

_REASONS = (
    ("full", ("disk is full",)),
    ("readonly", ("readonly", "read-only")),
    ("corrupt", ("malformed", "not a database", "corrupt")),
)
_ACTIONS = {"full": "free_disk", "readonly": "check_permissions", "corrupt": "run_doctor", "io": "retry"}


def storage_failure(error: Exception) -> StorageFailed:
    """The failure of the contract that stands for an error of SQLite or of the file system."""
    text = str(error)
    reason = next((name for name, words in _REASONS if any(word in text for word in words)), "io")
    return StorageFailed(
        reason, f"The database said: {text}", action=_ACTIONS[reason], retryable=reason == "io"
    )
