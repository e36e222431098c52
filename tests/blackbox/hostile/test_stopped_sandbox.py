"""A command that stops the first process of its sandbox: its time limit, a cancel and the exit end it all the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sidecar.system.supervisor import LAST_S
from tests.blackbox.work.workbench import Workbench, call, tools
from tests.support.patience import PATIENCE_S
from tests.support.processes import poll_until
from tests.unit.system.sandboxes import needed_box
from tests.unit.system.shapes import Shape, carriers, clear, mentions, new_token
from tests.unit.system.tracing import STOPPING_FIRST

shapes = pytest.mark.parametrize("shape", STOPPING_FIRST, ids=lambda shape: shape.name)


@pytest.fixture
def token() -> Iterator[str]:
    needed_box()
    token = new_token()
    yield token
    clear(token)


@pytest.mark.sampled(1)
@shapes
def test_the_time_limit_ends_it(bench: Workbench, shape: Shape, token: str) -> None:
    command = call("run_command", command=shape.written(token), timeout_ms=2000)
    sidecar = bench.start([command, "done"])
    ended = sidecar.run("go", chatId="c")
    (item,) = tools(sidecar, ended["sessionId"])
    assert ended["data"]["reason"] == "end_turn"
    assert "ptrace:" not in item["output"]["text"]
    assert mentions(token) == set()


@pytest.mark.sampled(1)
@shapes
@pytest.mark.parametrize("by", ["cancel", "exit", "kill"])
def test_a_cancel_the_exit_and_a_killed_sidecar_end_it(
    bench: Workbench, shape: Shape, token: str, by: str
) -> None:
    sidecar = bench.start([call("run_command", command=shape.written(token)), "done"])
    sent = sidecar.say("go", chatId="c")
    assert poll_until(lambda: len(carriers(token)) >= shape.processes, PATIENCE_S)
    if by == "cancel":
        sidecar.call("turn/cancel", chatId="c")
        assert sidecar.wait_turn(sent["sessionId"], sent["turnId"])["data"]["reason"] == "cancelled"
    elif by == "exit":
        sidecar.close_stdin()
        sidecar.wait()
    else:
        sidecar.kill()
    # The supervisor gives up after `LAST_S`: what is only then gone was not ended by it.
    assert poll_until(lambda: not mentions(token), LAST_S / 2)
