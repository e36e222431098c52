"""Nothing that a command starts outlives it: not its end, not a cancel, not the death of the sidecar."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from sidecar.system import process_tree, redact, sandbox, supervisor
from sidecar.system.process_tree import MARK_VARIABLE, SupervisedProcess, kill_all, reap_orphans
from tests.support.patience import PATIENCE_S
from tests.support.processes import is_running, poll_until
from tests.unit.system.shapes import (
    CATCHING,
    LEAVING,
    PYTHON,
    SHAPES,
    Shape,
    carriers,
    clear,
    mentions,
    new_token,
    survivors,
)

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are found by /proc")

BASH = "/bin/bash"


def shapes(chosen: list[Shape]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("shape", chosen, ids=[shape.name for shape in chosen])


@pytest.fixture
def token() -> Iterator[str]:
    token = new_token()
    yield token
    clear(token)


@pytest.fixture(params=["plain", "sandboxed"])
def boxed(request: pytest.FixtureRequest) -> bool:
    if request.param == "sandboxed" and sandbox.detect() is None:
        pytest.skip("bubblewrap does not work here")
    return bool(request.param == "sandboxed")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    yield descriptor
    os.close(descriptor)


@asynccontextmanager
async def started(script: str, folder: int, *, boxed: bool = False) -> AsyncIterator[SupervisedProcess]:
    argv, wrappers = [BASH, "-c", script], 0
    if boxed:
        box = sandbox.detect()
        assert box
        here = process_tree.real_path(folder)
        argv, wrappers = box.wrap(argv, here, (), (), here), sandbox.WRAPPERS
    environ, key = process_tree.clean_environment(os.environ), new_token()
    async with process_tree.running(
        argv, folder=folder, environ=environ, key=key, wrappers=wrappers
    ) as child:
        yield child


def ready(shape: Shape, token: str) -> None:
    """Return when all of the shape's processes are up."""
    assert poll_until(lambda: len(carriers(token)) >= shape.processes, PATIENCE_S)


@pytest.mark.sampled(14)
@shapes(SHAPES)
async def test_a_cancelled_command_leaves_no_process(
    shape: Shape, boxed: bool, token: str, folder: int
) -> None:
    async def run() -> None:
        async with started(shape.written(token), folder, boxed=boxed) as child:
            while await child.read():
                pass
            await child.wait()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await anyio.to_thread.run_sync(ready, shape, token)
        tasks.cancel_scope.cancel()
    assert mentions(token) == set()


@pytest.mark.sampled(8)
@shapes(CATCHING)
def test_every_shape_survives_a_careless_end(shape: Shape, token: str, tmp_path: Path) -> None:
    command = [BASH, "-c", shape.written(token)]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    ) as twin:
        try:
            ready(shape, token)
            assert shape.survives
            shape.survives(twin)
            assert not poll_until(lambda: not mentions(token), supervisor.TERM_WAIT_S)
        finally:
            clear(token)


@pytest.mark.parametrize(
    ("script", "left"),
    [
        ("sleep TOKEN & echo out", 1),
        ("nohup sleep TOKEN >/dev/null 2>&1 & sleep TOKEN & echo out", 2),
        ("setsid -f sleep TOKEN >/dev/null 2>&1; echo out", 1),
        ("env -i setsid -f sleep TOKEN; echo out", 1),
        ("yes TOKEN >/dev/null & disown; echo out", 1),
    ],
)
async def test_what_a_finished_command_left_behind_is_ended_and_counted(
    script: str, left: int, token: str, folder: int
) -> None:
    async with started(script.replace("TOKEN", token), folder) as child:
        assert await child.read() == b"out\n"
        assert await child.read() == b""
        assert await child.wait() == 0
    assert (child.left_behind, mentions(token)) == (left, set())


async def test_the_background_ends_with_the_command(token: str, folder: int, boxed: bool) -> None:
    async with started(f"setsid -f sleep {token}; echo out", folder, boxed=boxed) as child:
        assert (await child.read(), await child.read(), await child.wait()) == (b"out\n", b"", 0)
    assert mentions(token) == set()


_SIDECAR = """
import anyio, os, sys
from sidecar.system import process_tree, sandbox
argv, wrappers = ["/bin/bash", "-c", sys.argv[1]], 0
if sys.argv[2] == "boxed":
    argv, wrappers = sandbox.detect().wrap(argv, os.getcwd(), (), (), os.getcwd()), sandbox.WRAPPERS
async def main():
    folder = os.open(".", os.O_RDONLY)
    running = process_tree.running(argv, folder=folder, environ=os.environ, key="k", wrappers=wrappers)
    async with running as child:
        while await child.read():
            pass
        await child.wait()
anyio.run(main)
"""


@pytest.mark.sampled(2)
@shapes(LEAVING)
def test_a_sidecar_that_is_killed_takes_its_commands_with_it(
    shape: Shape, boxed: bool, token: str, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", _SIDECAR, shape.written(token), "boxed" if boxed else "plain"]
    with subprocess.Popen(command, cwd=tmp_path) as sidecar:
        ready(shape, token)
        sidecar.kill()
    assert poll_until(lambda: not mentions(token), PATIENCE_S)


async def test_all_are_ended_on_the_way_out_without_a_loop(token: str, folder: int) -> None:
    shape = Shape("", "trap '' TERM; setsid sleep TOKEN & sleep TOKEN; wait", None, 2)
    async with started(shape.written(token), folder), started(shape.written(token), folder):
        await anyio.to_thread.run_sync(ready, Shape("", "", None, 4), token)
        kill_all()
        assert mentions(token) == set()


def test_what_carries_a_call_is_found_and_ended_by_its_key_alone(token: str) -> None:
    for key in (token, token + "0"):
        environ = {**os.environ, MARK_VARIABLE: key}
        subprocess.Popen(["setsid", "-f", "sleep", token], env=environ).wait(PATIENCE_S)
    assert poll_until(lambda: len(carriers(token)) == 2, PATIENCE_S)
    assert (reap_orphans([token]), survivors(token), len(survivors(token + "0"))) == (1, set(), 1)


def test_the_parts_of_a_call_are_reaped_with_it_and_each_by_itself(token: str) -> None:
    marks = [f"{token}/1", f"{token}/10", token]
    sleepers = [
        subprocess.Popen(["/bin/sleep", token], env={MARK_VARIABLE: mark}, start_new_session=True)
        for mark in marks
    ]
    try:
        # The kernel shows a new program's environment a moment after it has started.
        assert poll_until(lambda: [len(survivors(mark)) for mark in marks] == [1, 1, 3], PATIENCE_S)
        assert (reap_orphans([f"{token}/1"]), survivors(token)) == (1, {sleepers[1].pid, sleepers[2].pid})
        assert (reap_orphans([token]), survivors(token)) == (2, set())
    finally:
        for sleeper in sleepers:
            sleeper.kill()
            sleeper.wait()


async def test_a_process_whose_first_thread_has_ended_is_ended_too(folder: int) -> None:
    script = f"""setsid {PYTHON} -S -c '
import ctypes, os, threading, time
threading.Thread(target=time.sleep, args=(1000,)).start()
print(os.getpid(), flush=True)
ctypes.CDLL(None).pthread_exit(None)
' & wait"""
    async with started(script, folder) as child:
        pid = int(await child.read())
        assert poll_until(lambda: not is_running(pid), PATIENCE_S)  # which looks at the first thread alone
    assert str(pid) not in os.listdir("/proc")


async def test_the_environment_has_no_secrets_and_nothing_of_ours() -> None:
    redact.add_secrets(["known-to-the-sidecar"])
    given = {
        "PATH": "/bin",
        "LANG": "C.UTF-8",
        "OPENAI_API_KEY": "a",
        "github_token": "b",
        "DB_PASSWORD": "c",
        "AWS_CREDENTIALS": "d",
        "CLIENT_SECRET_FILE": "e",
        "HARMLESS": "holds known-to-the-sidecar inside",
        "DATABASE_URL": "postgres://me:pass@host/db",
        "HOMEPAGE": "https://example.org/a:b@c",
        "SIDECAR_CONFIG": "f",
        "OLDPWD": "/elsewhere",
    }
    quiet = {"GIT_TERMINAL_PROMPT": "0", "GIT_PAGER": "cat", "PAGER": "cat", "TERM": "dumb", "NO_COLOR": "1"}
    kept = {name: given[name] for name in ("PATH", "LANG", "HOMEPAGE")}
    assert process_tree.clean_environment(given) == kept | quiet


async def test_a_command_has_no_input_and_no_descriptors_but_its_streams(folder: int) -> None:
    async with started("cat; cd /proc/$$/fd; for n in {0..40}; do readlink $n; done", folder) as child:
        said = (await child.read()).decode()
    assert re.sub(r"\d{2,}", "N", said) == "/dev/null\npipe:[N]\npipe:[N]\n"


async def test_a_command_runs_in_the_folder_of_the_descriptor_whatever_its_name_is(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    descriptor = os.open(tmp_path / "one", os.O_RDONLY)
    try:
        (tmp_path / "one").rename(tmp_path / "two")
        (tmp_path / "one").mkdir()
        async with started("pwd; echo $PWD", descriptor) as child:
            assert (await child.read()).decode().split() == [str(tmp_path / "two")] * 2
    finally:
        os.close(descriptor)


async def test_a_folder_that_is_gone_runs_nothing(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    descriptor = os.open(tmp_path / "gone", os.O_RDONLY)
    (tmp_path / "gone").rmdir()
    try:
        with pytest.raises(FileNotFoundError, match="gone"):
            async with started("echo ran", descriptor):
                pass
    finally:
        os.close(descriptor)


async def test_no_descriptor_is_left_open(folder: int) -> None:
    before = os.listdir("/proc/self/fd")
    for script in ("true", "exec >&- 2>&-", "kill -KILL $PPID", "sleep 1000 &"):
        async with started(script, folder) as child:
            while await child.read():
                pass
    assert os.listdir("/proc/self/fd") == before


async def test_a_program_that_is_not_there_is_told_and_has_a_code(folder: int) -> None:
    async with process_tree.running(["/no/such"], folder=folder, environ=os.environ, key="k") as child:
        said = await child.read()
        code = await child.wait()
    assert (said, code) == (b"/no/such cannot be run: No such file or directory\n", 127)
