"""Every n-th system call of a turn on the database fails, or kills: nothing shown is lost, and the same process writes
again when the fault is gone."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
from pathlib import Path

import pytest

from tests.blackbox.faults.tracing import Fault, Trace, joined, launcher, spread, unable
from tests.blackbox.faults.wholeness import assert_nothing_lost
from tests.support.patience import PATIENCE_S
from tests.support.processes import poll_until
from tests.support.sidecar import Refusal, Sidecar
from tests.support.spawner import Spawner
from tests.support.verdict import journal_violations, missing_events
from tests.support.wire import Json

POINTS = int(os.environ.get("SIDECAR_FAULT_POINTS", "100"))
"""How many in all; `make faults` takes every one."""

ERRORS = [
    ("pwrite64", "ENOSPC"),
    ("pwrite64", "EIO"),
    ("pwrite64", "SHORT"),
    ("fsync", "EIO"),
    ("fsync", "ENOSPC"),
    ("pread64", "EIO"),
]
REASONS = {"full", "io", "readonly"}
UNREADABLE = REASONS | {"corrupt"}
"""A page that cannot be read is a damaged one to SQLite; whether the file is damaged is found out afterwards."""

EACH = max(1, POINTS // 10)

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(unable()), reason=unable() or "-")]


def play(folder: Path) -> str:
    """A turn of a dozen pieces, each a commit of its own."""
    path = folder / "script.json"
    reply = {"regex": "", "steps": [{"text": "word " * 12, "delayMs": 4}]}
    path.write_text(json.dumps({"replies": [reply]}))
    return f"scripted:{path}"


@pytest.fixture
def sidecar(spawn: Spawner) -> Sidecar:
    made = spawn(model=play(spawn.folder))
    made.run("first", chatId="c")
    return made


def count(sidecar: Sidecar, spawn: Spawner, call: str) -> int:
    """How often a turn makes this call, less a few that may be missing from the next."""
    with joined(sidecar.pid, spawn.data_dir, spawn.folder / "calls.log") as trace:
        sidecar.run("count", chatId="c")
    return max(1, trace.calls()[call] * 4 // 5)


def attempt(sidecar: Sidecar, text: str) -> set[str]:
    """Run a turn that may fail; the reasons it gave."""
    answer = sidecar.answer(sidecar.ask("prompt/send", chatId="c", promptId=text, text=text))
    if "error" in answer:
        assert answer["error"]["code"] == -32015, answer
        return {answer["error"]["data"]["reason"]}
    sent = answer["result"]
    end = sidecar.wait_turn(sent["sessionId"], sent["turnId"])
    if end["data"]["reason"] != "error":
        return set()
    assert end["data"]["error"]["code"] == -32015, end
    return {end["data"]["error"]["data"]["reason"]}


@pytest.mark.parametrize(("call", "error"), ERRORS)
def test_a_call_that_fails_once_ends_the_turn_at_most(
    sidecar: Sidecar, spawn: Spawner, call: str, error: str
) -> None:
    hits = 0
    for when in spread(count(sidecar, spawn, call), EACH):
        log = spawn.folder / f"{call}-{error}-{when}.log"
        with joined(sidecar.pid, spawn.data_dir, log, Fault(call, error, when)) as trace:
            assert attempt(sidecar, f"turn {when}") <= UNREADABLE, (call, error, when)
        hits += trace.injected > 0
        assert sidecar.run("and now", chatId="c")["data"]["reason"] == "end_turn", (call, error, when)
    assert hits > 0
    assert_nothing_lost(sidecar)
    tell(f"{call} {error} once", hits)


@pytest.mark.parametrize(("call", "error"), [("pwrite64", "ENOSPC"), ("pwrite64", "EIO"), ("fsync", "EIO")])
def test_a_disk_that_stays_broken_is_told_and_reads_go_on(
    sidecar: Sidecar, spawn: Spawner, call: str, error: str
) -> None:
    hits = 0
    for when in spread(count(sidecar, spawn, call), max(1, EACH // 2)):
        log = spawn.folder / f"{call}-{error}-{when}-on.log"
        before = sidecar.call("chat/history", chatId="c", limit=1)["turns"][-1]["id"]
        with joined(sidecar.pid, spawn.data_dir, log, Fault(call, error, when, on=True)) as trace:
            sent = sidecar.answer(sidecar.ask("prompt/send", chatId="c", promptId=f"p{when}", text="on"))
            other, taken = wait_refused(sidecar, when)
            assert other.data["reason"] in REASONS, (call, error, when)
            turns = sidecar.call("chat/history", chatId="c", limit=5)["turns"]
            assert before in [turn["id"] for turn in turns]
        assert trace.injected > 0
        hits += 1
        for result in [answer["result"] for answer in [sent, *taken] if "result" in answer]:
            sidecar.wait_turn(result["sessionId"], result["turnId"])
        assert sidecar.run("and now", chatId="c")["data"]["reason"] == "end_turn", (call, error, when)
    assert_nothing_lost(sidecar)
    tell(f"{call} {error} for good", hits)


def tell(what: str, points: int) -> None:
    """What was met, for who asked for every point."""
    sys.stderr.write(f"fault points: {json.dumps({what: points})}\n")


def wait_refused(sidecar: Sidecar, number: int) -> tuple[Refusal, list[Json]]:
    """How a prompt to another chat is refused once the disk has failed, and the answers to those that passed before."""
    passed: list[Json] = []
    for attempt in range(40):
        id = sidecar.ask("prompt/send", chatId=f"other {number}-{attempt}", promptId="p", text="other")
        answer = sidecar.answer(id)
        if "error" in answer:
            refusal = Refusal(answer["error"])
            assert refusal.code == -32015, refusal
            return refusal, passed
        passed.append(answer)
    raise AssertionError("the disk fails, and prompts are taken")


@pytest.mark.parametrize("call", ["pwrite64", "fsync"])
def test_killed_at_a_call_nothing_shown_is_lost(spawn: Spawner, call: str) -> None:
    model = play(spawn.folder)
    sidecar = spawn(model=model)
    sidecar.run("first", chatId="c")
    times = spread(count(sidecar, spawn, call), EACH)
    hits = 0
    for when in times:
        log = spawn.folder / f"{call}-kill-{when}.log"
        with joined(sidecar.pid, spawn.data_dir, log, Fault(call, "KILL", when)):
            hits += until_killed(sidecar, when) == -signal.SIGKILL
        sidecar = spawn(model=model)
        assert sidecar.call("chat/open", chatId="c")["turns"]
        assert sidecar.run("and now", chatId="c")["data"]["reason"] == "end_turn", (call, when)
    assert hits == len(times)
    reader = sidecar
    (session,) = {session for each in spawn.sidecars for session in each.seen()}
    journals = {session: reader.journal(session)}
    assert [loss for each in spawn.sidecars for loss in missing_events(each.seen(), journals)] == []
    assert journal_violations(session, journals[session]) == []
    sidecar.close_stdin()
    sidecar.wait()
    assert_whole(spawn.data_dir / "sidecar.db")
    tell(f"{call} KILL", hits)


def until_killed(sidecar: Sidecar, when: int) -> int:
    """The exit code; a turn may make fewer calls than the one that was counted, so more than one may be needed."""
    sidecar.killed = True
    for number in range(10):
        id = sidecar.ask("prompt/send", chatId="c", promptId=f"p{when}-{number}", text="until killed")
        try:
            sent = sidecar.result(id)
            sidecar.wait_turn(sent["sessionId"], sent["turnId"])
        except (AssertionError, OSError):
            return sidecar.wait()
    raise AssertionError("not killed")


def test_a_checkpoint_that_hangs_holds_no_turn_up(sidecar: Sidecar, spawn: Spawner) -> None:
    log, hang = spawn.folder / "hang.log", Fault("fsync", "HANG", 1, on=True)
    with joined(sidecar.pid, spawn.data_dir, log, hang, files=["sidecar.db"]) as trace:
        assert sidecar.run("one", chatId="c")["data"]["reason"] == "end_turn"
        assert poll_until(lambda: trace.calls()["fsync"] > 0, PATIENCE_S)
        for number in range(3):
            assert sidecar.run(f"beside it {number}", chatId="c")["data"]["reason"] == "end_turn"
    assert_nothing_lost(sidecar)


STARTING = ["openat", "pread64", "pwrite64", "fsync", "ftruncate", "mmap", "rename"]
EFFECTS = ["EIO"] if POINTS <= 100 else ["EIO", "ENOSPC", "KILL"]


@pytest.mark.parametrize("effect", EFFECTS)
@pytest.mark.parametrize("call", STARTING)
def test_a_process_that_fails_from_its_start_on_says_so_and_the_next_is_whole(
    spawn: Spawner, call: str, effect: str
) -> None:
    first = spawn()
    first.run("precious", chatId="c")
    first.kill()  # so that there is a WAL to recover
    plain, log, turns, hits = spawn.command, spawn.folder / "start.log", 1, 0
    for when in spread(6, max(1, EACH // 4)):
        (spawn.data_dir / "sidecar.db-reserve").unlink(missing_ok=True)
        # strace counts for each thread: as long as it lasts, every opening fails alike.
        spawn.command = [*launcher(spawn.data_dir, log, Fault(f"?{call}", effect, when)), *plain]
        struck = spawn(initialize=False)
        let_run(struck, when)
        struck.close_stdin()
        hits += struck.wait() == -signal.SIGKILL or Trace(log).injected > 0
        spawn.command = plain
        sound = spawn()
        opened = sound.call("chat/open", chatId="c", ifMissing="fail")
        found = [turn["promptId"] for turn in opened["turns"]]
        turns = turns + 1 if f"p{when}" in found else turns
        assert opened["status"] in ("resumed", "recovered"), (call, effect, when, opened)
        assert len(found) == turns, (call, effect, when)
        assert missing_events(struck.seen(), {opened["sessionId"]: sound.journal(opened["sessionId"])}) == []
        sound.kill()
    assert hits > 0
    tell(f"{call} {effect} from the start on", hits)


def let_run(sidecar: Sidecar, when: int) -> None:
    """Let a process run a turn as far as it can; the errors that it tells are typed."""
    sidecar.killed = True
    try:
        sidecar.initialize()
        answer = sidecar.answer(sidecar.ask("prompt/send", chatId="c", promptId=f"p{when}", text="go on"))
        if "result" in answer:
            sidecar.wait_turn(answer["result"]["sessionId"], answer["result"]["turnId"])
    except (AssertionError, OSError):
        assert sidecar.wait() == -signal.SIGKILL  # strace ends as its process did
        answer = {}
    if "error" in answer:
        assert answer["error"]["code"] == -32015, (when, answer)
        assert answer["error"]["data"]["reason"] in UNREADABLE, (when, answer)


def assert_whole(path: Path) -> None:
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
