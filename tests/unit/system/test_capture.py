"""A program whose output is taken: whatever ends it, nothing of it stays open."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio.lowlevel
import pytest

from sidecar.system.capture import capture

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="counts descriptors in /proc")

FLOOD = "yes | head -c 3000000"
SILENCE = "echo hello; sleep 60"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path, os.O_RDONLY)
    yield fd
    os.close(fd)


@pytest.mark.parametrize(("script", "stopped"), [(FLOOD, "size"), (SILENCE, "time"), ("echo hello", None)])
async def test_no_pipe_is_left_open(folder: int, script: str, stopped: str | None) -> None:
    gc.disable()  # it would close what was forgotten, at some time
    try:
        await run(folder, script)
        before = await descriptors()
        ended = [await run(folder, script) for _ in range(5)]
        assert (set(ended), await descriptors()) == ({stopped}, before)
    finally:
        gc.enable()


async def descriptors() -> int:
    for _ in range(5):  # a pipe is closed by the loop, a step later
        await anyio.lowlevel.checkpoint()
    return len(os.listdir("/proc/self/fd"))


async def run(folder: int, script: str) -> str | None:
    seconds = 0.1 if script == SILENCE else 20.0
    command = ["sh", "-c", script]
    done = await capture(command, folder=folder, env=dict(os.environ), seconds=seconds, max_bytes=1000)
    return done.stopped
