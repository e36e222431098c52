"""A command that stops what should end it ends all the same, and within the bounds of any other."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from sidecar.system import process_tree
from tests.unit.system.sandboxes import needed_box
from tests.unit.system.shapes import Shape, clear, mentions, new_token
from tests.unit.system.test_process_tree import ready, started
from tests.unit.system.tracing import STOPPING_FIRST, STOPPING_PARENT

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ptrace as on Linux")

SPARE_S = 3.0
"""Beyond the program's own bounds, for a machine that is busy with other work."""


@pytest.fixture
def token() -> Iterator[str]:
    token = new_token()
    yield token
    clear(token)


async def end_after_start(shape: Shape, token: str, folder: Path, *, boxed: bool) -> float:
    """Start the command, wait until it has stopped what it can, and return how long its end took."""
    descriptor = os.open(folder, os.O_RDONLY)
    script = shape.written(token)
    try:
        async with started(script if boxed else f"exec {script}", descriptor, boxed=boxed):
            await anyio.to_thread.run_sync(ready, shape, token)
            began = time.monotonic()
    finally:
        os.close(descriptor)
    return time.monotonic() - began


@pytest.mark.parametrize("shape", STOPPING_FIRST, ids=lambda shape: shape.name)
async def test_a_stopped_sandbox_ends_within_the_bound(shape: Shape, token: str, tmp_path: Path) -> None:
    needed_box()
    took = await end_after_start(shape, token, tmp_path, boxed=True)
    assert mentions(token) == set()
    assert took < process_tree.SUPERVISOR_S + 2 * process_tree.SWEEP_S + SPARE_S


@pytest.mark.parametrize("shape", STOPPING_PARENT, ids=lambda shape: shape.name)
async def test_a_traced_supervisor_ends_within_the_bound(shape: Shape, token: str, tmp_path: Path) -> None:
    took = await end_after_start(shape, token, tmp_path, boxed=False)
    assert mentions(token) == set()
    assert took < process_tree.SUPERVISOR_S + 2 * process_tree.SWEEP_S + SPARE_S
