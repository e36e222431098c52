"""Migrations and the private file, tested from a blank database, from an older shape, and from a newer one."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sidecar.model.failures import StorageFailed
from sidecar.store.engine.opening import mark, prepare_file
from sidecar.store.engine.sqlite import Connection, connect
from sidecar.store.tables.migrations import Migration, known_migrations, migrate


@pytest.fixture
def db() -> Iterator[Connection]:
    connection = connect(":memory:", isolation_level=None)
    yield connection
    connection.close()


@pytest.fixture
def steps(tmp_path: Path) -> list[Migration]:
    first, second = tmp_path / "0001_one.sql", tmp_path / "0002_two.sql"
    first.write_text("CREATE TABLE one (a);\nINSERT INTO one VALUES (1);\n")
    second.write_text("ALTER TABLE one ADD COLUMN b DEFAULT 7;\n")
    return [Migration(1, first), Migration(2, second)]


def _version(db: Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def test_a_blank_database_gets_every_table_and_says_nothing(db: Connection) -> None:
    said: list[str] = []
    migrate(db, known_migrations(), said.append)
    tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert {"events", "chats", "turns", "prompts", "leases", "blobs", "messages", "words"} <= tables
    assert (_version(db), said) == (known_migrations()[-1].version, [])


def test_an_older_shape_is_brought_up_to_date_and_announced(db: Connection, steps: list[Migration]) -> None:
    said: list[str] = []
    migrate(db, steps[:1], said.append)
    migrate(db, steps, said.append)
    assert db.execute("SELECT * FROM one").fetchall() == [(1, 7)]
    assert (_version(db), said) == (2, ["migrating"])


def test_an_older_shape_is_backed_up_first(tmp_path: Path, steps: list[Migration]) -> None:
    path = str(tmp_path / "old.db")
    db = connect(path, isolation_level=None)
    migrate(db, steps[:1], lambda _: None, path)
    assert not (tmp_path / "old.db.schema-1").exists()
    migrate(db, steps, lambda _: None, path)
    db.close()
    kept = connect(f"{path}.schema-1", isolation_level=None)
    assert (_version(kept), kept.execute("SELECT * FROM one").fetchall()) == (1, [(1,)])
    kept.close()
    assert stat.S_IMODE(os.stat(f"{path}.schema-1").st_mode) == 0o600


@pytest.mark.parametrize("version", [step.version for step in known_migrations()])
def test_every_older_shape_is_brought_up_to_date(db: Connection, version: int) -> None:
    migrate(db, [step for step in known_migrations() if step.version <= version], lambda _: None)
    migrate(db, known_migrations(), lambda _: None)
    blank = connect(":memory:", isolation_level=None)
    migrate(blank, known_migrations(), lambda _: None)
    shapes = [sorted(each.execute("SELECT type, name FROM sqlite_master").fetchall()) for each in (db, blank)]
    blank.close()
    assert shapes[0] == shapes[1]


def test_a_migration_that_fails_leaves_the_old_shape(db: Connection, steps: list[Migration]) -> None:
    migrate(db, steps[:1], print)
    steps[1].path.write_text("ALTER TABLE one ADD COLUMN b;\nNONSENSE;\n")
    with pytest.raises(Exception, match="syntax error"):
        migrate(db, steps, lambda _: None)
    assert (_version(db), db.execute("SELECT * FROM one").fetchall()) == (1, [(1,)])


def test_a_newer_shape_is_refused_and_left_alone(db: Connection, steps: list[Migration]) -> None:
    db.execute("PRAGMA user_version = 3")
    with pytest.raises(StorageFailed) as refused:
        migrate(db, steps, print)
    assert (refused.value.reason, refused.value.action, _version(db)) == ("schema_newer", "upgrade_app", 3)


def test_every_migration_has_a_number_of_its_own() -> None:
    versions = [step.version for step in known_migrations()]
    assert versions == sorted(set(versions))


def test_a_loose_folder_of_ours_is_tightened(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o755)
    path = prepare_file(folder)
    modes = [stat.S_IMODE(os.stat(place).st_mode) for place in (folder, path)]
    assert modes == [0o700, 0o600]


@pytest.mark.parametrize("link", ["folder", "file"])
def test_a_link_is_refused_by_name(tmp_path: Path, link: str) -> None:
    real, data = tmp_path / "real", tmp_path / "data"
    real.mkdir()
    if link == "folder":
        data.symlink_to(real)
    else:
        data.mkdir()
        (data / "sidecar.db").symlink_to(real / "other.db")
    with pytest.raises(StorageFailed, match="symbolic link"):
        prepare_file(data)


class InterruptedConnection(Connection):
    """Runs `meanwhile` once, after its first query: what another process does at that moment."""

    meanwhile: Callable[[], None] | None = None

    def execute(self, *args: Any) -> Any:
        found = super().execute(*args)
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile:
            meanwhile()
        return found


def test_of_two_processes_that_create_a_database_one_sets_its_id(tmp_path: Path) -> None:
    path = tmp_path / "sidecar.db"
    mine = connect(path, isolation_level=None, factory=InterruptedConnection)
    other = connect(path, isolation_level=None)
    mine.execute("PRAGMA journal_mode = WAL")
    query = "PRAGMA application_id"
    found: list[int] = []

    def mark_first() -> None:
        mark(other)
        found.append(other.execute(query).fetchone()[0])

    mine.meanwhile = mark_first
    mark(mine)
    assert found[0]
    assert [db.execute(query).fetchone()[0] for db in (mine, other)] == [found[0]] * 2
    mine.close()
    other.close()
