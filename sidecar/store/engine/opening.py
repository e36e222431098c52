"""Creates the folder and file of the database with private modes, and guards the folder."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from pathlib import Path

from ...model.failures import StorageFailed
from ...system.own_files import FolderGuard
from .sqlite import Connection

FILE_NAME = "sidecar.db"

SALVAGED_SUFFIX = ".salvaged"
"""The suffix of a salvaged or restored database until it is renamed to the one that it replaces."""


def prepare_folder(data_dir: Path) -> Path:
    """Return the path of the database; its folder is 0700, owned by this user and not a link."""
    try:
        if not os.path.lexists(data_dir):
            data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        _make_private(data_dir, 0o700, folder=True)
    except OSError as error:
        raise _folder_failure(data_dir, error) from error
    return data_dir / FILE_NAME


def guard_folder(data_dir: Path) -> FolderGuard:
    """Prevent everything else in this process from opening the database's files."""
    try:
        return FolderGuard(str(data_dir), FILE_NAME)
    except OSError as error:
        raise _folder_failure(data_dir, error) from error


def is_unfinished(path: str) -> bool:
    """Return whether a recovery was interrupted between moving the old database aside and renaming the new
    one."""
    return not os.path.exists(path) and os.path.exists(path + SALVAGED_SUFFIX)


def prepare_file(data_dir: Path) -> Path:
    """Return the path of the database; its folder is 0700 and the file 0600, both owned by this user, neither
    a link."""
    path = prepare_folder(data_dir)
    try:
        if not os.path.lexists(path):
            # Looked at before the file is created: a log without a database means that the database was removed.
            was_removed = _size(f"{path}-wal") > 0
            # SQLite creates -wal and -shm with the mode of the database, so the file must exist before SQLite
            # opens it.
            os.close(os.open(path, os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0), 0o600))
            _make_private(path, 0o600)
            if was_removed:
                _refuse_emptied(path)
            Path(f"{path}-reserve").unlink(
                missing_ok=True
            )  # it is how a database that was emptied is recognised
        else:
            _make_private(path, 0o600)
            _refuse_emptied(path)
    except OSError as error:
        raise _folder_failure(data_dir, error) from error
    return path


def _refuse_emptied(path: Path) -> None:
    """Refuse an empty file beside a log or a reserve: it was a database, and SQLite would start over and
    delete the log."""
    if path.stat().st_size:
        return
    if os.path.exists(f"{path}-reserve") or _size(f"{path}-wal"):
        raise StorageFailed("corrupt", f"{path} was emptied", action="run_doctor")


def refuse_without_tables(path: str, db: Connection) -> None:
    """Refuse a database that was in use and has no table: its log was overwritten, or its contents."""
    # The reserve first: another process that creates the database makes it after the tables.
    if os.path.exists(f"{path}-reserve") and not db.execute("SELECT 1 FROM sqlite_master").fetchone():
        raise StorageFailed("corrupt", f"{path} lost its contents", action="run_doctor")


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def mark(db: Connection) -> None:
    """Set a random application id, which detects another database that is copied over this one."""
    if _application_id(db) or db.execute("PRAGMA query_only").fetchone()[0]:
        return
    # Several processes may create one database at the same time: only the first of them sets the id.
    db.execute("BEGIN IMMEDIATE")
    try:
        if not _application_id(db):
            db.execute(f"PRAGMA application_id = {secrets.randbelow(2**31 - 1) + 1}")
    finally:
        db.execute("COMMIT")


def _application_id(db: Connection) -> int:
    return int(db.execute("PRAGMA application_id").fetchone()[0])


def _make_private(path: Path, mode: int, *, folder: bool = False) -> None:
    found = os.lstat(path)
    if stat.S_ISLNK(found.st_mode):
        raise StorageFailed(
            "io", f"{path} is a symbolic link: name the real folder", action="check_permissions"
        )
    is_expected = stat.S_ISDIR if folder else stat.S_ISREG
    if not is_expected(found.st_mode):
        wanted = "a folder" if folder else "a regular file"
        raise StorageFailed("io", f"{path} is not {wanted}: move it away", action="check_permissions")
    if hasattr(os, "getuid") and found.st_uid != os.getuid():
        raise StorageFailed("io", f"{path} belongs to another user", action="check_permissions")
    if stat.S_IMODE(found.st_mode) & 0o077:
        os.chmod(path, mode)


def _folder_failure(data_dir: Path, error: OSError) -> StorageFailed:
    full = _os_reason(error) == "full"
    return StorageFailed(
        _os_reason(error),
        f"{data_dir}: {error.strerror}",
        action="free_disk" if full else "check_permissions",
        retryable=full,
    )


def _os_reason(error: OSError) -> str:
    reasons = {errno.ENOSPC: "full", errno.EDQUOT: "full", errno.EROFS: "readonly", errno.EACCES: "readonly"}
    return reasons.get(error.errno or 0, "io")
