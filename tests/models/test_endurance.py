"""A sidecar that runs all day: after many turns it holds no more memory, files and threads than after the first."""

from __future__ import annotations

import sys

import pytest

from benchmarks import endurance

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
