"""The whole database: backed up and looked through while it is in use, brought back, repaired."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.spawner import Spawner

from .shell import Shell

pytestmark = pytest.mark.slow


@pytest.fixture
def told(shell: Shell) -> Shell:
    """A shell with one chat in its database."""
    shell.output("chat", "--chat", "tab-7", "Hello there")
    return shell


def database(shell: Shell) -> Path:
    return shell.folder / "data" / "sidecar.db"


def test_a_backup_brings_back_what_was_there_and_keeps_what_came_after(told: Shell) -> None:
    done = told.run("backup", "kept.db")
    assert (done.returncode, "bytes in" in done.stderr) == (0, True)
    told.output("chat", "--chat", "later", "Not in the backup")
    restored = told.run("restore", "kept.db")
    assert (restored.returncode, "kept in" in restored.stderr) == (0, True)
    assert [line.split()[0] for line in told.output("chats").splitlines()[1:]] == ["tab-7"]
    (aside,) = (told.folder / "data").glob("sidecar.db.replaced-*T*Z-????")
    assert "2 chats" in told.output("verify", str(aside))
    assert (told.folder / "kept.db").stat().st_mode & 0o077 == 0


def test_a_backup_is_made_while_a_turn_runs_and_is_whole(spawn: Spawner, tmp_path: Path) -> None:
    shell = Shell(spawn.folder)
    sidecar = spawn()
    sidecar.run("precious " * 200, chatId="c")
    sent = sidecar.say("words " * 5000, chatId="c")
    assert shell.run("backup", str(tmp_path / "live.db")).returncode == 0
    assert shell.run("verify").returncode == 0
    sidecar.wait_turn(sent["sessionId"], sent["turnId"])
    assert "sound: 1 chat," in shell.output("verify", str(tmp_path / "live.db"))


def test_a_file_that_is_there_is_not_overwritten(told: Shell) -> None:
    (told.folder / "mine.db").write_text("mine")
    refused = told.run("backup", "mine.db")
    assert (refused.returncode, "name another file" in refused.stderr) == (1, True)
    assert (told.folder / "mine.db").read_text() == "mine"


def test_nothing_is_restored_over_a_database_in_use(spawn: Spawner, tmp_path: Path) -> None:
    shell = Shell(spawn.folder)
    sidecar = spawn()
    sidecar.run("precious", chatId="c")
    assert shell.run("backup", str(tmp_path / "kept.db")).returncode == 0
    refused = shell.run("restore", str(tmp_path / "kept.db"))
    assert (refused.returncode, "in use" in refused.stderr) == (1, True)
    assert sidecar.run("still there", chatId="c")["data"]["reason"] == "end_turn"


@pytest.mark.parametrize(
    ("bytes", "words"), [(b"no database at all" * 300, "not a database"), (b"", "not a backup")]
)
def test_what_is_no_backup_is_refused(told: Shell, bytes: bytes, words: str) -> None:
    (told.folder / "odd.db").write_bytes(bytes)
    before = database(told).read_bytes()
    refused = told.run("restore", "odd.db")
    assert (refused.returncode, words in refused.stderr) == (1, True)
    assert database(told).read_bytes() == before
    missing = told.run("restore", "missing.db")
    assert (missing.returncode, "There is no file" in missing.stderr) == (1, True)


def test_damage_is_found_by_verify_and_repaired_by_the_doctor(told: Shell) -> None:
    data = database(told).read_bytes()
    database(told).write_bytes(data.replace(b'"text":"Hello there"', b'"text":"Hullo there"'))
    found = told.run("verify")
    assert (found.returncode, "does not match its checksum" in found.stdout) == (1, True)
    assert "doctor --repair" in found.stderr
    repaired = told.run("doctor", "--repair")
    assert "the damaged database is kept in" in repaired.stdout
    assert told.run("verify").returncode == 0
    assert "tab-7" in told.output("chats")


def test_a_bar_is_drawn_on_a_terminal_only(told: Shell) -> None:
    assert "━" not in told.run("verify").stderr
    with told.terminal("verify") as terminal:
        terminal.wait_for("sound: 1 chat,")
        assert "━" in terminal.seen
