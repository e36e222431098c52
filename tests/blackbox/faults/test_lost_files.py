"""The database's files removed, renamed, replaced or overwritten under a running sidecar: noticed within a second,
told, copied out, and put back where that takes nobody's file away. Nothing goes on into nothing."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.blackbox.faults.test_small_disks import states, wait_state
from tests.blackbox.faults.wholeness import assert_nothing_lost, sound
from tests.support.patience import PATIENCE_S
from tests.support.processes import Stopwatch, poll_until
from tests.support.scripts import HALF_ANSWER, write_script
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner
from tests.support.wire import Json

pytestmark = pytest.mark.slow

NOTICED_S = 1.0


def rescued_files(spawn: Spawner) -> list[Path]:
    found = spawn.data_dir.glob("sidecar.db.rescued-*")
    return sorted(path for path in found if not path.name.endswith((".part", "-wal", "-shm")))


def removed(path: Path) -> None:
    path.unlink()


def renamed(path: Path) -> None:
    path.rename(path.with_name("elsewhere.db"))


def all_files_removed(path: Path) -> None:
    """As `git clean -fdx` does, the lock and the reserve included."""
    for file in path.parent.iterdir():
        file.unlink()


def folder_removed(path: Path) -> None:
    gone = path.parent.with_name("gone")
    path.parent.rename(gone)  # or what the sidecar does at once would be in the way
    shutil.rmtree(gone)


def folder_renamed(path: Path) -> None:
    path.parent.rename(path.parent.with_name("elsewhere"))


def log_removed(path: Path) -> None:
    Path(f"{path}-wal").unlink()


def index_removed(path: Path) -> None:
    Path(f"{path}-shm").unlink()


def log_replaced(path: Path) -> None:
    other = path.with_name("other-wal")
    other.write_bytes(b"")
    other.rename(f"{path}-wal")


REMOVALS = [
    removed, renamed, all_files_removed, folder_removed, folder_renamed, log_removed, index_removed, log_replaced,
]  # fmt: skip


def talk(spawn: Spawner) -> Sidecar:
    sidecar = spawn(model=write_script(spawn.folder))
    sidecar.run("before", chatId="c")
    sidecar.run("before", chatId="d")
    return sidecar


def wait_restored(sidecar: Sidecar) -> None:
    told = states(sidecar)
    sidecar.wait_until(
        lambda: states(sidecar)[-2:] in (["removed", "ready"], ["replaced", "ready"]), PATIENCE_S, f"{told}"
    )


@pytest.mark.parametrize("lose", REMOVALS, ids=lambda lose: lose.__name__)
def test_what_is_removed_is_noticed_within_a_second_and_put_back(
    spawn: Spawner, lose: Callable[[Path], None]
) -> None:
    sidecar = talk(spawn)
    database = spawn.data_dir / "sidecar.db"
    lose(database)
    clock = Stopwatch(sidecar.pid)
    sidecar.wait_until(
        lambda: states(sidecar)[-1] != "ready" or len(states(sidecar)) > 1, PATIENCE_S, "a status"
    )
    assert clock.seconds() < NOTICED_S
    wait_restored(sidecar)
    assert sidecar.run("after", chatId="c")["data"]["reason"] == "end_turn"
    assert_nothing_lost(sidecar)
    sidecar.close_stdin()
    sidecar.wait()
    assert (sound(database), rescued_files(spawn)) == (True, [])
    second = spawn()
    for chat, turns in (("c", 2), ("d", 1)):
        opened = second.call("chat/open", chatId=chat, ifMissing="fail")
        assert (opened["status"], len(opened["turns"])) == ("resumed", turns)
    assert_nothing_lost(sidecar, second)


@pytest.mark.parametrize("lose", REMOVALS, ids=lambda lose: lose.__name__)
def test_a_turn_goes_on_over_it(spawn: Spawner, lose: Callable[[Path], None]) -> None:
    sidecar = talk(spawn)
    sent = sidecar.say("slow", chatId="c")
    sidecar.wait_event(sent["sessionId"], "message.delta")
    lose(spawn.data_dir / "sidecar.db")
    assert sidecar.wait_turn(sent["sessionId"], sent["turnId"])["data"]["reason"] == "end_turn"
    wait_restored(sidecar)
    sidecar.kill()
    assert_nothing_lost(sidecar, spawn())


def other_database(spawn: Spawner) -> Path:
    """A valid database that knows nothing of these chats."""
    folder = spawn.folder / "other"
    sidecar = spawn(data_dir=folder)
    sidecar.run("another", chatId="another")
    sidecar.close_stdin()
    sidecar.wait()
    return folder / "sidecar.db"


def older_copy(spawn: Spawner) -> Path:
    """The database itself, as it was before its last turn, as a synchronising program has it."""
    target = spawn.folder / "older.db"
    source = sqlite3.connect(spawn.data_dir / "sidecar.db")
    with sqlite3.connect(target) as copy:
        source.backup(copy)
    copy.close()
    source.close()
    return target


def empty_file(spawn: Spawner) -> Path:
    path = spawn.folder / "empty.db"
    path.touch()
    return path


@pytest.mark.parametrize("make", [other_database, empty_file, older_copy], ids=lambda make: make.__name__)
def test_a_file_that_is_renamed_over_it_is_left_alone_and_nothing_more_is_written(
    spawn: Spawner, make: Callable[[Spawner], Path]
) -> None:
    sidecar = talk(spawn)
    # By another process: closing the database's file here would be no harm, but is nobody's habit either.
    new = make(spawn)
    sidecar.run("newer than the copy", chatId="c")
    sent = sidecar.say("hang", chatId="d")
    sidecar.wait_event(sent["sessionId"], "message.delta")
    database, contents = spawn.data_dir / "sidecar.db", new.read_bytes()
    new.rename(database)
    sidecar.wait_until(lambda: "rescued" in sidecar.statuses("storage")[-1]["data"], PATIENCE_S, "a copy")
    told = sidecar.statuses("storage")[-1]["data"]
    (copy,) = rescued_files(spawn)
    assert (told["state"], told["rescued"]) == ("replaced", str(copy))
    for method, params in (
        ("prompt/send", {"promptId": "p", "text": "into nothing"}),
        ("chat/rename", {"title": "into nothing"}),
        ("chat/open", {"config": {"effort": "low"}}),
    ):
        refused = sidecar.refused(method, chatId="c", **params)
        assert (refused.code, refused.data["reason"]) == (-32015, "replaced"), method
    assert str(copy) in sidecar_message(sidecar)
    assert len(sidecar.call("chat/history", chatId="c")["turns"]) == 2
    assert sidecar.call("turn/cancel", chatId="d")["outcome"] == "cancelled"
    assert sidecar.wait_turn(sent["sessionId"], sent["turnId"])["data"]["reason"] == "cancelled"
    assert database.read_bytes() == contents
    sidecar.close_stdin()
    sidecar.wait()
    restore(spawn, copy)
    reader = spawn()
    assert_nothing_lost(sidecar, reader)
    assert reader.call("chat/history", chatId="d")["turns"][-1]["items"][-1]["text"] == HALF_ANSWER


def sidecar_message(sidecar: Sidecar) -> str:
    return str(sidecar.answer(sidecar.ask("chat/rename", chatId="c", title="x"))["error"]["message"])


def restore(spawn: Spawner, copy: Path) -> None:
    command = [sys.executable, "-m", "sidecar", "restore", str(copy)]
    done = subprocess.run(command, env=spawn.environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def a_folder(path: Path) -> None:
    path.mkdir()


def a_link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


def a_link_to_nothing(path: Path) -> None:
    path.symlink_to("nowhere.db")


def a_link_to_a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def a_link_to_a_copy(path: Path) -> None:
    path.symlink_to(shutil.copy(path.with_name("away.db"), path.with_name("copy.db")))


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


IN_THE_WAY = [a_folder, a_link_to_itself, a_link_to_nothing, a_link_to_a_device, a_link_to_a_copy, a_pipe]


@pytest.mark.parametrize("make", IN_THE_WAY, ids=lambda make: make.__name__)
def test_what_is_no_database_in_its_place_is_told_and_everything_is_copied(
    spawn: Spawner, make: Callable[[Path], None]
) -> None:
    sidecar = talk(spawn)
    database = spawn.data_dir / "sidecar.db"
    database.rename(database.with_name("away.db"))
    make(database)
    sidecar.wait_until(lambda: "rescued" in sidecar.statuses("storage")[-1]["data"], PATIENCE_S, "a copy")
    refused = sidecar.refused("prompt/send", chatId="c", promptId="p", text="into nothing")
    assert (refused.code, refused.data["action"], refused.data["retryable"]) == (-32015, "restore", False)
    assert len(sidecar.call("chat/history", chatId="c")["turns"]) == 1
    sidecar.close_stdin()
    sidecar.wait()
    (copy,) = rescued_files(spawn)
    assert sound(copy)
    second = spawn()
    refused = second.refused("chat/open", chatId="c", ifMissing="fail")
    assert (refused.code, refused.data["action"], refused.data["retryable"]) == (
        -32015,
        "check_permissions",
        False,
    )


def emptied(path: Path) -> None:
    os.truncate(path, 0)


def overwritten(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"This is no database. " * 20_000)


@pytest.mark.parametrize("lose", [emptied, overwritten], ids=lambda lose: lose.__name__)
def test_other_contents_in_the_same_file_are_told_and_no_chat_is_taken_for_a_new_one(
    spawn: Spawner, lose: Callable[[Path], None]
) -> None:
    sidecar = talk(spawn)
    wait_log_moved(sidecar, spawn.data_dir / "sidecar.db")
    lose(spawn.data_dir / "sidecar.db")
    sidecar.wait_until(
        lambda: bool({"replaced", "quarantined"} & set(states(sidecar))), PATIENCE_S, "a status"
    )
    answers = [sidecar.answer(sidecar.ask("chat/open", chatId="c"), PATIENCE_S) for _ in range(2)]
    sidecar.close_stdin()
    sidecar.wait()
    answers.append((second := spawn()).answer(second.ask("chat/open", chatId="c"), PATIENCE_S))
    for answer in answers:
        assert_not_new(answer)


def wait_log_moved(sidecar: Sidecar, database: Path) -> None:
    """Until the database's own file has it all, and nothing more is moved there."""
    assert poll_until(lambda: database.stat().st_size > 100_000, PATIENCE_S)
    sidecar.call("chat/list")


def assert_not_new(answer: Json) -> None:
    if "error" in answer:
        assert answer["error"]["code"] == -32015
        data = answer["error"]["data"]
        assert data["reason"] in ("corrupt", "replaced") or data["retryable"]
    else:
        assert answer["result"]["status"] != "created"


def test_another_database_that_is_copied_into_the_same_file_is_kept_and_refused(spawn: Spawner) -> None:
    sidecar = talk(spawn)
    other = other_database(spawn).read_bytes()
    database = spawn.data_dir / "sidecar.db"
    wait_log_moved(sidecar, database)
    database.write_bytes(other)
    sidecar.wait_until(
        lambda: bool({"replaced", "quarantined"} & set(states(sidecar))), PATIENCE_S, "a status"
    )
    assert_not_new(sidecar.answer(sidecar.ask("chat/open", chatId="c"), PATIENCE_S))
    kept = [path for path in spawn.data_dir.glob("sidecar.db.replaced-*") if path.read_bytes() == other]
    assert len(kept) == 1


def log_emptied(database: Path) -> None:
    os.truncate(f"{database}-wal", 0)


def log_cut(database: Path) -> None:
    log = Path(f"{database}-wal")
    os.truncate(log, log.stat().st_size // 2)


def log_scribbled(database: Path) -> None:
    with Path(f"{database}-wal").open("r+b") as file:
        file.write(b"This is no log. " * 1000)


def wait_checkpointed(database: Path) -> None:
    """Until everything in the log is in the database too, by the log's index."""

    def is_done() -> bool:
        index = Path(f"{database}-shm").read_bytes()
        return len(index) > 100 and index[16:20] == index[96:100] != bytes(4)

    assert poll_until(is_done, PATIENCE_S)


@pytest.mark.parametrize("others", [0, 1, 3])
@pytest.mark.parametrize("lose", [log_emptied, log_cut, log_scribbled], ids=lambda lose: lose.__name__)
def test_other_contents_in_the_log_cost_nothing_that_was_moved_to_the_database(
    spawn: Spawner, lose: Callable[[Path], None], others: int
) -> None:
    first, database = talk(spawn), spawn.data_dir / "sidecar.db"
    sidecars = [first, *(spawn(model=write_script(spawn.folder)) for _ in range(others))]
    for number, sidecar in enumerate(sidecars):
        sidecar.run("before", chatId=f"of {number}")
    wait_checkpointed(database)
    lose(database)
    clock = Stopwatch(first.pid)
    first.wait_until(lambda: len(states(first)) > 1, PATIENCE_S, "a status")
    assert clock.seconds() < NOTICED_S
    first.wait_until(lambda: states(first)[-1] == "ready", PATIENCE_S, "ready")
    for number, sidecar in enumerate(sidecars):
        answer_until_taken(sidecar, f"of {number}")
        assert len(sidecar.call("chat/history", chatId=f"of {number}")["turns"]) == 2
    if not others:  # of several, one may have written again before the log was lost
        assert_nothing_lost(first)
    for sidecar in sidecars:
        sidecar.close_stdin()
        sidecar.wait()
    assert sound(database)


def answer_until_taken(sidecar: Sidecar, chat: str) -> None:
    """Send a prompt again as long as the refusal says that this helps."""
    id = sidecar.ask("prompt/send", chatId=chat, promptId="after", text="after")
    while "error" in (answer := sidecar.answer(id, PATIENCE_S)):
        assert answer["error"]["data"]["retryable"] is True, answer
        id = sidecar.ask("prompt/send", chatId=chat, promptId="after", text="after")


def test_a_log_that_is_emptied_in_a_turn_is_told_and_no_chat_is_taken_for_a_new_one(spawn: Spawner) -> None:
    first, database = talk(spawn), spawn.data_dir / "sidecar.db"
    second = spawn(model=write_script(spawn.folder))
    second.run("before", chatId="e")
    wait_checkpointed(database)
    second.say("slow", chatId="e")
    log_emptied(database)
    for sidecar in (first, second):
        assert_not_new(sidecar.answer(sidecar.ask("chat/open", chatId="c"), PATIENCE_S))
        sidecar.close_stdin()
        sidecar.wait()
    third = spawn()
    opened = third.call("chat/open", chatId="c", ifMissing="fail")
    assert len(opened["turns"]) == 1


def test_two_that_have_it_open_go_on_with_one_copy(spawn: Spawner) -> None:
    first, second = talk(spawn), spawn(model=write_script(spawn.folder))
    second.run("before", chatId="e")
    (spawn.data_dir / "sidecar.db").unlink()
    for sidecar in (first, second):
        wait_restored(sidecar)
    assert first.run("after", chatId="c")["data"]["reason"] == "end_turn"
    assert second.run("after", chatId="e")["data"]["reason"] == "end_turn"
    assert len(first.call("chat/history", chatId="e")["turns"]) == 2
    assert rescued_files(spawn) == []
    for sidecar in (first, second):
        assert_nothing_lost(sidecar, first)


@pytest.mark.parametrize(
    "lose", [removed, log_removed, index_removed, log_replaced], ids=lambda it: it.__name__
)
def test_of_four_that_have_it_open_one_puts_a_copy_back_and_all_go_on_with_it(
    spawn: Spawner, lose: Callable[[Path], None]
) -> None:
    sidecars = [spawn(model=write_script(spawn.folder)) for _ in range(4)]
    for number, sidecar in enumerate(sidecars):
        sidecar.run("before", chatId=f"of {number}")
    lose(spawn.data_dir / "sidecar.db")
    for number, sidecar in enumerate(sidecars):
        sidecar.wait_until(lambda: states(sidecar)[-1] == "ready", PATIENCE_S, "ready")  # noqa: B023
        answer_until_taken(sidecar, f"of {number}")
    for number in range(4):
        assert len(sidecars[0].call("chat/history", chatId=f"of {number}")["turns"]) == 2
    assert rescued_files(spawn) == []


def test_one_that_starts_when_the_file_has_just_been_removed_waits_for_it(spawn: Spawner) -> None:
    first = talk(spawn)
    (spawn.data_dir / "sidecar.db").unlink()
    second = spawn()
    assert second.call("chat/open", chatId="c", ifMissing="fail")["status"] != "created"
    wait_restored(first)
    assert_nothing_lost(first, second)


def test_during_a_compaction_nothing_is_lost(spawn: Spawner) -> None:
    sidecar = talk(spawn)
    for number in range(6):
        sidecar.run(f"turn {number} " + "words " * 200, chatId="c", overrides={"model": "echo:"})
    id = sidecar.ask("chat/compact", chatId="c")
    (spawn.data_dir / "sidecar.db").unlink()
    assert sidecar.answer(id)
    wait_restored(sidecar)
    assert sidecar.run("after", chatId="c")["data"]["reason"] == "end_turn"
    assert_nothing_lost(sidecar)


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("chattr"), reason="needs root and chattr")
def test_a_folder_that_cannot_be_written_is_tried_again_and_what_ends_is_told(spawn: Spawner) -> None:
    sidecar = talk(spawn)
    sent = sidecar.say("hang", chatId="c")
    sidecar.wait_event(sent["sessionId"], "message.delta")
    (spawn.data_dir / "sidecar.db").unlink()
    locked = subprocess.run(["chattr", "+i", str(spawn.data_dir)], capture_output=True, check=False)
    if locked.returncode:
        wait_restored(sidecar)
        pytest.skip("this file system knows no immutable folders")
    try:
        wait_state(sidecar, "removed")
        refused = sidecar.refused("prompt/send", chatId="d", promptId="p", text="into nothing")
        assert (refused.code, refused.data["reason"]) == (-32015, "removed")
        assert sidecar.call("turn/cancel", chatId="c")["outcome"] == "cancelled"
    finally:
        subprocess.run(["chattr", "-i", str(spawn.data_dir)], check=True)
    wait_restored(sidecar)
    assert sidecar.run("after", chatId="d")["data"]["reason"] == "end_turn"
    assert_nothing_lost(sidecar)
