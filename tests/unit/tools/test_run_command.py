"""`run_command` from the call to the outcome: what comes back, what is shown, what is refused."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest

from sidecar.model.failures import Refused
from sidecar.system import redact, sandbox
from sidecar.system.process_tree import READ_BYTES
from sidecar.tools.base import Confinement, Intent, ToolError, ToolInput, ToolOutcome
from sidecar.tools.shell.run_command import MAX_COMMAND, RunCommand
from sidecar.tools.shell.runner import Runner
from sidecar.tools.shell.transcript import MAX_KEPT_BYTES, MAX_SHORT_BYTES, Transcript
from sidecar.workspace.paths import Workspace
from tests.support.patience import PATIENCE_S
from tests.support.processes import poll_until, rss_bytes
from tests.unit.system.shapes import carriers, clear, mentions, new_token
from tests.unit.tools.context import FolderContext, carry_out

OFF = Confinement(False, 'the settings switch it off (sandbox = "off")', "switched_off")
NOT_BOXED = "not sandboxed]"
Mode = Literal["auto", "off"]
BOXED = "in the sandbox: no network, only the project is writable]"


@pytest.fixture
def context(tmp_path: Path) -> FolderContext:
    (tmp_path / "project/sub").mkdir(parents=True)
    return FolderContext(Workspace(str(tmp_path / "project")), call_key="s1/t1/c1")


@pytest.fixture(params=["auto", "off"])
def mode(request: pytest.FixtureRequest) -> Mode:
    if request.param == "auto":
        needs_bubblewrap()
    return "auto" if request.param == "auto" else "off"


def needs_bubblewrap() -> None:
    if sandbox.detect() is None:
        pytest.skip("bubblewrap does not work here")


async def ran(context: FolderContext, command: str, mode: Mode = "off", **input: Any) -> ToolOutcome:
    return await carry_out(RunCommand(Runner(mode, os.environ)), {"command": command, **input}, context)


@pytest.mark.parametrize(
    ("command", "text", "code"),
    [
        ("echo hello", f"hello\n[exit code 0; {NOT_BOXED}", 0),
        ("printf hello", f"hello\n[exit code 0; {NOT_BOXED}", 0),
        ("true", f"[exit code 0; {NOT_BOXED}", 0),
        ("echo no; exit 3", f"no\n[exit code 3; {NOT_BOXED}", 3),
        ("kill -TERM $$", f"[exit code 143; {NOT_BOXED}", 143),
        ("kill -KILL $$", f"[exit code 137; {NOT_BOXED}", 137),
        ("echo one; echo two >&2; echo three", f"one\ntwo\nthree\n[exit code 0; {NOT_BOXED}", 0),
        ("read line; echo got $?", f"got 1\n[exit code 0; {NOT_BOXED}", 0),
        ("exec >&- 2>&-; exit 5", f"[exit code 5; {NOT_BOXED}", 5),
        (
            "sleep 1000 & echo out",
            f"out\n[exit code 0; 1 background process was ended with it; {NOT_BOXED}",
            0,
        ),
        ("set -o pipefail; yes | head -1", f"y\n[exit code 141; {NOT_BOXED}", 141),
    ],
)
async def test_the_outcome_is_the_output_and_how_it_ended(
    context: FolderContext, command: str, text: str, code: int
) -> None:
    assert await ran(context, command) == ToolOutcome(text, failed=code != 0, exit_code=code)
    assert "".join(context.shown).splitlines() == text.splitlines()[:-1]


async def test_it_says_that_it_ran_in_the_sandbox(context: FolderContext) -> None:
    needs_bubblewrap()
    outcome = await ran(context, "echo hello; exit 4", "auto")
    assert outcome == ToolOutcome(f"hello\n[exit code 4; {BOXED}", failed=True, exit_code=4)


async def test_in_the_sandbox_the_project_can_be_changed_and_its_parent_not(
    context: FolderContext, tmp_path: Path
) -> None:
    needs_bubblewrap()
    await ran(context, "touch here ../../there", "auto", cwd="sub")
    assert [os.listdir(path) for path in (tmp_path, tmp_path / "project/sub")] == [["project"], ["here"]]


@pytest.mark.sampled(1)
async def test_the_time_limit_kills_it_and_is_told(context: FolderContext, mode: Mode) -> None:
    token = new_token()
    outcome = await ran(context, f"setsid sleep {token} & echo begun; wait", mode, timeout_ms=1500)
    ending = BOXED if mode == "auto" else NOT_BOXED
    assert outcome.text == f"begun\n[killed: the time limit of 1.5 s was over; {ending}"
    assert (outcome.failed, mentions(token)) == (True, set())


async def test_it_may_clean_up_before_it_is_killed(context: FolderContext, mode: Mode) -> None:
    script = "trap 'echo cleaned; exit' TERM; sleep 1000 & wait"
    for _ in range(5):  # a machine that is busy may need longer than it is given
        if "cleaned\n" in (await ran(context, script, mode, timeout_ms=500)).text:
            break
    else:
        pytest.fail("it was killed without being asked to end")


async def test_a_cancelled_call_leaves_no_process(context: FolderContext, mode: Mode) -> None:
    token = new_token()
    up = lambda: bool(carriers(token))  # noqa: E731
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ran, context, f"trap '' TERM; env -i setsid sleep {token}; wait", mode)
            assert await anyio.to_thread.run_sync(poll_until, up, PATIENCE_S)
            tasks.cancel_scope.cancel()
        assert mentions(token) == set()
    finally:
        clear(token)


async def test_leave_is_asked_for_the_exact_command_and_its_folder(context: FolderContext) -> None:
    tool = RunCommand(Runner("off", os.environ))
    ready = await tool.prepare(ToolInput({"command": "make  test\n", "cwd": "./sub/../sub"}), context)
    assert ready.intent == Intent("run", "make  test\n", folder="sub", sandbox=OFF)
    assert (tool.runs_alone, tool.kind, context.shown) == (True, "execute", [])


async def test_it_runs_in_the_folder_that_was_asked_for(
    context: FolderContext, tmp_path: Path, mode: Mode
) -> None:
    outcome = await ran(context, "pwd -P; echo $PWD", mode, cwd="sub")
    assert outcome.text.splitlines()[:2] == [str(tmp_path / "project/sub")] * 2


@pytest.mark.parametrize(
    "cwd", ["..", "/", "/etc", "sub/../..", "link", "missing", "file", "a\0b", "x" * 5000]
)
async def test_a_folder_outside_is_refused(context: FolderContext, tmp_path: Path, cwd: str) -> None:
    os.symlink("/etc", tmp_path / "project/link")
    open(tmp_path / "project/file", "w").close()  # noqa: ASYNC230
    with pytest.raises(Refused):
        await RunCommand(Runner("off", os.environ)).prepare(
            ToolInput({"command": "pwd", "cwd": cwd}), context
        )


async def test_a_folder_that_becomes_a_link_after_leave_was_given_runs_nothing(
    context: FolderContext, tmp_path: Path, mode: Mode
) -> None:
    ready = await RunCommand(Runner(mode, os.environ)).prepare(
        ToolInput({"command": "touch ran", "cwd": "sub"}), context
    )
    (tmp_path / "outside").mkdir()
    (tmp_path / "project/sub").rmdir()
    (tmp_path / "project/sub").symlink_to("../outside")
    with pytest.raises(Refused):
        await ready.run()
    assert os.listdir(tmp_path / "outside") == []


@pytest.mark.parametrize(
    ("input", "words"),
    [
        ({}, "`command` must be text."),
        ({"command": ""}, "`command` must be text."),
        ({"command": ["ls"]}, "`command` must be text."),
        ({"command": "a\0b"}, "`command` must not contain a NUL character."),
        ({"command": "\ud800"}, "`command` has characters that are no text."),
        ({"command": "x" * (MAX_COMMAND + 1)}, "`command` is longer than 65536 bytes. Write a script"),
        ({"command": "ls", "timeout_ms": 0}, "`timeout_ms` must be a whole number from 1."),
        ({"command": "ls", "timeout_ms": 600_001}, "`timeout_ms` must be at most 600000."),
        ({"command": "ls", "timeout_ms": "5"}, "`timeout_ms` must be a whole number from 1."),
        ({"command": "ls", "cwd": 5}, "`cwd` must be text."),
    ],
)
async def test_wrong_parameters_are_told(context: FolderContext, input: dict[str, Any], words: str) -> None:
    with pytest.raises(ToolError) as caught:
        await RunCommand(Runner("off", os.environ)).prepare(ToolInput(input), context)
    assert str(caught.value).startswith(words)


async def test_the_longest_command_runs(context: FolderContext) -> None:
    outcome = await ran(context, "true " + "x" * (MAX_COMMAND - 5))
    assert outcome.exit_code == 0


async def test_where_a_sandbox_is_required_and_missing_nothing_runs(
    context: FolderContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    sandbox.detect.cache_clear()
    try:
        with pytest.raises(ToolError, match="require a sandbox"):
            await RunCommand(Runner("require", os.environ)).prepare(ToolInput({"command": "true"}), context)
        ready = await RunCommand(Runner("auto", os.environ)).prepare(ToolInput({"command": "true"}), context)
        assert (await ready.run()).text.endswith(NOT_BOXED)
    finally:
        sandbox.detect.cache_clear()


async def test_the_command_sees_its_call_but_no_key(context: FolderContext) -> None:
    environ = {**os.environ, "SOME_API_KEY": "k", "SIDECAR_HOME": "/x", "LANG": "C"}
    tool = RunCommand(Runner("off", environ))
    outcome = await carry_out(tool, {"command": "env | grep -E '^(SIDECAR|SOME|LANG)'| sort"}, context)
    assert outcome.text.splitlines()[:-1] == ["LANG=C", "SIDECAR_CALL=s1/t1/c1"]


async def test_a_key_that_a_command_prints_is_hidden(context: FolderContext) -> None:
    redact.add_secrets(["sk-printed-by-a-command"])
    outcome = await ran(context, "echo sk-printed-by''-a-command")
    assert (outcome.text.splitlines()[0], "".join(context.shown)) == ("(hidden)", "(hidden)\n")


async def test_repositories_that_appear_are_told(context: FolderContext) -> None:
    outcome = await ran(context, "mkdir -p .git/hooks; touch .git/hooks/pre-commit")
    assert "it created .git, .git/hooks, by which git can run programs" in outcome.text


async def test_characters_that_are_cut_by_a_read_are_shown_whole(context: FolderContext) -> None:
    await ran(context, "yes aä€😀 | head -c 110000")
    assert "".join(context.shown) == "aä€😀\n" * 10_000
    assert len(context.shown) > 6


async def test_bytes_that_are_no_text_are_replaced(context: FolderContext) -> None:
    outcome = await ran(context, "printf 'a\\xff\\x00b\\xf0\\x9f'")
    assert outcome.text.splitlines()[0] == "a\ufffd\ufffdb\ufffd"
    await ran(context, "head -c 100000 /dev/urandom")
    assert all(len(piece.encode(errors="strict")) <= 3 * READ_BYTES for piece in context.shown)


async def test_small_writes_are_shown_together_and_large_ones_in_pieces(context: FolderContext) -> None:
    await ran(context, "for n in {1..2000}; do echo $n; done")
    assert len(context.shown) < 200
    context.shown.clear()
    await ran(context, "head -c 1000000 /dev/zero | tr '\\0' x")
    assert "".join(context.shown) == "x" * 1_000_000
    assert max(map(len, context.shown)) <= READ_BYTES


async def test_a_long_output_comes_as_its_beginning_and_end_and_whole_beside_it(
    context: FolderContext,
) -> None:
    outcome = await ran(context, "seq 100000")
    lines = outcome.text.splitlines()
    output = "".join(f"{n}\n" for n in range(1, 100_001))
    head, gap, tail = outcome.text.partition("[… ")
    left_out = int(gap and tail.split()[0])
    kept = len(head.rstrip("\n")) + len(tail[tail.index("\n") + 1 : tail.rindex("[")])
    assert (lines[0], lines[-2]) == ("1", "100000")
    assert MAX_SHORT_BYTES - 100 < len(outcome.text) < MAX_SHORT_BYTES + 200
    assert left_out == pytest.approx(len(output) - kept, abs=1)
    assert outcome.whole == f"{output}[exit code 0; {NOT_BOXED}"


async def test_a_flood_is_read_to_its_end_in_bounded_memory(context: FolderContext) -> None:
    before = rss_bytes(os.getpid())
    outcome = await ran(context, "yes flood | head -c 49999998; echo the end")
    assert outcome.exit_code == 0
    assert outcome.text.splitlines()[-2] == "the end"
    assert outcome.whole
    assert len(outcome.whole) < MAX_KEPT_BYTES + MAX_SHORT_BYTES // 2 + 200
    assert f"[… {49_999_998 + 8 - MAX_KEPT_BYTES - MAX_SHORT_BYTES // 2} bytes left out …]" in outcome.whole
    assert outcome.whole.splitlines()[-2] == "the end"
    assert len("".join(context.shown)) == MAX_KEPT_BYTES
    assert rss_bytes(os.getpid()) - before < 8 * MAX_KEPT_BYTES


@pytest.mark.parametrize("seed", range(20))
def test_however_the_bytes_are_cut_the_text_is_the_same(seed: int) -> None:
    chance = random.Random(seed)
    data = "".join(chance.choice("aä€😀\n") for _ in range(20_000)).encode() + bytes(chance.randbytes(50))
    whole, cut, shown, at = Transcript(), Transcript(), "", 0
    expected = whole.add(data, final=True)
    while at < len(data):
        step = chance.randrange(1, 4000)
        shown += cut.add(data[at : at + step])
        at += step
    shown += cut.add(b"", final=True)
    assert shown == expected
    assert (cut.short(), cut.whole(), cut.size) == (whole.short(), whole.whole(), whole.size)


def test_the_title_is_one_short_line() -> None:
    tool = RunCommand(Runner("off", {}))
    assert tool.title(ToolInput({"command": "make\n  test"})) == "Run make test"
    assert len(tool.title(ToolInput({"command": "x" * 1000}))) < 90
    assert tool.title(ToolInput({"command": 5})) == "Run 5"
