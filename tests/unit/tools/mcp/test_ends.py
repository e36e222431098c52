"""The end of servers: nothing of them is left, whatever they do, and it takes a moment."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from sidecar.tools.mcp import ServerConfig, stdio
from tests.support.patience import PATIENCE_S
from tests.support.processes import poll_until
from tests.unit.tools.mcp.mounting import Mount, mounting, plain, processes, token_of


def gone(config: ServerConfig) -> bool:
    return poll_until(lambda: not processes(token_of(config)), PATIENCE_S)


async def test_close_ends_servers_in_order(tmp_path: Path) -> None:
    config = plain()
    async with mounting(tmp_path) as mount:
        await mount.tools(config)
        assert len(processes(token_of(config))) == 1
        await mount.servers.close()

    assert processes(token_of(config)) == set()
    assert mount.told[-1]["state"] == "stopped"


async def test_close_kills_what_does_not_end_and_what_has_left_the_group(tmp_path: Path) -> None:
    config = plain("stubborn")
    async with mounting(tmp_path) as mount:
        tools = await mount.tools(config)
        await mount.call(tools["mcp__plain__leave_the_group"])
        assert len(processes(token_of(config))) == 2

    assert gone(config)


async def test_kill_all_needs_nobody_to_wait(tmp_path: Path) -> None:
    config = plain("stubborn")
    async with mounting(tmp_path) as mount:
        tools = await mount.tools(config)
        await mount.call(tools["mcp__plain__leave_the_group"])
        mount.servers.kill_all()
        assert gone(config)
        mount.servers.want([config])

    assert gone(config)


async def test_a_server_that_is_still_starting_is_ended_too(tmp_path: Path) -> None:
    config = plain("silent")
    async with mounting(tmp_path) as mount:
        mount.servers.want([config])
        with anyio.fail_after(PATIENCE_S):
            while not processes(token_of(config)):
                await anyio.lowlevel.checkpoint()

    assert gone(config)


async def test_a_crashed_server_leaves_none_of_its_children(mount: Mount) -> None:
    config = plain()
    tools = await mount.tools(config)
    await mount.call(tools["mcp__plain__leave_the_group"])
    await mount.call(tools["mcp__plain__crash"])
    await mount.tools(config)

    assert poll_until(lambda: len(processes(token_of(config))) == 1, PATIENCE_S)


async def test_a_task_group_that_is_cancelled_takes_the_servers_with_it(tmp_path: Path) -> None:
    config = plain("stubborn")
    with anyio.CancelScope() as scope:
        async with mounting(tmp_path) as mount:
            await mount.tools(config)
            scope.cancel()
            await anyio.sleep_forever()

    assert gone(config)


async def test_a_call_under_way_is_told_of_the_end(tmp_path: Path) -> None:
    texts: list[str] = []
    async with mounting(tmp_path) as mount, anyio.create_task_group() as tasks:
        tools = await mount.tools(plain())

        async def hang() -> None:
            texts.append((await mount.call(tools["mcp__plain__hang"])).text)

        tasks.start_soon(hang)
        await anyio.wait_all_tasks_blocked()
        await mount.servers.close()

    assert texts[0].startswith("The MCP server 'plain' was lost in the middle of hang")


async def test_a_twin_that_kills_the_group_alone_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = plain("stubborn")
    async with mounting(tmp_path) as mount:
        tools = await mount.tools(config)
        await mount.call(tools["mcp__plain__leave_the_group"])
        monkeypatch.setattr(stdio, "kill_marked", lambda marks: None)
        mount.servers.kill_all()
        assert poll_until(lambda: len(processes(token_of(config))) == 1, PATIENCE_S)
        (left,) = processes(token_of(config))
        os.kill(left, signal.SIGKILL)

    assert gone(config)
