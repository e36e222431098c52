"""Long operations on one chat go in short transactions: other chats go on meanwhile, in this process and in others, and
what a kill interrupts is finished by the next start."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_S
from tests.support.processes import poll_until
from tests.support.reading import last_messages
from tests.support.sidecar import EXIT_WITHIN, Refusal
from tests.support.spawner import Spawner

LONG_S = 120.0
"""For operations on many turns on a machine that does other work."""

TURNS = 3000
CHAT_TABLES = ("events", "messages", "prompts", "turns")
INDEX_TABLES = ("index_chunks", "index_texts", "index_sources")


class Big:
    """A sidecar over a copy of `imported`: a chat of many turns in a project. A long text can be put into its index."""

    def __init__(self, spawn: Spawner, imported: Path) -> None:
        self.spawn = spawn
        self.project = imported / "project"
        shutil.copytree(imported / "data", spawn.data_dir)
        self.sidecar = spawn()

    def index(self) -> str:
        text = "".join(f"line {n} about topic{n % 97}\n" for n in range(30_000))
        added = self.sidecar.call("index/add", chatId="big", content=text, source="long")
        return str(added["sources"][0]["id"])

    def rows(self, tables: tuple[str, ...] = CHAT_TABLES) -> int:
        with closing(sqlite3.connect(self.spawn.data_dir / "sidecar.db", timeout=PATIENCE_S)) as db:
            return sum(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables)


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the data of a sidecar that imported the chat and left, and with the chat's project."""
    spawn = Spawner(tmp_path_factory.mktemp("imported"))
    project = spawn.folder / "project"
    project.mkdir()
    sidecar = spawn()
    path = _history(spawn.folder)
    ask = sidecar.ask("chat/import", chatId="big", path=str(path), projectPath=str(project))
    sidecar.result(ask, LONG_S)
    spawn.settle()
    return spawn.folder


@pytest.fixture
def big(spawn: Spawner, imported: Path) -> Big:
    return Big(spawn, imported)


def _delete(big: Big) -> int:
    return big.sidecar.ask("chat/delete", chatId="big")


def _purge_chat(big: Big) -> int:
    return big.sidecar.ask("data/purge", chatId="big", confirm=True)


def _purge_project(big: Big) -> int:
    return big.sidecar.ask("data/purge", scope="project", projectPath=str(big.project), confirm=True)


def _purge_all(big: Big) -> int:
    return big.sidecar.ask("data/purge", scope="all", confirm=True)


def _purge_by_command(big: Big) -> int:
    word = f"delete-{TURNS}-turns"
    return big.sidecar.ask("prompt/send", chatId="big", promptId="purge", text=f"/purge chat {word}")


def _fork(big: Big) -> int:
    return big.sidecar.ask("chat/fork", chatId="big", newChatId="copy")


Start = Callable[[Big], int]
REMOVALS: list[Start] = [_delete, _purge_chat, _purge_project, _purge_all, _purge_by_command]


def _name(start: Start) -> str:
    return start.__name__


@pytest.mark.sampled(1)
@pytest.mark.parametrize("start", [_delete, _purge_chat, _purge_project, _fork], ids=_name)
def test_other_chats_go_on_in_the_meantime(big: Big, start: Start) -> None:
    """By their order, not by a clock: prompts are answered, one after the other, before the operation is."""
    other = big.spawn()
    for sidecar, chat in ((big.sidecar, "mine"), (other, "theirs")):
        sidecar.run("warm", chatId=chat)
    id = start(big)
    for number in range(2):
        big.sidecar.run(f"mine {number}", chatId="mine")
        other.run(f"theirs {number}", chatId="theirs")
        assert big.sidecar.answers(id) == []
    big.sidecar.result(id, LONG_S)
    history = other.call("chat/history", chatId="theirs")["turns"]
    assert last_messages(history) == ["warm", "theirs 0", "theirs 1"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("start", [_delete, _purge_chat, _purge_project, _purge_all, _fork], ids=_name)
def test_the_write_lock_is_released_between_the_slices(big: Big, start: Start) -> None:
    """A process that is no sidecar takes the lock after each slice that it sees."""
    seen = [big.rows()]
    id = start(big)
    with closing(
        sqlite3.connect(big.spawn.data_dir / "sidecar.db", timeout=PATIENCE_S, isolation_level=None)
    ) as db:
        while not big.sidecar.answers(id):
            poll_until(lambda: big.rows() != seen[-1] or bool(big.sidecar.answers(id)), LONG_S)
            db.execute("BEGIN IMMEDIATE")
            seen.append(big.rows())
            db.execute("ROLLBACK")
    big.sidecar.result(id, LONG_S)
    assert len(set(seen)) > 4


@pytest.mark.sampled(1)
@pytest.mark.parametrize("start", REMOVALS, ids=_name)
def test_a_removal_that_a_kill_interrupts_is_finished_by_the_next_start(big: Big, start: Start) -> None:
    before = big.rows()
    start(big)
    assert poll_until(lambda: big.rows() < before, LONG_S)
    big.sidecar.kill()
    assert 0 < big.rows() < before
    heir = big.spawn()
    assert heir.refused("chat/history", chatId="big").code == -32009
    assert heir.call("chat/list")["items"] == []
    assert poll_until(lambda: big.rows() == 0, LONG_S)


@pytest.mark.slow
def test_a_removal_from_the_index_that_a_kill_interrupts_is_finished(big: Big) -> None:
    source = big.index()
    before = big.rows(INDEX_TABLES)
    big.sidecar.ask("index/remove", chatId="big", id=source)
    assert poll_until(lambda: big.rows(INDEX_TABLES) < before, LONG_S)
    big.sidecar.kill()
    heir = big.spawn()
    assert heir.refused("index/get", chatId="big", id=source).code == -32002
    assert heir.call("index/search", chatId="big", queries=["topic13"])["results"][0]["hits"] == []
    assert poll_until(lambda: big.rows(INDEX_TABLES) == 0, LONG_S)


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.parametrize("looks", ["chat/list", "chat/open", "chat/history"])
def test_a_fork_whose_process_was_killed_is_none(big: Big, looks: str) -> None:
    before = big.rows()
    _fork(big)
    assert poll_until(lambda: big.rows() > before + 200, LONG_S)
    big.sidecar.kill()
    heir = big.spawn()
    if looks == "chat/list":
        assert [item["chatId"] for item in heir.call("chat/list")["items"]] == ["big"]
    elif looks == "chat/open":
        assert heir.call("chat/open", chatId="copy")["turns"] == []
    else:
        assert heir.refused("chat/history", chatId="copy").code == -32002
    assert poll_until(lambda: big.rows() == before, LONG_S)
    assert heir.result(heir.ask("chat/fork", chatId="big", newChatId="again"), LONG_S)["status"] == "created"


@pytest.mark.slow
def test_a_cancelled_fork_leaves_no_chat_and_can_be_repeated(big: Big) -> None:
    before = big.rows()
    id = _fork(big)
    assert poll_until(lambda: big.rows() > before + 200, LONG_S)
    big.sidecar.notify("$/cancelRequest", id=id)
    with pytest.raises(Refusal) as cancelled:
        big.sidecar.result(id, LONG_S)
    assert (cancelled.value.code, big.rows()) == (-32800, before)
    assert big.sidecar.refused("chat/history", chatId="copy").code == -32002
    assert big.sidecar.result(_fork(big), LONG_S)["status"] == "created"
    history = big.sidecar.call("chat/history", chatId="copy", limit=1)
    assert last_messages(history["turns"]) == [f"answer {TURNS - 1}"]


def test_a_fork_in_slices_equals_its_source(big: Big) -> None:
    big.sidecar.result(_fork(big), LONG_S)
    exported = []
    for chat in ("big", "copy"):
        path = big.spawn.folder / f"{chat}.jsonl"
        big.sidecar.call("chat/export", chatId=chat, path=str(path))
        exported.append([line for line in path.read_text().splitlines() if line.startswith('{"turn"')])
    assert (len(exported[0]), exported[0]) == (TURNS, exported[1])


@pytest.mark.slow
def test_a_deletion_goes_on_when_its_request_is_cancelled(big: Big) -> None:
    before = big.rows()
    id = _delete(big)
    assert poll_until(lambda: big.rows() < before, LONG_S)
    big.sidecar.notify("$/cancelRequest", id=id)
    assert big.sidecar.result(id, LONG_S)["deleted"] is True
    assert big.rows() == 0


@pytest.mark.slow
def test_a_chat_that_is_opened_while_it_is_deleted_elsewhere_starts_empty(big: Big) -> None:
    other = big.spawn()
    before = big.rows()
    id = _delete(big)
    assert poll_until(lambda: big.rows() < before, LONG_S)
    opened = other.result(other.ask("chat/open", chatId="big"), LONG_S)
    assert (opened["status"], opened["turns"]) == ("created", [])
    assert other.run("new", chatId="big")["data"]["reason"] == "end_turn"
    big.sidecar.result(id, LONG_S)
    assert last_messages(other.call("chat/history", chatId="big")["turns"]) == ["new"]


def test_the_process_exits_in_time_during_a_deletion(big: Big) -> None:
    before = big.rows()
    _delete(big)
    assert poll_until(lambda: big.rows() < before, LONG_S)
    big.sidecar.close_stdin()
    assert big.sidecar.wait(EXIT_WITHIN + 1) == 0
    heir = big.spawn()
    assert heir.refused("chat/history", chatId="big").code == -32009
    assert poll_until(lambda: big.rows() == 0, LONG_S)


def _history(folder: Path) -> Path:
    path = folder / "history.jsonl"
    with path.open("w") as file:
        for number in range(TURNS):
            for role, text in (
                ("user", f"question {number} about jacquard"),
                ("assistant", f"answer {number}"),
            ):
                file.write(json.dumps({"role": role, "text": text}) + "\n")
    return path
