"""Several sidecars that start on one damaged database: one repairs it, the others wait and read. No chat is taken for
a new one, whatever page its key stood on."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import sqlite3
from pathlib import Path

import pytest

from sidecar import store
from sidecar.store.engine.sqlite import connect
from tests.blackbox.faults.test_damage import (
    CHATS,
    TURNS,
    checkpointed,
    damaged_files,
    overwrite,
    root,
)
from tests.blackbox.faults.test_damage import database as database
from tests.blackbox.faults.tracing import unable
from tests.blackbox.faults.wholeness import sound
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner
from tests.support.wire import Json

pytestmark = pytest.mark.slow

MIGRATIONS = Path(store.__file__).parent / "migrations"

PAGE = 4096
REPAIRED_S = 45.0
"""Eight processes on a busy machine, one after the other through the same file."""


def garbage(path: Path, first: int, last: int) -> None:
    for page in range(first, min(last, path.stat().st_size // PAGE) + 1):
        overwrite(path, (page - 1) * PAGE, random.Random(page).randbytes(PAGE))


def undo_migrations(connection: sqlite3.Connection, after: int) -> None:
    """Drop what later migrations created: the database is one of the version `after` again."""
    later = sorted(path for path in MIGRATIONS.glob("0*.sql") if int(path.name[:4]) > after)
    text = "\n".join(path.read_text("utf-8") for path in later)
    for kind, pattern in (
        ("TRIGGER", r"CREATE TRIGGER (\w+)"),
        ("TABLE", r"CREATE (?:VIRTUAL )?TABLE (\w+)"),
    ):
        for name in re.findall(pattern, text):
            connection.execute(f"DROP {kind} IF EXISTS {name}")
    for table, column in re.findall(r"ALTER TABLE (\w+) ADD COLUMN (\w+)", text):
        connection.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
    connection.execute(f"PRAGMA user_version = {after}")


def start_together(spawn: Spawner, count: int) -> list[Sidecar]:
    sidecars = [spawn(initialize=False) for _ in range(count)]
    for sidecar in sidecars:
        sidecar.initialize()
    return sidecars


def open_everywhere(sidecars: list[Sidecar], chat: str = "c0") -> list[Json]:
    """What each of them shows of a chat that must be there."""
    ids = [sidecar.ask("chat/open", chatId=chat, ifMissing="fail") for sidecar in sidecars]
    answers = [sidecar.answer(id, REPAIRED_S) for sidecar, id in zip(sidecars, ids, strict=True)]
    assert [answer["error"] for answer in answers if "error" in answer] == []
    return [answer["result"] for answer in answers]


@pytest.mark.parametrize(
    ("first", "last", "count"),
    [(3, 5, 4), (20, 29, 4), (1, 1, 5), (2, 9, 6), (10, 19, 5), (30, 45, 8), (46, 70, 4), (7, 7, 7)],
)
def test_one_repairs_and_the_others_wait_and_read(
    spawn: Spawner, database: Path, first: int, last: int, count: int
) -> None:
    checkpointed(database)
    garbage(database, first, last)
    sidecars = start_together(spawn, count)
    for chat in range(CHATS):
        shown = open_everywhere(sidecars, f"c{chat}")
        assert {opened["status"] for opened in shown} <= {"recovered", "resumed"}
        assert len({(opened["sessionId"], opened["epoch"], len(opened["turns"])) for opened in shown}) == 1
    assert len(damaged_files(database)) <= 1
    for number, sidecar in enumerate(sidecars):
        assert sidecar.run("go on", chatId=f"new {number}")["data"]["reason"] == "end_turn"
    for sidecar in sidecars:
        sidecar.close_stdin()
        sidecar.wait()
    assert sound(database) or not damaged_files(
        database
    )  # what lies on a page that nobody reads is not found out
    assert not Path(f"{database}-repair").exists()


def test_damage_that_comes_while_four_use_the_database_is_repaired_by_one(
    spawn: Spawner, database: Path
) -> None:
    checkpointed(database)
    sidecars = start_together(spawn, 4)
    open_everywhere(sidecars)
    place = (root(database, "turns") - 1) * PAGE
    with database.open("r+b") as file:  # by another process: closing the file here drops no lock of theirs
        file.seek(place)
        file.write(b"\xff" * PAGE)
    for sidecar in sidecars:
        for chat in range(CHATS):
            shown = sidecar.result(sidecar.ask("chat/history", chatId=f"c{chat}"), REPAIRED_S)
            assert len(shown["turns"]) == TURNS
    assert {len(opened["turns"]) for opened in open_everywhere(sidecars)} == {TURNS}


def test_one_that_has_not_met_the_damage_closes_the_database_for_the_repair(
    spawn: Spawner, database: Path
) -> None:
    checkpointed(database)
    first, *idle = start_together(spawn, 4)
    open_everywhere(idle, "c1")
    overwrite(database, (root(database, "turns") - 1) * PAGE, b"\xff" * PAGE)
    (opened,) = open_everywhere([first])
    assert (opened["status"], len(opened["turns"])) == ("recovered", TURNS)
    assert len(damaged_files(database)) == 1
    for sidecar in idle:
        sidecar.wait_until(lambda: len(sidecar.statuses("storage")) > 1, REPAIRED_S, "ready")  # noqa: B023
        assert sidecar.call("chat/open", chatId="c1", ifMissing="fail")["status"] == "recovered"


@pytest.mark.skipif(bool(unable()), reason=unable() or "-")
@pytest.mark.parametrize("renames", [1, 2, 3])
def test_a_repair_that_is_killed_at_a_rename_is_done_by_those_who_wait(
    spawn: Spawner, database: Path, renames: int
) -> None:
    checkpointed(database)
    garbage(database, 1, 1)
    kill = ["strace", "-f", "-o", "/dev/null", "-e", f"inject=rename:signal=KILL:when={renames}"]
    spawn.command, command = [*kill, *spawn.command], spawn.command
    first = spawn(initialize=False)
    first.killed = True
    spawn.command = command
    others = start_together(spawn, 4)
    shown = open_everywhere(others)
    assert {len(opened["turns"]) for opened in shown} == {TURNS}
    if not first.is_gone:
        os.kill(first.pid, signal.SIGKILL)


WRITTEN = {
    "prompt": ["chats_by_revision", "turns_by_parent", "prompts_waiting", "leases_by_instance", "words_data"],
    "index/add": ["index_owners_by_name", "index_sources_by_use", "index_texts"],
    "chat/rename": ["chats_by_activity", "chats_by_revision"],
    "chat/fork": ["turns_by_id", "grams_idx"],
    "chat/delete": ["messages_of_turn", "leases_by_instance"],
}
"""What a request writes, and its page is read by nothing before."""


def write_something(sidecar: Sidecar, method: str) -> object:
    match method:
        case "prompt":
            return sidecar.run("go on", chatId="new")["data"]["reason"] == "end_turn"
        case "index/add":
            return sidecar.call(method, chatId="c0", content="words of a text", source="text")["sources"]
        case "chat/rename":
            return sidecar.call(method, chatId="c1", title="Renamed")
        case "chat/fork":
            return sidecar.call(method, chatId="c1", newChatId="forked")["status"] == "created"
        case _:
            return sidecar.call(method, chatId="c2")["deleted"]


@pytest.mark.parametrize(
    ("method", "damaged"), [(method, page) for method, pages in WRITTEN.items() for page in pages]
)
def test_a_write_that_meets_the_damage_waits_for_the_repair(
    spawn: Spawner, database: Path, method: str, damaged: str
) -> None:
    checkpointed(database)
    garbage(database, root(database, damaged), root(database, damaged))
    assert write_something(spawn(), method)


@pytest.mark.parametrize("damaged", ["prompts_waiting", "chats_by_revision", "leases_by_instance"])
def test_prompts_of_four_that_meet_the_damage_together_are_all_taken(
    spawn: Spawner, database: Path, damaged: str
) -> None:
    checkpointed(database)
    garbage(database, root(database, damaged), root(database, damaged))
    sidecars = start_together(spawn, 4)
    asked = [
        sidecar.ask("prompt/send", chatId=f"new {at}", promptId=f"p{at}", text="go on")
        for at, sidecar in enumerate(sidecars)
    ]
    taken = [sidecar.result(id, REPAIRED_S) for sidecar, id in zip(sidecars, asked, strict=True)]
    assert {sent["disposition"] for sent in taken} <= {"started", "duplicate"}
    for at, sidecar in enumerate(sidecars):
        # A turn that ran in another process during the repair was interrupted; it is there nevertheless.
        opened = sidecar.result(sidecar.ask("chat/open", chatId=f"new {at}", ifMissing="fail"), REPAIRED_S)
        assert len(opened["turns"]) == 1
        assert sidecar.run("and on", chatId=f"new {at}")["data"]["reason"] == "end_turn"
    assert len(damaged_files(database)) == 1


def keys(path: Path) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute("SELECT * FROM chat_keys ORDER BY chat").fetchall()
    finally:
        connection.close()


TABLES = {
    "keys": ["chats", "sqlite_autoindex_chats_1"],
    "keys and their list": ["chats", "sqlite_autoindex_chats_1", "chats_by_activity", "chats_by_revision"],
    "second keys": ["chat_keys"],
    "keys and events": ["chats", "sqlite_autoindex_chats_1", "events"],
    "keys and the first page": ["chats", "sqlite_autoindex_chats_1", "the first"],
    "the first page": ["the first"],
    "keys and turns": ["chats", "sqlite_autoindex_chats_1", "turns", "messages"],
}


@pytest.mark.parametrize("destroyed", TABLES)
def test_a_chat_whose_key_was_on_a_destroyed_page_is_found_by_its_id(
    spawn: Spawner, database: Path, destroyed: str
) -> None:
    checkpointed(database)
    before = keys(database)
    for page in {root(database, table) for table in TABLES[destroyed]}:
        garbage(database, page, page)
    sidecar = spawn()
    for chat in range(CHATS):
        (opened,) = open_everywhere([sidecar], f"c{chat}")
        assert (opened["key"]["value"], len(opened["turns"])) == (f"c{chat}", TURNS)
        assert opened["status"] == "recovered" or destroyed == "second keys"  # which nothing has read yet
        assert sidecar.call("chat/open", chatId=f"c{chat}")["status"] != "created"
    assert len(sidecar.call("chat/list")["items"]) == CHATS
    sidecar.result(sidecar.ask("chat/open", chatId="new"), REPAIRED_S)
    sidecar.close_stdin()
    sidecar.wait()
    assert keys(database)[:-1] == before


def test_a_chat_without_a_turn_and_one_of_a_project_are_found_again(spawn: Spawner) -> None:
    first = spawn()
    project = spawn.folder / "project"
    project.mkdir()
    first.run("Hello", chatId="spoken", namespace="other")
    first.run("Hello", projectPath=str(project))
    first.run("Hello", chatId="gone")
    first.call("chat/open", chatId="silent")
    first.call("chat/delete", chatId="gone")
    first.close_stdin()
    first.wait()
    path = spawn.data_dir / "sidecar.db"
    for page in {root(path, table) for table in TABLES["keys and their list"]}:
        garbage(path, page, page)
    second = spawn()
    for key, turns in (
        ({"chatId": "spoken", "namespace": "other"}, 1),
        ({"projectPath": str(project)}, 1),
        ({"chatId": "silent"}, 0),
    ):
        opened = second.call("chat/open", **key, ifMissing="fail")
        assert (opened["status"], len(opened["turns"])) == ("recovered", turns), key
    assert second.refused("chat/open", chatId="gone", ifMissing="fail").code in (-32002, -32009)


def test_a_database_of_before_the_second_keys_gets_them_and_keeps_its_chats(
    spawn: Spawner, database: Path
) -> None:
    checkpointed(database)
    before = keys(database)
    connection = connect(str(database))
    undo_migrations(connection, after=14)
    connection.execute("DELETE FROM counters WHERE name = 'message_parts'")
    connection.commit()
    connection.close()
    shutil.copy(database, spawn.folder / "older.db")
    sidecar = spawn()
    assert sidecar.call("chat/open", chatId="c0", ifMissing="fail")["status"] == "resumed"
    sidecar.close_stdin()
    sidecar.wait()
    assert keys(database) == before
