"""What is reported of files that were removed, replaced or overwritten while a database has them open."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from sidecar.store.engine.file_watch import DatabaseFiles, Loss
from sidecar.store.engine.opening import mark
from sidecar.store.engine.sqlite import Connection, connect
from sidecar.store.repair.rescue import rescue
from sidecar.store.tables.migrations import known_migrations, migrate


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    return folder / "sidecar.db"


@pytest.fixture
def opened(path: Path) -> Iterator[tuple[DatabaseFiles, Connection]]:
    path.touch()
    files = DatabaseFiles(str(path))
    db = connect(str(path), isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    migrate(db, known_migrations(), lambda _: None)
    mark(db)
    db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
    assert files.loss() is None
    yield files, db
    db.close()
    files.close()


def renamed_over(path: Path) -> None:
    shutil.copy(path, f"{path}.new")
    os.replace(f"{path}.new", path)


def foreign(path: Path) -> None:
    """Another application id, as another database has it."""
    with path.open("r+b") as file:
        file.seek(68)
        file.write(b"\x12\x34\x56\x78")


def replace_log(path: Path) -> None:
    shutil.copy(path, f"{path}.x")
    os.replace(f"{path}.x", f"{path}-wal")


CASES: list[tuple[Callable[[Path], object], str, str]] = [
    (os.unlink, "removed", ""),
    (lambda path: path.parent.rename(path.parent.with_name("moved")), "removed", ""),
    (renamed_over, "replaced", ""),
    (lambda path: os.unlink(f"{path}-wal"), "removed", "-wal"),
    (lambda path: os.unlink(f"{path}-shm"), "removed", "-shm"),
    (replace_log, "replaced", "-wal"),
    (lambda path: os.truncate(path, 0), "overwritten", ""),
    (lambda path: path.write_bytes(b"no database" * 400), "overwritten", ""),
    (foreign, "overwritten", ""),
]
NAMES = ["unlinked", "folder", "renamed_over", "log", "index", "new log", "emptied", "scribbled", "foreign"]


@pytest.mark.parametrize(("lose", "kind", "suffix"), CASES, ids=NAMES)
def test_a_loss_is_told_by_kind_and_file(
    path: Path,
    opened: tuple[DatabaseFiles, Connection],
    lose: Callable[[Path], object],
    kind: str,
    suffix: str,
) -> None:
    lose(path)
    found = opened[0].loss()
    assert found
    assert (found.kind, found.file) == (kind, f"{path}{suffix}")


def test_commits_and_checkpoints_are_no_loss(path: Path, opened: tuple[DatabaseFiles, Connection]) -> None:
    files, db = opened
    for number in range(50):
        db.execute("INSERT INTO calibrations VALUES (?, 1.0)", (f"m{number}",))
        if number % 10 == 0:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        assert files.loss() is None


def test_a_copy_is_put_back_only_where_nothing_is(
    path: Path, opened: tuple[DatabaseFiles, Connection]
) -> None:
    files, db = opened
    db.execute("INSERT INTO calibrations VALUES ('kept', 1.0)")
    path.unlink()
    assert rescue(str(path), Loss("removed", str(path)), files, db).is_back
    with closing(connect(str(path))) as copy:
        assert copy.execute("SELECT count(*) FROM calibrations").fetchone() == (1,)
    path.write_text("somebody's own")
    done = rescue(str(path), Loss("replaced", str(path)), files, db)
    assert (done.is_back, path.read_text()) == (False, "somebody's own")
    assert Path(done.file).name.startswith("sidecar.db.rescued-")


def test_the_copy_of_another_process_is_known_and_an_older_one_is_not(
    path: Path, opened: tuple[DatabaseFiles, Connection]
) -> None:
    files, db = opened
    loss = Loss("removed", str(path))
    path.unlink()
    assert rescue(str(path), loss, files, db).by_other is False
    assert rescue(str(path), Loss("replaced", str(path)), files, db).by_other is True
    db.execute(
        "INSERT INTO chats (session_id, namespace, kind, key, epoch, created_at, last_activity)"
        " VALUES ('s', 'n', 'chat', 'k', 'e', 0, 0)"
    )
    assert rescue(str(path), Loss("replaced", str(path)), files, db).is_back is False
