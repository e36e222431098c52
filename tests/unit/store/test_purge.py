"""Purging, held against the schema: a table that nobody purges is found here, and so is one that leaves its bytes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sidecar.model.figures import PurgeCounts
from sidecar.store import purge
from sidecar.store.engine.sqlite import Connection, connect
from sidecar.store.tables.migrations import known_migrations, migrate


@pytest.fixture
def db() -> Iterator[Connection]:
    connection = connect(":memory:", isolation_level=None)
    migrate(connection, known_migrations(), lambda _: None)
    yield connection
    connection.close()


def unpurged(db: Connection) -> list[str]:
    """Tables that no list of `purge` names; those of the index are purged by it, full-text ones follow theirs."""
    rows = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    tables = {name: sql or "" for name, sql in rows}
    virtual = [name for name, sql in tables.items() if sql.startswith("CREATE VIRTUAL TABLE")]
    plain = [
        name
        for name in tables
        if name not in virtual
        and not name.startswith("index_")
        and not any(name.startswith(f"{owner}_") for owner in virtual)
    ]
    return [name for name in plain if name not in _named(db, name)]


def _named(db: Connection, table: str) -> list[str]:
    columns = {row[1] for row in db.execute(f"PRAGMA table_info({table})")}
    found: list[str] = [*purge.SPECIAL_TABLES, *purge.GLOBAL_TABLES]
    if "chat" in columns:
        found = [name for name in [*purge.CHAT_TABLES, *purge.SPECIAL_TABLES, "figures"] if name == table]
    if "project" in columns and table not in purge.PROJECT_TABLES:
        return []
    return [*found, *(purge.PROJECT_TABLES if "project" in columns else ())]


def test_every_table_is_purged_by_somebody(db: Connection) -> None:
    assert unpurged(db) == []


@pytest.mark.parametrize(
    "columns", ["chat INTEGER", "project TEXT", "chat INTEGER, project TEXT", "words TEXT"]
)
def test_a_table_that_nobody_purges_is_found(db: Connection, columns: str) -> None:
    db.execute(f"CREATE TABLE forgotten ({columns})")
    assert unpurged(db) == ["forgotten"]


def test_every_count_has_a_name_that_is_told(db: Connection) -> None:
    tables = {**purge.CHAT_TABLES, **purge.PROJECT_TABLES, **purge.GLOBAL_TABLES}
    counted = {table.counted for table in tables.values() if table.counted}
    assert counted <= set(PurgeCounts.__struct_fields__)
