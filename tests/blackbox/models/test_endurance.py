"""A sidecar that runs all day: after many turns it holds no more memory, files and threads than after the first."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks import endurance
from sidecar.fake_provider import FakeProvider
from tests.support.spawner import Spawner

TURNS = 800


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_many_turns_leave_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endurance, "TURNS_A_CHAT", 40)
    result = endurance.run(TURNS, "openai", every=200)

    assert result.reasons == {
        "end_turn": TURNS * 6 // 10,
        "error": TURNS * 3 // 10,
        "cancelled": TURNS // 10,
    }
    assert result.troubles == [], result.samples


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_a_closed_chat_gives_its_memory_back(fake: FakeProvider, spawn: Spawner) -> None:
    sidecar = spawn(model="openai:fake", env=fake.env)
    used: list[int] = []
    for number in range(60):
        sidecar.run("[[big=250000]]", chatId=f"c{number}")
        sidecar.call("chat/close", chatId=f"c{number}")
        status = Path(f"/proc/{sidecar.pid}/status").read_text()
        used.append(int(status.partition("VmRSS:")[2].split()[0]))

    assert used[-1] - used[20] < 5_000, "kilobytes, of forty closed chats"
