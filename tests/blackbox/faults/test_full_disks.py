"""A disk that fills up in the middle of a turn: from the moment that the reserve is given up nothing is begun, whatever
ends is kept, and all goes on when there is room."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.blackbox.faults.disks import KINDS, fill, mounted, unable
from tests.blackbox.faults.test_damage import overwrite, root
from tests.blackbox.faults.test_small_disks import RESERVE, fill_by_talk, opened, states, wait_state
from tests.blackbox.faults.wholeness import assert_nothing_lost
from tests.blackbox.work.workbench import Workbench, call
from tests.support.patience import PATIENCE_S
from tests.support.scripts import write_script
from tests.support.sidecar import Refusal, Sidecar
from tests.support.spawner import Spawner
from tests.support.wire import Json

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(unable()), reason=unable() or "-")]
TEXT = [{"type": "text", "text": "no room"}]


@contextmanager
def small_disk(spawn: Spawner, kind: str = "tmpfs") -> Iterator[Path]:
    with mounted(spawn.folder, kind) as place:
        spawn.data_dir = place / "data"
        yield place
        for sidecar in spawn.sidecars:
            sidecar.close_stdin()
            sidecar.wait()


@pytest.fixture(params=KINDS)
def disk(request: pytest.FixtureRequest, spawn: Spawner) -> Iterator[Path]:
    with small_disk(spawn, request.param) as place:
        yield place


@pytest.fixture
def tmpfs(spawn: Spawner) -> Iterator[Path]:
    with small_disk(spawn) as place:
        yield place


def filled_in_a_turn(sidecar: Sidecar, disk: Path) -> Json:
    """The end of a turn in the middle of which the disk was filled."""
    sidecar.run("before", chatId="c")
    sent = sidecar.say("slow", chatId="c")
    sidecar.wait_event(sent["sessionId"], "message.delta")
    fill(disk / "ballast")
    end = fill_by_talk(sidecar, sent)
    fill(disk / "ballast")  # what the reserve was
    wait_state(sidecar, "full")
    return end


def fill_beside(sidecar: Sidecar, disk: Path) -> None:
    """Fill the disk, and let a turn of another chat meet it: its end takes the reserve."""
    scripts = disk.parent / "beside"
    scripts.mkdir()
    sent = sidecar.say("slow", chatId="other", overrides={"model": write_script(scripts)})
    sidecar.wait_event(sent["sessionId"], "message.delta")
    fill(disk / "ballast")
    with suppress(Refusal):  # what is stored beside a turn may meet the full disk before a turn does
        fill_by_talk(sidecar, sent, chat="other")
    (disk / "data" / RESERVE).unlink(missing_ok=True)  # as another process does that ends a turn
    fill(disk / "ballast")  # what the reserve was, but for room for the ends of turns
    os.truncate(disk / "ballast", (disk / "ballast").stat().st_size - 96 * 1024)
    wait_state(sidecar, "full")


REQUESTS: list[tuple[str, Json]] = [
    ("prompt/send", {"text": "no room"}),
    ("prompt/send", {"text": "no room", "delivery": "steer"}),
    ("prompt/send", {"text": "no room", "delivery": "interrupt"}),
    ("prompt/send", {"text": "no room", "delivery": "reject"}),
    ("prompt/send", {"content": TEXT, "commands": "off"}),
    ("turn/retry", {"from": "start"}),
    ("turn/retry", {"from": "here"}),
]


@pytest.mark.slow
def test_nothing_is_begun_once_the_reserve_is_given_up(spawn: Spawner, disk: Path) -> None:
    sidecar = spawn(model=write_script(spawn.folder))
    filled_in_a_turn(sidecar, disk)
    told = len(states(sidecar))
    for chat in ("c", "new"):
        for number, (method, params) in enumerate(REQUESTS):
            if chat == "new" and method == "turn/retry":
                continue
            refused = sidecar.refused(method, chatId=chat, promptId=f"{chat} {number}", **params)
            assert (refused.code, refused.data["reason"]) == (-32015, "full"), (method, params)
    assert not (spawn.data_dir / RESERVE).exists()
    assert "ready" not in states(sidecar)[told:], "the disk is said to be ready while the reserve is missing"
    (disk / "ballast").unlink()
    wait_state(sidecar, "ready", after=told)
    assert sidecar.run("after", chatId="new")["data"]["reason"] == "end_turn"
    assert_nothing_lost(sidecar)


def test_another_program_that_takes_all_room_at_once_leaves_no_prompt_without_an_end(
    spawn: Spawner, tmpfs: Path
) -> None:
    sidecar, over = spawn(model=write_script(spawn.folder)), threading.Event()

    def keep_full() -> None:
        while not over.wait(0.01):
            fill(tmpfs / "ballast")

    filler = threading.Thread(target=keep_full)
    sidecar.run("before", chatId="c0")
    started = [sidecar.say("slow", chatId="c0")]
    sidecar.wait_event(started[0]["sessionId"], "message.delta")
    filler.start()
    try:
        for number in range(30):
            params = {"chatId": f"c{number % 4}", "promptId": f"p{number}", "text": "x" * 20_000}
            answer = sidecar.answer(
                sidecar.ask("prompt/send", **params, overrides={"model": "echo:"}, delivery="reject")
            )
            started += [answer["result"]] if "result" in answer else []
    finally:
        over.set()
        filler.join()
    (tmpfs / "ballast").unlink()
    for sent in started:
        sidecar.wait_turn(sent["sessionId"], sent["turnId"])
    wait_state(sidecar, "ready", after=len(states(sidecar)) - 1)
    assert sidecar.run("after", chatId="c0")["data"]["reason"] == "end_turn"
    assert_nothing_lost(sidecar)


def test_a_prompt_that_waited_when_the_disk_filled_up_starts_by_itself_when_there_is_room(
    spawn: Spawner, tmpfs: Path
) -> None:
    sidecar = spawn(model=write_script(spawn.folder))
    sidecar.run("before", chatId="c")
    running = sidecar.say("hang", chatId="c")
    waiting = sidecar.say("next", chatId="c")
    assert waiting["disposition"] == "queued"
    fill_beside(sidecar, tmpfs)
    assert sidecar.call("turn/cancel", chatId="c", queue="keep")["outcome"] == "cancelled"
    assert sidecar.wait_turn(running["sessionId"], running["turnId"])["data"]["reason"] == "cancelled"
    (tmpfs / "ballast").unlink()
    assert sidecar.wait_turn(waiting["sessionId"], waiting["turnId"])["data"]["reason"] == "end_turn"
    assert_nothing_lost(sidecar)


def test_the_queue_can_be_neither_changed_nor_lost(spawn: Spawner, tmpfs: Path) -> None:
    sidecar = spawn(model=write_script(spawn.folder))
    sidecar.run("before", chatId="c")
    running = sidecar.say("hang", chatId="c")
    waiting = sidecar.say("next", chatId="c", prompt="w")
    fill_beside(sidecar, tmpfs)
    for method, params in (
        ("prompt/edit", {"promptId": "w", "content": TEXT}),
        ("prompt/remove", {"promptId": "w"}),
        ("prompt/send", {"promptId": "s", "text": "steered", "delivery": "steer"}),
        ("prompt/send", {"promptId": "q", "text": "queued"}),
        ("chat/rename", {"title": "no room"}),
        ("chat/configure", {"set": {"effort": "low"}}),
    ):
        refused = sidecar.refused(method, chatId="c", **params)
        assert (refused.code, refused.data["reason"]) == (-32015, "full"), method
    assert [item["promptId"] for item in sidecar.call("prompt/list", chatId="c")["queue"]["items"]] == ["w"]
    (tmpfs / "ballast").unlink()
    wait_state(sidecar, "ready", after=states(sidecar).index("full"))
    sidecar.call("turn/cancel", chatId="c", queue="keep")
    for sent in (running, waiting):
        sidecar.wait_turn(sent["sessionId"], sent["turnId"])
    assert_nothing_lost(sidecar)


def test_a_permission_that_could_not_be_answered_is_answered_when_there_is_room(
    spawn: Spawner, tmpfs: Path
) -> None:
    bench = Workbench(spawn)
    sidecar = bench.start([call("write_file", path="new.txt", content="hello\n"), "done"], mode="ask")
    sent = sidecar.say("go", chatId="c")
    asked = sidecar.wait_asked("permission/request")["params"]["permissionId"]
    fill_beside(sidecar, tmpfs)
    refused = sidecar.refused("permission/answer", permissionId=asked, decision="allow_once")
    assert (refused.code, refused.data["reason"]) == (-32015, "full")
    (tmpfs / "ballast").unlink()
    wait_state(sidecar, "ready", after=states(sidecar).index("full"))
    sidecar.call("permission/answer", permissionId=asked, decision="allow_once")
    assert sidecar.wait_turn(sent["sessionId"], sent["turnId"])["data"]["reason"] == "end_turn"
    assert bench.read("new.txt") == "hello\n"


def test_one_that_is_killed_on_a_full_disk_is_followed_by_one_that_says_so_and_works_when_there_is_room(
    spawn: Spawner, tmpfs: Path
) -> None:
    first = spawn(model=write_script(spawn.folder))
    filled_in_a_turn(first, tmpfs)
    first.kill()
    second = spawn(model=write_script(spawn.folder))
    answer = second.answer(second.ask("prompt/send", chatId="c", promptId="p", text="no room"))
    assert (answer["error"]["code"], answer["error"]["data"]["reason"]) == (-32015, "full")
    (tmpfs / "ballast").unlink()
    wait_state(second, "ready", after=states(second).index("full"))
    assert second.run("after", chatId="c")["data"]["reason"] == "end_turn"
    assert_nothing_lost(first, second)


@pytest.mark.slow
def test_a_repair_without_room_leaves_the_database_as_it_is_and_is_done_when_there_is(
    spawn: Spawner, tmpfs: Path
) -> None:
    first = spawn()
    for number in range(4):
        first.run(f"turn {number} " + "lorem " * 200, chatId="c")
    first.close_stdin()
    first.wait()
    database = spawn.data_dir / "sidecar.db"
    overwrite(database, (root(database, "turns") - 1) * 4096, random.Random(1).randbytes(4096))
    before = database.read_bytes()
    fill(tmpfs / "ballast")
    second = spawn()
    answer = second.answer(second.ask("chat/open", chatId="c", ifMissing="fail"))
    assert answer["error"]["code"] == -32015
    assert answer["error"]["data"]["reason"] in ("full", "corrupt")
    assert database.read_bytes() == before
    assert sorted(path.name for path in spawn.data_dir.iterdir() if "salvaged" in path.name) == []
    (tmpfs / "ballast").unlink()
    second.wait_until(lambda: opened(second), PATIENCE_S, "a chat")
    assert len(second.call("chat/history", chatId="c")["turns"]) == 4
