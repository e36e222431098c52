"""Bringing the database into being: a private folder and file, and the numbered migrations."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from ..model.failures import StorageFailed
from .sqlite import Connection, complete_statement

FILE_NAME = "sidecar.db"

FINISHED = ".salvaged"
"""What a database is called that was saved or brought back, until it gets the name of the one that it replaces."""


class Migration(msgspec.Struct, frozen=True):
    version: int
    path: Path


def prepare_folder(data_dir: Path) -> Path:
    """The database's path, its folder 0700, ours and not a link."""
    try:
        if not os.path.lexists(data_dir):
            data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        _make_private(data_dir, 0o700)
    except OSError as error:
        raise _refused(data_dir, error) from error
    return data_dir / FILE_NAME


def is_unfinished(path: str) -> bool:
    """Whether a recovery was cut between moving the old database aside and naming the new one."""
    return not os.path.exists(path) and os.path.exists(path + FINISHED)


def prepare_file(data_dir: Path) -> Path:
    """The database's path, its folder 0700 and the file 0600, both ours and neither a link."""
    path = prepare_folder(data_dir)
    try:
        if not os.path.lexists(path):
            # SQLite gives -wal and -shm the mode of the database, so it is made before SQLite sees it.
            os.close(os.open(path, os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0), 0o600))
        _make_private(path, 0o600)
    except OSError as error:
        raise _refused(data_dir, error) from error
    return path


def known_migrations() -> list[Migration]:
    folder = Path(__file__).parent / "migrations"
    found = [
        Migration(int(name[:4]), folder / name)
        for name in os.listdir(folder)
        if re.match(r"\d{4}_.*\.sql$", name)
    ]
    return sorted(found, key=lambda migration: migration.version)


def migrate(
    db: Connection, migrations: Sequence[Migration], announce: Callable[[str], None], path: str = ":memory:"
) -> None:
    """Bring the schema up to date in one transaction, after a backup; refuse one that a newer program wrote."""
    newest = migrations[-1].version
    version = _version(db)
    if version > newest:
        raise StorageFailed(
            "schema_newer",
            f"The database has schema {version}, this program knows {newest}: it was written by a newer sidecar",
            action="upgrade_app",
        )
    if version == newest:
        return
    if version:
        announce("migrating")
        _back_up(db, path, version)
    db.execute("BEGIN EXCLUSIVE")
    try:
        for migration in migrations:
            if migration.version > _version(db):
                _run(db, migration)
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _back_up(db: Connection, path: str, version: int) -> None:
    """Keep the database as it was, beside it; one backup for each shape."""
    target = f"{path}.schema-{version}"
    if path == ":memory:" or os.path.exists(target):
        return
    from . import copying

    copying.copy(db, target)


def _run(db: Connection, migration: Migration) -> None:
    statement = ""
    for line in migration.path.read_text(encoding="utf-8").splitlines(keepends=True):
        statement += line
        if complete_statement(statement):
            db.execute(statement)
            statement = ""
    db.execute(f"PRAGMA user_version = {migration.version}")


def _version(db: Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _make_private(path: Path, mode: int) -> None:
    found = os.lstat(path)
    if stat.S_ISLNK(found.st_mode):
        raise StorageFailed(
            "io", f"{path} is a symbolic link: name the real folder", action="check_permissions"
        )
    if not (stat.S_ISDIR(found.st_mode) or stat.S_ISREG(found.st_mode)):
        raise StorageFailed(
            "io", f"{path} is neither a folder nor a regular file", action="check_permissions"
        )
    if hasattr(os, "getuid") and found.st_uid != os.getuid():
        raise StorageFailed("io", f"{path} belongs to another user", action="check_permissions")
    if stat.S_IMODE(found.st_mode) & 0o077:
        os.chmod(path, mode)


def _refused(data_dir: Path, error: OSError) -> StorageFailed:
    return StorageFailed(_reason(error), f"{data_dir}: {error.strerror}", action="check_permissions")


def _reason(error: OSError) -> str:
    import errno

    reasons = {errno.ENOSPC: "full", errno.EDQUOT: "full", errno.EROFS: "readonly", errno.EACCES: "readonly"}
    return reasons.get(error.errno or 0, "io")
