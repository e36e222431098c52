"""The black boxes would notice: each fault that a proxy adds to a sidecar is caught at the end of its test."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.support import processes, twin
from tests.support.spawner import COMMAND, Spawner


def talk(tmp_path: Path, fault: str) -> None:
    """One prompt and its answer with the twin in between, and the account settled."""
    spawner = Spawner(tmp_path, [sys.executable, twin.__file__, fault, *COMMAND])
    try:
        spawner().run("hello there", chatId="c")
    finally:
        spawner.settle()


def test_a_faithful_twin_passes(tmp_path: Path) -> None:
    talk(tmp_path, "none")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("fault", twin.FAULTS)
def test_a_broken_twin_is_caught(tmp_path: Path, fault: str) -> None:
    with pytest.raises(AssertionError):
        talk(tmp_path, fault)
    for pid in _leftovers(tmp_path):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _leftovers(tmp_path: Path) -> set[int]:
    """Whatever the twin left behind, found by the home that the spawner gave it."""
    return {
        pid
        for pid in processes.pids_with_variable("HOME", str(tmp_path / "home"))
        if processes.is_running(pid)
    }
