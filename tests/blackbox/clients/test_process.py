"""The child process: started, heard, and always gone afterwards."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest
from sidecar_client import Sidecar, SidecarDied, connection, process

from tests.support.patience import PATIENCE_S

STUB = os.path.join(os.path.dirname(__file__), "stub.py")


@asynccontextmanager
async def stub(manner: str, log: list[str] | None = None) -> AsyncIterator[Sidecar]:
    with anyio.fail_after(PATIENCE_S):
        async with Sidecar.spawn(
            [sys.executable, STUB, manner], log=None if log is None else log.append
        ) as app:
            yield app


def is_alive(pid: int | None) -> bool:
    assert pid is not None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_frame_far_over_64_kib_is_read_whole() -> None:
    async with stub("plain") as app:
        assert len((await app.call("later/method"))["text"]) == 200_000


async def test_no_process_is_left_behind() -> None:
    async with stub("plain") as app:
        pid = app.pid
        assert is_alive(pid)
    assert not is_alive(pid)


async def test_a_process_that_does_not_leave_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "STEP_SECONDS", 0.1)
    monkeypatch.setattr(connection, "LEAVE_SECONDS", 0.1)
    async with stub("stubborn") as app:
        pid = app.pid
    assert not is_alive(pid)


async def test_cancelling_the_app_leaves_no_process_either() -> None:
    pid = None
    with anyio.CancelScope() as scope:
        async with stub("plain") as app:
            pid = app.pid
            scope.cancel()
            await anyio.sleep_forever()
    assert not is_alive(pid)


async def test_a_program_that_fails_at_once_is_quoted() -> None:
    with pytest.raises(SidecarDied, match="exit code 3") as caught:
        async with stub("crash"):
            pass
    assert (caught.value.exit_code, caught.value.stderr) == (3, "Traceback: no such table\n")


async def test_a_program_that_is_not_there_is_named() -> None:
    with pytest.raises(SidecarDied, match="Could not start /no/such/sidecar: No such file"):
        async with Sidecar.spawn(["/no/such/sidecar"]):
            pass


async def test_a_chatty_stderr_is_drained_and_its_lines_are_passed_on() -> None:
    log: list[str] = []
    async with stub("chatty", log) as app:
        await app.call("later/method")
    assert [len(line) for line in log] == [process.TAIL_BYTES, 9]


async def test_variables_say_where_the_data_is() -> None:
    show = "import os, sys; sys.stderr.write(os.environ['SIDECAR_DATA_DIR'] + os.environ['SIDECAR_MODEL'])"
    with pytest.raises(SidecarDied) as caught:
        async with Sidecar.spawn([sys.executable, "-c", show], data_dir="/data", model="echo:"):
            pass
    assert caught.value.stderr == "/dataecho:"
