"""What is reported of files that were removed, replaced or overwritten while a database has them open."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from sidecar.store.engine.file_watch import DatabaseFiles, Loss
from sidecar.store.engine.opening import mark
from sidecar.store.engine.sqlite import Connection, connect
from sidecar.store.repair.recovery import recover
from sidecar.store.repair.rescue import rescue
from sidecar.store.tables.chats import session_id
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


def scribble_log(path: Path) -> None:
    with open(f"{path}-wal", "r+b") as file:
        file.write(b"no log" * 10)


def restart_log(path: Path) -> None:
    """The log of a later time, whose frames are not those that the index names."""
    with open(f"{path}-wal", "r+b") as file:
        file.seek(16)
        file.write(bytes(8))


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
    (lambda path: os.truncate(f"{path}-wal", 0), "overwritten", "-wal"),
    (lambda path: os.truncate(f"{path}-wal", 20), "overwritten", "-wal"),
    (lambda path: os.truncate(f"{path}-wal", os.path.getsize(f"{path}-wal") - 1), "overwritten", "-wal"),
    (scribble_log, "overwritten", "-wal"),
    (restart_log, "overwritten", "-wal"),
]
NAMES = ["unlinked", "folder", "renamed_over", "log", "index", "new log", "emptied", "scribbled", "foreign"]
NAMES += ["emptied log", "cut log", "log cut by a byte", "scribbled log", "another log"]


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


WRITES = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
db.execute("PRAGMA journal_size_limit = 65536")
for number in range(600):
    db.execute("INSERT INTO pages_of_test VALUES (randomblob(?))", (number * 7 % 9000,))
    if number % 13 == 0:
        db.execute("PRAGMA wal_checkpoint(%s)" % ("PASSIVE", "RESTART", "TRUNCATE")[number % 3]).fetchall()
"""


def test_no_moment_of_commits_and_checkpoints_by_another_process_is_a_loss(
    path: Path, opened: tuple[DatabaseFiles, Connection]
) -> None:
    files, db = opened
    db.execute("CREATE TABLE pages_of_test (data)")
    writer = subprocess.Popen([sys.executable, "-c", WRITES, str(path)])
    looks = 0
    while writer.poll() is None:
        assert files.loss() is None
        looks += 1
    assert (writer.returncode, looks > 100) == (0, True)
    assert files.loss() is None


def test_a_database_whose_log_was_overwritten_is_saved_under_new_epochs(
    path: Path, opened: tuple[DatabaseFiles, Connection]
) -> None:
    files, db = opened
    db.execute(
        "INSERT INTO chats (session_id, namespace, kind, key, epoch, created_at, last_activity)"
        " VALUES (?, 'default', 'chat', 'k', 'old', 0, 0)",
        (session_id("default", "chat", "k"),),
    )
    inode = files.inode
    db.close()
    assert recover(str(path)) is None, "what is left is an older state in which nothing is wrong"
    saved = recover(str(path), without_log=inode)
    assert saved
    assert (saved.chats, Path(saved.damaged).exists()) == (1, True)
    with closing(connect(str(path))) as copy:
        assert copy.execute("SELECT epoch FROM chats").fetchone() != ("old",)
    assert recover(str(path), without_log=inode) is None, "another process has repaired it"


def test_a_copy_that_another_process_made_is_used_when_nothing_can_be_read_here(
    path: Path, opened: tuple[DatabaseFiles, Connection]
) -> None:
    files, db = opened
    path.unlink()
    assert rescue(str(path), Loss("removed", str(path)), files, db).is_back
    db.close()  # as if its log were gone: every statement fails
    assert rescue(str(path), Loss("replaced", str(path)), files, db).by_other


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
