"""`run_batch` from the call to the outcome: side by side, each by itself, within one time."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from sidecar.model import JsonObject
from sidecar.tools.base import Intent, ToolError, ToolInput, ToolOutcome
from sidecar.tools.shell.run_batch import MAX_COMMANDS, MAX_OUTPUT_BYTES, RunBatch
from sidecar.tools.shell.runner import Runner
from tests.support.patience import PATIENCE_S
from tests.support.processes import poll_until
from tests.unit.system.shapes import carriers, clear, mentions, new_token
from tests.unit.tools.coding import OFF, hands_in
from tests.unit.tools.context import FolderContext, carry_out


@pytest.fixture
def context(tmp_path: Path) -> FolderContext:
    return hands_in(tmp_path)


def listed(*commands: tuple[str, str]) -> list[dict[str, str]]:
    return [{"label": label, "command": command} for label, command in commands]


async def ran(context: FolderContext, *commands: tuple[str, str], **input: Any) -> ToolOutcome:
    return await carry_out(
        RunBatch(Runner("off", os.environ)), {"commands": listed(*commands), **input}, context
    )


async def test_each_command_is_told_under_its_label_in_order(context: FolderContext) -> None:
    outcome = await ran(
        context, ("slow", "sleep 0.3; echo late"), ("fast", "echo early; exit 3"), ("none", "true")
    )
    assert outcome.text == (
        "## slow: exit code 0; 5 bytes\nlate\n## fast: exit code 3; 6 bytes\nearly\n"
        "## none: exit code 0; 0 bytes\n[not sandboxed]"
    )
    assert (outcome.failed, "".join(context.shown)) == (True, "── fast ──\nearly\n── slow ──\nlate\n")


async def test_they_run_side_by_side(context: FolderContext) -> None:
    """Each waits for the file of the other, so that one after the other would never end."""
    meet = "touch {0}; until [ -e {1} ]; do sleep 0.01; done; echo met"
    commands = (("a", meet.format("a", "b")), ("b", meet.format("b", "a")))
    outcome = await ran(context, *commands, concurrency=2, timeout_ms=20_000)
    assert outcome.text.count("\nmet\n") == 2


@pytest.mark.slow
async def test_no_more_than_asked_for_run_at_once(context: FolderContext) -> None:
    step = "mkdir running || echo two at once; sleep {}; rmdir running"
    outcome = await ran(context, *((str(n), step.format(0.05)) for n in range(4)), concurrency=1)
    assert "two at once" not in outcome.text
    crowd = await ran(context, *((str(n), step.format(1)) for n in range(4)), concurrency=4)
    assert "two at once" in crowd.text


async def test_the_time_is_for_all_and_what_was_not_begun_is_told(context: FolderContext) -> None:
    token = new_token()
    commands = (("first", "echo 1"), ("hangs", f"exec sleep {token}"), ("late", "touch late"))
    outcome = await ran(context, *commands, concurrency=1, timeout_ms=1000)
    assert "## first: exit code 0" in outcome.text
    assert "## hangs: killed: the time limit of " in outcome.text
    assert "## late: Not run: the time was over." in outcome.text
    assert (outcome.failed, mentions(token), os.listdir(context.workspace.root)) == (True, set(), [])


async def test_what_got_no_leave_is_told_and_not_run(context: FolderContext) -> None:
    context.refused[0] = "Denied: so it is."
    outcome = await ran(context, ("a", "touch a"), ("b", "touch b"))
    assert outcome.text.startswith("## a: Denied: so it is.\n## b: exit code 0")
    assert os.listdir(context.workspace.root) == ["b"]


async def test_leave_is_asked_for_each_command(context: FolderContext) -> None:
    input: JsonObject = {"commands": listed(("a", "make"), ("b", "make test"))}
    ready = await RunBatch(Runner("off", os.environ)).prepare(ToolInput(input), context)
    parts = (("a", "make"), ("b", "make test"))
    assert ready.intent == Intent("run", "# a\nmake\n# b\nmake test", folder=".", parts=parts, sandbox=OFF)


async def test_a_cancelled_batch_leaves_no_process(context: FolderContext) -> None:
    token = new_token()
    commands = [(str(n), f"trap '' TERM; env -i setsid sleep {token}; wait") for n in range(3)]
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: ran(context, *commands))
            assert await anyio.to_thread.run_sync(poll_until, lambda: len(carriers(token)) == 3, PATIENCE_S)
            tasks.cancel_scope.cancel()
        assert mentions(token) == set()
    finally:
        clear(token)


@pytest.mark.slow
async def test_one_that_kills_its_keeper_takes_no_other_with_it(context: FolderContext) -> None:
    outcome = await ran(
        context, ("kills", "sleep 1000 & kill -KILL $PPID; wait"), ("stays", "sleep 1.5; echo here")
    )
    assert "## kills: killed by the command itself or from outside" in outcome.text
    assert "## stays: exit code 0; 5 bytes\nhere" in outcome.text


async def test_floods_are_bounded_each_and_come_by_their_ends(context: FolderContext) -> None:
    flood = f"yes flood | head -c {2 * MAX_OUTPUT_BYTES}; echo; echo the end"
    outcome = await ran(context, *((str(n), flood) for n in range(3)))
    assert outcome.text.count("the end\n") == 3
    assert len(outcome.text) < 4000
    assert len("".join(context.shown).replace("── ", "")) < 3 * MAX_OUTPUT_BYTES + 10_000


@pytest.mark.parametrize(
    ("input", "words"),
    [
        ({}, "`commands` must be a list of 1 to 20 commands"),
        ({"commands": []}, "`commands` must be a list of 1 to 20 commands"),
        ({"commands": "ls"}, "`commands` must be a list of 1 to 20 commands"),
        ({"commands": ["ls"]}, "Each of `commands` must have a `label` and a `command`."),
        ({"commands": [{"label": "a"}]}, "`command` must be text."),
        ({"commands": [{"command": "ls"}]}, "`label` must be text."),
        ({"commands": listed((" \n", "ls"))}, "`label` must be a line of 1 to 60 characters."),
        ({"commands": listed(("a" * 61, "ls"))}, "`label` must be a line of 1 to 60 characters."),
        ({"commands": listed(("a\x1b[2J", "ls"))}, "`label` must be a line of 1 to 60 characters."),
        ({"commands": listed(("a", "ls"), (" a ", "ls"))}, "`label`: 'a' names two commands."),
        ({"commands": listed(("a", "l\0s"))}, "`command` must not contain a NUL character."),
        (
            {"commands": listed(*((str(n), "ls") for n in range(MAX_COMMANDS + 1)))},
            "`commands` must be a list of 1 to 20",
        ),
        ({"commands": listed(("a", "ls")), "concurrency": 9}, "`concurrency` must be at most 8."),
        ({"commands": listed(("a", "ls")), "concurrency": 0}, "`concurrency` must be a whole number from 1."),
        ({"commands": listed(("a", "ls")), "queries": []}, "`queries` must be a list of 1 to 8 texts."),
        ({"commands": listed(("a", "ls")), "timeout_ms": 600_001}, "`timeout_ms` must be at most 600000."),
    ],
)
async def test_wrong_parameters_are_told(context: FolderContext, input: dict[str, Any], words: str) -> None:
    with pytest.raises(ToolError) as caught:
        await RunBatch(Runner("off", os.environ)).prepare(ToolInput(input), context)
    assert str(caught.value).startswith(words)


def test_the_title_names_the_labels() -> None:
    tool = RunBatch(Runner("off", {}))
    assert (
        tool.title(ToolInput({"commands": listed(("build", "make"), ("te\nst", "x"))}))
        == "Run 2 commands: build, te st"
    )
    assert tool.title(ToolInput({"commands": 5})) == "Run 0 commands: "
