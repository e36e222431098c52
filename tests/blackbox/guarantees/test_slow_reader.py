"""Guarantee 9: a client that stops reading for 10 s while 8 chats stream loses nothing and stops nobody."""

from __future__ import annotations

import time

import pytest

from tests.support import processes
from tests.support.patience import PATIENCE_S
from tests.support.reading import streamed_text
from tests.support.scripts import write_script
from tests.support.sidecar import EXIT_WITHIN, Sidecar
from tests.support.spawner import Spawner

STOP = 10.0
"""How long the client does not read: the one wait in these tests that is only a wait."""

CHATS = [f"c{number}" for number in range(8)]
WORD = "w" * 59
TEXT = " ".join(f"{WORD}{number:05}" for number in range(20_000))
GROWTH = 64 * 1024 * 1024


def highest_rss(pid: int, seconds: float) -> int:
    highest, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        highest = max(highest, processes.rss_bytes(pid))
        time.sleep(0.05)
    return highest


def start(sidecar: Sidecar) -> list[tuple[str, str]]:
    """Start all chats, and return the session and the turn of each."""
    ids = [sidecar.ask("prompt/send", chatId=chat, promptId="p", text=TEXT) for chat in CHATS]
    return [(result["sessionId"], result["turnId"]) for result in map(sidecar.result, ids)]


@pytest.mark.slow
def test_a_client_that_stops_reading_loses_nothing_and_memory_stays_bounded(spawn: Spawner) -> None:
    sidecar, watcher = spawn(), spawn()
    stuck = sidecar.say("hang", chatId="stuck", overrides={"model": write_script(spawn.folder)})
    sidecar.wait_event(stuck["sessionId"], "message.delta")
    watcher.call("chat/open", chatId="stuck")
    turns = start(sidecar)
    before = processes.rss_bytes(sidecar.pid)
    sidecar.pause_reading()
    cancel = sidecar.ask("turn/cancel", chatId="stuck")
    watcher.wait_turn(stuck["sessionId"], stuck["turnId"], timeout=STOP / 2)
    assert highest_rss(sidecar.pid, STOP) - before < GROWTH
    sidecar.resume_reading()
    assert sidecar.result(cancel, timeout=PATIENCE_S)["outcome"] == "cancelled"
    for session, turn in turns:
        assert sidecar.wait_turn(session, turn, timeout=PATIENCE_S)["data"]["reason"] == "end_turn"
        assert streamed_text(sidecar.events(session)) == TEXT


@pytest.mark.slow
def test_chats_go_on_while_nobody_reads(spawn: Spawner) -> None:
    sidecar, watcher = spawn(), spawn()
    turns = start(sidecar)
    sidecar.pause_reading()
    for session, _ in turns:
        watcher.call("chat/open", sessionId=session)
    for session, turn in turns:
        if not [e for e in watcher.journal(session) if e["type"] == "turn.ended"]:
            watcher.wait_turn(session, turn, timeout=PATIENCE_S)
    sidecar.resume_reading()
    for session, turn in turns:
        sidecar.wait_turn(session, turn, timeout=PATIENCE_S)


@pytest.mark.slow
def test_eof_is_noticed_while_nobody_reads(spawn: Spawner) -> None:
    sidecar = spawn()
    start(sidecar)
    sidecar.pause_reading()
    sidecar.close_stdin()
    assert processes.wait_until_gone(sidecar.pid, EXIT_WITHIN)
    sidecar.killed = True  # Nobody read its last words: they may end in the middle.


def test_stdin_is_read_while_nobody_reads_stdout(spawn: Spawner) -> None:
    sidecar = spawn()
    sidecar.pause_reading()
    ids = [sidecar.ask("ping") for _ in range(20_000)]
    sidecar.resume_reading()
    assert all(sidecar.result(id, timeout=PATIENCE_S) for id in ids)


def test_eof_is_noticed_behind_a_wall_of_unread_answers(spawn: Spawner) -> None:
    sidecar = spawn()
    size = len(str(sidecar.call("rpc.discover")))
    sidecar.pause_reading()
    for _ in range(24 * 1024 * 1024 // size):
        sidecar.ask("rpc.discover")
    sidecar.close_stdin()
    assert processes.wait_until_gone(sidecar.pid, EXIT_WITHIN)
    sidecar.killed = True  # Nobody read its last words: they may end in the middle.
