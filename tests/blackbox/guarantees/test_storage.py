"""The database as a file: private, refused when it is not as it should be, never replaced by an empty one."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.sidecar import Refusal
from tests.support.spawner import Spawner


@pytest.fixture
def database(spawn: Spawner) -> Path:
    """A database with one chat, `c`, that no sidecar holds any more."""
    sidecar = spawn()
    sidecar.run("precious", chatId="c")
    sidecar.close_stdin()
    sidecar.wait()
    (path,) = [
        p for p in spawn.data_dir.rglob("*") if p.is_file() and p.read_bytes()[:15] == b"SQLite format 3"
    ]
    return path


def refusal(spawn: Spawner) -> Refusal:
    """How a sidecar refuses to open the chat; reading and listing must be refused as well, not be empty."""
    sidecar = spawn()
    for method in ("chat/list", "chat/history", "prompt/send"):
        params = {"promptId": "p", "text": "x"} if method == "prompt/send" else {}
        key = {} if method == "chat/list" else {"chatId": "c"}
        assert sidecar.refused(method, **key, **params).code == -32015
    return sidecar.refused("chat/open", chatId="c")


def test_memory_leaves_no_file_behind(spawn: Spawner) -> None:
    sidecar = spawn("--data-dir", ":memory:", data_dir=":memory:")
    assert sidecar.run("hello", chatId="c")["data"]["reason"] == "end_turn"
    assert sidecar.call("chat/list")["items"][0]["turns"] == 1
    sidecar.close_stdin()
    sidecar.wait()
    files = [p for p in spawn.folder.rglob("*") if p.is_file() and p.read_bytes()[:6] == b"SQLite"]
    assert files == []
    assert spawn(data_dir=":memory:").call("chat/open", chatId="c")["status"] == "created"


def test_the_flag_wins_over_the_environment(spawn: Spawner) -> None:
    other = spawn.folder / "deep" / "er"
    spawn("--data-dir", str(other)).call("chat/open", chatId="c")
    assert list(other.iterdir())
    assert not spawn.data_dir.exists()


def test_files_are_for_their_owner_alone(spawn: Spawner) -> None:
    previous = os.umask(0)
    try:
        sidecar = spawn()
    finally:
        os.umask(previous)
    sidecar.run("hello", chatId="c")
    assert stat.S_IMODE(spawn.data_dir.stat().st_mode) == 0o700
    modes = {p.name: stat.S_IMODE(p.lstat().st_mode) for p in spawn.data_dir.rglob("*") if p.is_file()}
    assert set(modes.values()) == {0o600}, modes


def test_a_looser_folder_of_our_own_is_tightened(spawn: Spawner) -> None:
    spawn.data_dir.mkdir(mode=0o755)
    spawn().call("chat/open", chatId="c")
    assert stat.S_IMODE(spawn.data_dir.stat().st_mode) == 0o700


def test_a_database_that_is_a_symlink_is_refused(database: Path, spawn: Spawner) -> None:
    elsewhere = spawn.folder / "elsewhere.db"
    database.rename(elsewhere)
    database.symlink_to(elsewhere)
    before = elsewhere.read_bytes()
    refusal(spawn)
    assert elsewhere.read_bytes() == before


def test_a_folder_that_is_a_symlink_is_refused(database: Path, spawn: Spawner) -> None:
    elsewhere = spawn.folder / "elsewhere"
    spawn.data_dir.rename(elsewhere)
    spawn.data_dir.symlink_to(elsewhere)
    refusal(spawn)


def test_a_symlinked_parent_is_no_obstacle(spawn: Spawner) -> None:
    (spawn.folder / "real").mkdir()
    (spawn.folder / "link").symlink_to(spawn.folder / "real")
    sidecar = spawn(data_dir=spawn.folder / "link" / "data")
    assert sidecar.call("chat/open", chatId="c")["status"] == "created"


@pytest.mark.sampled(1)
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
@pytest.mark.parametrize("what", ["folder", "file"])
def test_a_foreign_owner_is_refused(database: Path, spawn: Spawner, what: str) -> None:
    os.chown(spawn.data_dir if what == "folder" else database, 12345, 12345)
    refusal(spawn)


def test_a_newer_schema_is_refused_and_left_alone(database: Path, spawn: Spawner) -> None:
    with sqlite3.connect(database) as connection:
        connection.execute("PRAGMA user_version = 99999")
    connection.close()
    before = database.read_bytes()
    refused = refusal(spawn)
    assert (refused.data["reason"], refused.data["action"]) == ("schema_newer", "upgrade_app")
    assert [s["data"]["state"] for s in spawn.sidecars[-1].statuses("storage")][-1] == "newer"
    assert database.read_bytes() == before


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def scribble(path: Path) -> None:
    path.write_bytes(b"This is no database. " * 500)


def directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("damage", [cut, scribble, directory])
def test_a_broken_database_is_told_and_never_replaced(
    database: Path, spawn: Spawner, damage: Callable[[Path], None]
) -> None:
    damage(database)
    sidecar = spawn()
    answer = sidecar.answer(sidecar.ask("chat/open", chatId="c"))
    if "result" in answer:
        assert answer["result"]["status"] in ("resumed", "recovered")
        return
    assert answer["error"]["code"] == -32015
    assert answer["error"]["data"]["reason"] in ("corrupt", "io")


def test_the_journal_is_whole_by_sqlites_own_word(database: Path) -> None:
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()
