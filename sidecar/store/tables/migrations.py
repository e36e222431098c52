"""Migrates the schema by the numbered migrations, in one transaction and after a backup."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from ...model.failures import StorageFailed
from ..engine import file_copy
from ..engine.sqlite import Connection, complete_statement
from . import mcp_secrets


class Migration(msgspec.Struct, frozen=True):
    version: int
    path: Path


def known_migrations() -> list[Migration]:
    folder = Path(__file__).parents[1] / "migrations"
    found = [
        Migration(int(name[:4]), folder / name)
        for name in os.listdir(folder)
        if re.match(r"\d{4}_.*\.sql$", name)
    ]
    return sorted(found, key=lambda migration: migration.version)


def migrate(
    db: Connection, migrations: Sequence[Migration], announce: Callable[[str], None], path: str = ":memory:"
) -> None:
    """Migrate the schema in one transaction, after a backup; refuse one that a newer program wrote."""
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
        # Outside of the transaction: it copies the database by SQLite's own backup, while others may still
        # read.
        _back_up(db, path, version)
    moved = _run_all(db, migrations, path)
    if moved:
        # The log still contains old pages. If a reader elsewhere holds it, the next checkpoint empties it.
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _run_all(db: Connection, migrations: Sequence[Migration], path: str) -> int:
    """Run the pending migrations in one transaction; return how many rows had secrets that were moved."""
    moved = 0
    pending = {migration.path.name for migration in migrations if migration.version > _version(db)}
    if mcp_secrets.MIGRATION in pending and path != ":memory:":
        mcp_secrets.mask_copies(path)
    db.execute("BEGIN EXCLUSIVE")
    try:
        for migration in migrations:
            # Asked again inside: another process may have migrated while this one waited.
            if migration.version > _version(db):
                _run(db, migration)
                if migration.path.name == mcp_secrets.MIGRATION:
                    moved = mcp_secrets.move_out(db)
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    return moved


def _back_up(db: Connection, path: str, version: int) -> None:
    """Copy the database beside it before the migration; one backup per schema version."""
    target = f"{path}.schema-{version}"
    if path == ":memory:" or os.path.exists(target):
        return
    file_copy.copy(db, target)


def _run(db: Connection, migration: Migration) -> None:
    statement = ""
    for line in migration.path.read_text(encoding="utf-8").splitlines(keepends=True):
        statement += line
        # Statement by statement: `executescript` would commit the transaction first.
        if complete_statement(statement):
            db.execute(statement)
            statement = ""
    db.execute(f"PRAGMA user_version = {migration.version}")


def _version(db: Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])
