"""What a command in the sandbox may take: processes, memory and temporary files. The tests' own bombs are bounded."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import pytest

from sidecar.system.sandbox import SandboxView
from sidecar.tools.base import ToolOutcome
from sidecar.tools.shell.run_command import RunCommand
from sidecar.tools.shell.runner import Bounds, Runner
from sidecar.workspace.paths import Workspace
from tests.support.patience import PATIENCE_S
from tests.unit.system.sandboxes import ORDINARY, PATH, as_ordinary, folder_of, needed_box, run_boxed
from tests.unit.tools.context import FolderContext, carry_out

MIB = 1024 * 1024
ENVIRON = {"PATH": PATH, "HOME": "/nonexistent"}

FORKS = {
    "many at once": "for i in {1..300}; do sleep 60 & done; wait",
    "each starts two": "f() { [ $1 -gt 0 ] && { f $(($1-1)) & f $(($1-1)) & sleep 60; }; }; f 8",
    "away from their parent": "for i in {1..300}; do setsid -f sleep 60; done; sleep 60",
    "threads": "python3 -c 'import threading as t; [t.Thread(target=t.Event().wait, args=(60,)).start() "
    "for i in range(300)]'",
    "python": "python3 -c 'import os, time; [os.fork() or time.sleep(60) for i in range(300)]; time.sleep(60)'",
}
GROW = (
    "python3 -c 'import time\nx = []\n"
    'for i in range(64): x.append(bytearray(b"1") * 2**22); time.sleep({pause})\n'
    "time.sleep(60)'"
)
MEMORY = {
    "fast": GROW.format(pause=0),
    "slow": GROW.format(pause=0.01),
    "in four processes": "for i in 1 2 3 4; do "
    + GROW.format(pause=0.01).replace("64", "20")
    + " & done; wait",
    "shared": "python3 -c 'import mmap, time\nm = mmap.mmap(-1, 2**28)\nm.write(b\"1\" * 2**28)\ntime.sleep(60)'",
    "after the parent ended": f"setsid -f {GROW.format(pause=0)}; sleep 60",
}


async def ran(folder: Path, command: str, bounds: Bounds) -> ToolOutcome:
    needed_box()
    tool = RunCommand(Runner("require", os.environ, bounds))
    context = FolderContext(Workspace(str(folder)))
    with anyio.fail_after(PATIENCE_S):
        return await carry_out(tool, {"command": command, "timeout_ms": 40_000}, context)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("way", FORKS)
async def test_a_command_with_too_many_processes_is_ended(tmp_path: Path, way: str) -> None:
    outcome = await ran(tmp_path, FORKS[way], Bounds(max_processes=100))
    ending = "killed: it had more than 100 processes and threads (`tools.max_processes`)"
    assert (ending in outcome.text, outcome.failed) == (True, True), outcome.text[-500:]


@pytest.mark.parametrize("way", MEMORY)
async def test_a_command_that_takes_too_much_memory_is_ended(tmp_path: Path, way: str) -> None:
    outcome = await ran(tmp_path, MEMORY[way], Bounds(max_memory=128 * MIB))
    assert "killed: it took more than 128 MiB of memory (`tools.max_memory_bytes`)" in outcome.text


@pytest.mark.slow
async def test_memory_that_processes_share_counts_once(tmp_path: Path) -> None:
    script = (
        "x = b'1' * 2**26\nimport os, time\nfor i in range(4): os.fork() or (time.sleep(1.5), os._exit(0))\n"
    )
    script += "for i in range(4): os.wait()\nprint('done')"
    outcome = await ran(tmp_path, f'python3 -c "{script}"', Bounds(max_memory=180 * MIB))
    assert outcome.text.startswith("done\n")


async def test_a_command_within_its_limits_runs(tmp_path: Path) -> None:
    bounds = Bounds(max_processes=100, max_memory=128 * MIB)
    outcome = await ran(tmp_path, "for i in {1..20}; do sleep 0.6 & done; wait; echo done", bounds)
    assert outcome.text.startswith("done\n")


async def test_without_a_limit_of_processes_they_are_not_counted(tmp_path: Path) -> None:
    outcome = await ran(
        tmp_path, "for i in {1..150}; do sleep 0.6 & done; wait; echo done", Bounds(max_processes=0)
    )
    assert outcome.text.startswith("done\n")


@pytest.mark.parametrize("folder", ["/tmp", "/var/tmp", "/dev/shm", "~", "/run", "/dev"])
def test_folders_in_memory_have_a_size(tmp_path: Path, folder: str) -> None:
    home = tmp_path / "home"
    project = tmp_path / "project"
    for path in (home, project):
        path.mkdir()
    if not needed_box().can_limit_memory:
        pytest.skip("this bubblewrap cannot limit folders in memory")
    script = f"head -c 40000000 /dev/zero > {folder}/big; stat -c %s {folder}/big 2>/dev/null || echo 0"
    said = run_boxed(script, project, {**ENVIRON, "HOME": str(home)}, view=SandboxView(max_tmp=4 * MIB))
    assert int(said.splitlines()[-1]) <= 16 * MIB


def test_the_kernel_ends_a_command_first_when_memory_is_out(tmp_path: Path) -> None:
    async def work() -> str:
        return (await ran(tmp_path, "cat /proc/self/oom_score_adj", Bounds())).text

    assert anyio.run(work).startswith("1000\n")
    assert Path("/proc/self/oom_score_adj").read_text() != "1000\n"


def test_an_ordinary_user_gets_no_more_processes_than_allowed_at_all() -> None:
    with folder_of(ORDINARY) as folder:

        def work() -> str:
            if not needed_box().can_count_processes:
                return "skip"
            script = "python3 -c 'import os, time\nfor i in range(100): os.fork() or (time.sleep(2), os._exit(0))' 2>&1"
            return run_boxed(script, folder / "project", ENVIRON, view=SandboxView(max_processes=30))

        said = as_ordinary(work)
    if said == "skip":
        pytest.skip("the kernel counts processes of all sandboxes together")
    assert "BlockingIOError" in said
