"""A clock that jumps, and a newer program that changes the database under a running one."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from tests.support.spawner import Spawner

DAY_S = 24 * 3600

SHIFTED = """import os, time
_real = time.time_ns
def _offset():
    try:
        with open(os.environ["SHIFTED_BY"]) as file:
            return int(file.read() or 0)
    except OSError:
        return 0
time.time_ns = lambda: _real() + _offset() * 10**9
time.time = lambda: time.time_ns() / 10**9
"""
"""The wall clock by so many seconds more as a file says: loaded by every Python that starts with it on its path."""


def test_a_clock_that_jumps_changes_no_order_and_ends_no_lease(spawn: Spawner, tmp_path: Path) -> None:
    offset = tmp_path / "offset"
    (tmp_path / "clock").mkdir()
    (tmp_path / "clock" / "sitecustomize.py").write_text(SHIFTED)
    env = {"PYTHONPATH": str(tmp_path / "clock"), "SHIFTED_BY": str(offset)}
    offset.write_text("0")
    sidecar = spawn(env=env)
    other = spawn()
    session = sidecar.run("one", chatId="c")["sessionId"]
    for number, days in enumerate((30, -60, 400, 0), 2):
        offset.write_text(str(days * DAY_S))
        assert sidecar.run(f"say {number}", chatId="c")["data"]["reason"] == "end_turn"

    journal = sidecar.journal(session)
    assert [event["seq"] for event in journal] == sorted(event["seq"] for event in journal)
    jumped = [event["ts"] for event in journal]
    assert jumped != sorted(jumped), "the clock never jumped: the test tests nothing"
    said = [turn["items"][0]["text"] for turn in other.call("chat/history", chatId="c")["turns"]]
    assert said == ["one", "say 2", "say 3", "say 4", "say 5"]
    assert other.run("from elsewhere", chatId="c")["data"]["reason"] == "end_turn"


def test_an_old_program_does_not_write_what_a_newer_one_has_changed(spawn: Spawner) -> None:
    sidecar = spawn()
    session = sidecar.run("before", chatId="c")["sessionId"]
    (path,) = spawn.folder.rglob("sidecar.db")
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE of_the_future (x)")
        db.execute("PRAGMA user_version = 9999")
    db.close()
    refusal = sidecar.refused("prompt/send", chatId="c", promptId="p-2", text="after")

    assert (refusal.code, refusal.data["reason"], refusal.data["action"]) == (
        -32015,
        "schema_newer",
        "upgrade_app",
    )
    assert [turn["items"][0]["text"] for turn in sidecar.call("chat/history", chatId="c")["turns"]] == [
        "before"
    ]
    assert sidecar.journal(session)[-1]["type"] == "chat.state"
    assert spawn().refused("chat/open", chatId="c").data["reason"] == "schema_newer"
