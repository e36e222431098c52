"""Servers that do not start, break, lie, hang or never stop talking, and what is reported of them."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from sidecar.system.lazy import lazy_module
from sidecar.tools.mcp import calls, connection, pace, parse_servers, stdio
from tests.support.patience import PATIENCE_S
from tests.unit.tools.mcp.mounting import Mount, plain, processes, token_of


async def test_a_server_that_crashes_in_a_call_fails_it_in_words_and_works_again(mount: Mount) -> None:
    tools = await mount.tools(plain())
    outcome = await mount.call(tools["mcp__plain__crash"])

    assert outcome.failed
    assert "lost in the middle of crash: its process ended with code 3; its last words:" in outcome.text
    assert "the disk is on fire" in outcome.text
    assert len(outcome.text) < 6000
    assert (await mount.call(tools["mcp__plain__echo"], x=1)).text == '{"x": 1}'
    assert [state["state"] for state in mount.told] == ["starting", "ready", "retrying", "ready"]


async def test_calls_beside_the_one_that_crashes_are_told_as_well(mount: Mount) -> None:
    tools = await mount.tools(plain())
    texts: list[str] = []

    async def hang() -> None:
        texts.append((await mount.call(tools["mcp__plain__hang"])).text)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hang)
        tasks.start_soon(hang)
        await anyio.wait_all_tasks_blocked()
        await mount.call(tools["mcp__plain__crash"])
    assert [text.partition(":")[0] for text in texts] == [
        "The MCP server 'plain' was lost in the middle of hang"
    ] * 2


async def test_waits_between_attempts_double_up_to_a_minute(
    mount: Mount, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(connection, "FIRST_WAIT_S", 1.0)

    async def record(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 8:
            mount.servers.kill_all()
        await anyio.lowlevel.checkpoint()

    monkeypatch.setattr(anyio, "sleep", record)
    mount.servers.want(parse_servers([{"name": "no", "command": "there-is-no-such-program"}], "mcpServers"))
    state = await mount.reaches("stopped")

    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]
    assert state.attempts == 8


async def test_an_unknown_program_is_told_in_words_and_is_not_silently_absent(mount: Mount) -> None:
    config = parse_servers([{"name": "no", "command": "there-is-no-such-program"}], "mcpServers")[0]

    assert await mount.tools(config) == {}
    state = mount.servers.states([config])[0]
    assert state.state == "failed"
    assert state.error == (
        "there is no program 'there-is-no-such-program'; install it, or give its full path as `command`"
    )


async def test_a_folder_that_is_not_there_and_a_file_that_is_no_program_are_told(
    mount: Mount, tmp_path: Path
) -> None:
    (tmp_path / "text").write_text("hello")
    entries = [
        {"name": "a", "command": "/bin/true", "cwd": str(tmp_path / "gone")},
        {"name": "b", "command": str(tmp_path / "text")},
    ]
    configs = parse_servers(entries, "mcpServers")
    await mount.tools(*configs)

    assert [state.error for state in mount.servers.states()] == [
        f"the folder {tmp_path / 'gone'} (`cwd`) does not exist",
        f"{str(tmp_path / 'text')!r} cannot be started: Permission denied",
    ]


async def test_a_server_that_dies_at_its_start_is_tried_again(mount: Mount, tmp_path: Path) -> None:
    mount.servers.want([plain("dies-once", str(tmp_path / "died"))])
    await mount.reaches("ready")

    assert [state["state"] for state in mount.told] == ["starting", "failed", "ready"]
    assert mount.told[1]["error"] == "its process ended with code 1; its last words: not today"


async def test_nobody_waits_for_a_slow_server_longer_than_he_wants(mount: Mount, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    config = plain("slow", str(gate))
    with anyio.fail_after(PATIENCE_S):
        assert await mount.servers.tools([config], 0.01) == []
    assert mount.servers.states()[0].state == "starting"

    await anyio.to_thread.run_sync(gate.write_bytes, b"", abandon_on_cancel=True)
    assert "mcp__plain__echo" in await mount.tools(config)


async def test_a_server_that_never_answers_fails_after_its_time_with_its_last_words(mount: Mount) -> None:
    mount.servers.want([plain("silent", startTimeoutMs=500)])
    state = await mount.reaches("failed")

    assert state.error == "it was not ready within 0.5 s; its last words: thinking about it"


async def test_a_server_that_prints_garbage_is_told_with_what_it_printed(mount: Mount) -> None:
    config = plain("garbage")
    mount.servers.want([config])
    state = await mount.reaches("failed")

    assert state.error is not None
    assert state.error.startswith(
        "it does not speak MCP on its stdout; it printed what is no MCP message: Welcome!"
    )


async def test_stray_lines_and_many_notifications_do_no_harm(
    mount: Mount, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stdio, "MESSAGES_PER_S", 100_000)
    tools = await mount.tools(plain())

    assert (await mount.call(tools["mcp__plain__chatter"])).text == "said it all"


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("tool", "words"),
    [("flood", "it asks without end"), ("endless", "it sent a message of more than 1 MiB")],
)
async def test_a_server_that_never_stops_talking_is_ended_and_started_again(
    mount: Mount, monkeypatch: pytest.MonkeyPatch, tool: str, words: str
) -> None:
    monkeypatch.setattr(stdio, "MAX_MESSAGE", 1024 * 1024)
    monkeypatch.setattr(stdio, "MESSAGES_PER_S", 100_000)
    tools = await mount.tools(plain())
    outcome = await mount.call(tools[f"mcp__plain__{tool}"])

    assert words in outcome.text
    assert (await mount.call(tools["mcp__plain__echo"])).text == "{}"


async def test_a_cancelled_call_returns_at_once_and_the_server_is_told(mount: Mount, tmp_path: Path) -> None:
    record = tmp_path / "record"
    tools = await mount.tools(plain("", str(record)))
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(mount.call, tools["mcp__plain__hang"])
            await _until_shown(mount)
            scope.cancel()

    assert scope.cancelled_caught
    # The answer to this call comes after the server has read all that was said before it.
    assert (await mount.call(tools["mcp__plain__echo"])).text == "{}"
    called, cancelled = record.read_text().splitlines()
    assert cancelled == called.replace("called", "cancelled")


async def test_a_call_that_takes_too_long_fails_and_the_server_is_told(mount: Mount, tmp_path: Path) -> None:
    record = tmp_path / "record"
    tools = await mount.tools(plain("", str(record), timeoutMs=200))
    outcome = await mount.call(tools["mcp__plain__hang"])

    assert outcome.failed
    assert outcome.text.startswith("plain/hang gave no answer within 0.2 s, and was cancelled.")
    assert (await mount.call(tools["mcp__plain__echo"])).text == "{}"
    assert "cancelled" in record.read_text()


async def test_a_server_with_too_many_calls_is_busy(mount: Mount, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "MAX_CALLS", 1)
    tools = await mount.tools(plain())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(mount.call, tools["mcp__plain__hang"])
        await _until_shown(mount)
        assert (
            await mount.call(tools["mcp__plain__echo"])
        ).text == "The MCP server 'plain' is busy with 1 calls."
        tasks.cancel_scope.cancel()


async def test_more_than_the_limit_waits_for_the_next_second(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def record(until: float) -> None:
        waits.append(until)

    monkeypatch.setattr(anyio, "sleep_until", record)
    limit = pace.RateLimiter(2)
    for _ in range(3):
        await limit.spend()

    assert len(waits) == 1


async def test_a_tool_of_a_server_that_is_gone_for_good_says_why(mount: Mount, tmp_path: Path) -> None:
    program = tmp_path / "server"
    config = plain()
    program.symlink_to(config.command or "")
    entry = {"name": "plain", "command": str(program), "args": list(config.args)}
    tools = await mount.tools(*parse_servers([entry], "mcpServers"))
    program.unlink()
    await mount.call(tools["mcp__plain__crash"])
    await mount.reaches("failed")

    outcome = await mount.call(tools["mcp__plain__echo"])
    assert outcome.failed
    assert outcome.text.startswith("The MCP server 'plain' is not running: there is no program")


async def test_a_server_that_nobody_wants_any_more_is_ended_and_started_when_somebody_does(
    mount: Mount, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "IDLE_S", 0.05)
    config = plain()
    mount.servers.want([config])
    await mount.reaches("stopped")
    assert processes(token_of(config)) == set()

    monkeypatch.setattr(connection, "IDLE_S", 60.0)
    assert "mcp__plain__echo" in await mount.tools(config)


async def _until_shown(mount: Mount) -> None:
    with anyio.fail_after(PATIENCE_S):
        while not mount.context.shown:
            await anyio.lowlevel.checkpoint()


async def test_an_sdk_that_cannot_be_imported_fails_the_server_alone(
    mount: Mount, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "sdk", lazy_module("sidecar.tools.mcp.no_such_module"))

    mount.servers.want([plain()])
    state = await mount.reaches("failed")

    assert state.error == (
        "the MCP SDK cannot be imported (ModuleNotFoundError: No module named 'sidecar.tools.mcp.no_such_module');"
        " install chat-sidecar again"
    )
