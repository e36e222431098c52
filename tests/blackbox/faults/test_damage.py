"""Files that the disk has altered: garbage and truncation at many places of every file. What can be saved is there,
what was lost is reported, and the damaged file is kept."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sidecar.store.repair.recovery import recover
from tests.blackbox.faults.wholeness import sound
from tests.support.patience import PATIENCE_S
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner
from tests.support.wire import Json

PLACES = int(os.environ.get("SIDECAR_DAMAGE_PLACES", "12"))
"""How many places are damaged, over all files; `make faults` takes 500."""

SEED = int(os.environ.get("SIDECAR_DAMAGE_SEED", "11"))
CHATS, TURNS = 3, 6
FILES = ("sidecar.db", "sidecar.db-wal", "sidecar.db-shm")


@pytest.fixture
def database(spawn: Spawner) -> Path:
    """A database with some chats that was left by a kill, so that its log and its index lie beside it."""
    sidecar = spawn()
    for chat in range(CHATS):
        for turn in range(TURNS):
            sidecar.run(f"chat {chat} turn {turn} " + "lorem ipsum " * 60, chatId=f"c{chat}")
    sidecar.kill()
    return spawn.data_dir / "sidecar.db"


def checkpointed(path: Path) -> None:
    """Everything in the database's own file, as after a clean end."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def damaged_files(path: Path) -> list[Path]:
    return sorted(path.parent.glob("sidecar.db.damaged-*"))


def texts(opened: Json) -> list[str]:
    return [turn["items"][0]["content"][0]["text"] for turn in opened["turns"] if turn["items"]]


def overwrite(path: Path, place: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(place)
        file.write(data)


def row_place(path: Path, words: bytes, nth: int = 0) -> int:
    """Where a text lies in the file."""
    data, place = path.read_bytes(), -1
    for _ in range(nth + 1):
        place = data.index(words, place + 1)
    return place


def test_one_altered_letter_is_found_and_only_its_event_is_lost(spawn: Spawner, database: Path) -> None:
    checkpointed(database)
    overwrite(database, row_place(database, b'"chat 1 turn 2 lorem'), b'"CHAT')
    before = database.read_bytes()
    sidecar = spawn()
    answer = sidecar.answer(sidecar.ask("chat/open", chatId="c1"))
    if "error" in answer:
        assert (answer["error"]["code"], answer["error"]["data"]["reason"]) == (-32015, "corrupt")
    sidecar.wait_until(lambda: bool(recovered(sidecar)), PATIENCE_S, "recovery")
    states = [status["data"]["state"] for status in sidecar.statuses("storage")]
    assert states[-2:] == ["quarantined", "ready"]
    opened = sidecar.call("chat/open", chatId="c1")
    salvage = opened["recovered"]["salvage"]
    assert (opened["status"], salvage["lost"]) == ("recovered", 1)
    assert len(opened["turns"]) == TURNS
    (kept,) = damaged_files(database)
    assert (str(kept), kept.read_bytes()) == (salvage["damaged"], before)
    other = sidecar.call("chat/open", chatId="c0")
    assert (other["status"], other["recovered"]["salvage"]["lost"]) == ("recovered", 0)
    assert len(texts(other)) == TURNS
    assert sidecar.run("go on", chatId="c1")["data"]["reason"] == "end_turn"
    assert sidecar.call("chat/search", query="lorem", limit=50)["items"]
    assert sound(database)


def recovered(sidecar: Sidecar) -> list[Json]:
    return [s["data"]["recovered"] for s in sidecar.statuses("storage") if "recovered" in s["data"]]


def root(path: Path, table: str) -> int:
    """The page that a table begins with; without a table, the first."""
    connection = sqlite3.connect(path)
    query = "SELECT rootpage FROM sqlite_master WHERE name = ?"
    found = connection.execute(query, (table,)).fetchone()
    connection.close()
    return int(found[0]) if found else 1


@pytest.mark.sampled(1)
@pytest.mark.parametrize("page", ["the first", "events", "chats", "turns"])
def test_a_page_of_garbage_costs_what_was_on_it_and_no_chat(
    spawn: Spawner, database: Path, page: str
) -> None:
    checkpointed(database)
    overwrite(database, (root(database, page) - 1) * 4096, random.Random(SEED).randbytes(4096))
    sidecar = spawn()
    names = [{"sessionId": chat["sessionId"]} for chat in sidecar.call("chat/list")["items"]]
    assert len(names) == CHATS
    for chat in names:
        opened = sidecar.call("chat/open", **chat, ifMissing="fail")
        assert (opened["status"], len(opened["turns"])) == ("recovered", TURNS), (page, chat)
    assert len(damaged_files(database)) == 1
    assert sidecar.run("go on", **names[0])["data"]["reason"] == "end_turn"


def test_half_a_database_keeps_what_was_in_that_half(spawn: Spawner, database: Path) -> None:
    checkpointed(database)
    os.truncate(database, database.stat().st_size // 2)
    sidecar = spawn()
    listed = sidecar.call("chat/list")["items"]
    assert listed
    opened = sidecar.call("chat/open", sessionId=listed[0]["sessionId"])
    assert opened["status"] == "recovered"
    assert sidecar.run("go on", sessionId=listed[0]["sessionId"])["data"]["reason"] == "end_turn"


@pytest.mark.slow
def test_a_database_that_another_holds_is_not_moved(spawn: Spawner, database: Path) -> None:
    """Held by a program that knows nothing of ours but SQLite's own locks."""
    checkpointed(database)
    overwrite(database, 2 * 4096, b"\xff" * 4096)
    script = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('pragma journal_mode').fetchall();"
        "c.execute('begin'); c.execute('select count(*) from sqlite_master').fetchall(); print(1, flush=True);"
        "sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", script, str(database)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"1\n"
    before = database.read_bytes()
    try:
        sidecar = spawn()
        answer = sidecar.answer(sidecar.ask("chat/open", chatId="c0", ifMissing="fail"))
        assert "result" in answer or answer["error"]["code"] == -32015
        assert (damaged_files(database), database.read_bytes()) == ([], before)
    finally:
        holder.communicate()


def test_a_second_sidecar_waits_for_a_repair_and_then_reads(spawn: Spawner, database: Path) -> None:
    checkpointed(database)
    overwrite(database, 0, b"\xff" * 4096)
    first, second, third = (spawn(initialize=False) for _ in range(3))
    for sidecar in (first, second, third):
        sidecar.initialize()
    ids = [sidecar.ask("chat/open", chatId="c0", ifMissing="fail") for sidecar in (first, second, third)]
    for sidecar, id in zip((first, second, third), ids, strict=True):
        answer = sidecar.answer(id, PATIENCE_S)
        assert answer.get("result", {}).get("status") == "recovered", answer
    assert len(damaged_files(database)) == 1


def test_a_repair_that_is_cut_before_its_last_step_is_ended_by_the_next(
    spawn: Spawner, database: Path
) -> None:
    checkpointed(database)
    saved = spawn.folder / "saved.db"
    shutil.copy(database, saved)
    database.rename(f"{database}.damaged-x")
    shutil.copy(saved, f"{database}.salvaged")
    opened = spawn().call("chat/open", chatId="c0", ifMissing="fail")
    assert len(opened["turns"]) == TURNS


def test_a_search_over_a_broken_index_finds_by_one_that_is_made_anew(spawn: Spawner, database: Path) -> None:
    connection = sqlite3.connect(database)
    connection.execute("DELETE FROM words_data WHERE id > 10")
    connection.commit()
    connection.close()
    sidecar = spawn()
    assert sidecar.call("chat/search", query="lorem", limit=50)["items"]
    assert (damaged_files(database), sidecar.call("chat/open", chatId="c0")["status"]) == ([], "resumed")


def garbage(rng: random.Random, path: Path) -> None:
    size = path.stat().st_size
    overwrite(path, rng.randrange(size), rng.randbytes(rng.choice([1, 16, 512, 4096])))


def cut(rng: random.Random, path: Path) -> None:
    os.truncate(path, rng.randrange(path.stat().st_size))


def zeros(rng: random.Random, path: Path) -> None:
    place = rng.randrange(path.stat().st_size) // 512 * 512
    overwrite(path, place, bytes(512))


@pytest.mark.slow
def test_whatever_is_damaged_the_database_is_sound_again_and_no_chat_is_replaced(
    spawn: Spawner, database: Path
) -> None:
    """Without a process, which would take a second per place: the tests above show what that does."""
    rng = random.Random(SEED)
    lost = whole = 0
    for number in range(PLACES):
        folder = spawn.folder / f"place {number}"
        folder.mkdir()
        for name in FILES:
            shutil.copy(database.parent / name, folder / name)
        path = folder / "sidecar.db"
        if rng.random() < 0.5:
            checkpointed(path)
        target = rng.choice([folder / name for name in FILES if (folder / name).exists()])
        damage: Callable[[random.Random, Path], None] = rng.choice([garbage, cut, zeros])
        if target.stat().st_size:
            damage(rng, target)
        done = recover(str(path), empty=True)
        assert sound(path), (number, target.name, damage.__name__)
        lost += done.lost if done else 0
        whole += done is None
        shutil.rmtree(folder)
    assert whole < PLACES
    figures = {"places": PLACES, "sound as they were": whole, "events lost": lost}
    sys.stderr.write(f"damage: {json.dumps(figures)}\n")
