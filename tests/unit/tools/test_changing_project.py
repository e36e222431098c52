"""Commands in the sandbox while the machine changes around them: a plan that is outdated is made anew."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import anyio
import msgspec
import pytest

from sidecar.system import sandbox
from sidecar.system.sandbox import Sandbox, SandboxView
from sidecar.tools.base import ToolError
from sidecar.tools.shell.runner import SET_UPS, Bounds, ExitStatus, ProgramRun, Runner
from sidecar.tools.shell.transcript import Transcript
from sidecar.workspace.paths import Workspace
from tests.unit.system.sandboxes import PATH, needed_box, seen_folder
from tests.unit.tools.context import FolderContext

ENVIRON = {"PATH": PATH, "HOME": "/nonexistent"}
CLEAN = "in the sandbox: no network, only the project is writable"


class Outdated(Sandbox, frozen=True):
    """Bubblewrap whose first plans are outdated at once: `changes` are made one by one, each after a plan."""

    changes: list[Callable[[], object]] = msgspec.field(default_factory=list)

    def wrap(
        self,
        argv: Sequence[str],
        project: str,
        writable: Sequence[str],
        hidden: Sequence[str],
        cwd: str,
        view: SandboxView = SandboxView(),  # noqa: B008  a frozen value
        environ: Mapping[str, str] | None = None,
    ) -> list[str]:
        planned = super().wrap(argv, project, writable, hidden, cwd, view, environ)
        if self.changes:
            self.changes.pop(0)()
        return planned


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project/sub").mkdir(parents=True)
    return tmp_path / "project"


async def ran(
    project: Path, script: str, *changes: Callable[[], object], bounds: Bounds | None = None, cwd: str = "."
) -> tuple[ExitStatus, str]:
    """How a script ended in a sandbox whose plans are outdated by `changes`, and its output."""
    found = needed_box()
    box = Outdated(
        found.program, found.can_limit_memory, found.can_count_processes, found.syscalls, list(changes)
    )
    transcript = Transcript()
    job = ProgramRun(["/bin/bash", "-c", script], 60, cwd, ENVIRON)
    context = FolderContext(Workspace(str(project)), call_key=f"s/t/{script}")
    return await Runner("require", ENVIRON, bounds).run(job, box, transcript, context), transcript.whole()


def listen(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


async def test_a_socket_that_goes_away_before_it_is_covered_does_no_harm(project: Path) -> None:
    with seen_folder() as folder, socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "s"))
        server.listen()
        ended, output = await ran(project, "echo ran; echo x >> count", (folder / "s").unlink)
    assert (ended.exit_code, ended.notes[1:], output) == (0, (CLEAN,), "ran\n")
    assert (project / "count").read_text() == "x\n"


async def test_in_the_place_of_a_socket_of_the_project_no_file_stays(project: Path) -> None:
    listen(project / "sub/server.sock")
    ended, _ = await ran(project, "true", (project / "sub/server.sock").unlink)
    assert (ended.notes, os.listdir(project / "sub")) == (("exit code 0", CLEAN), [])
    listen(project / "sub/server.sock")


async def test_a_toolchain_that_is_replaced_meanwhile_does_no_harm(project: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    bounds = Bounds(readable=[str(tmp_path / "one"), str(tmp_path / "two")])
    changes = (partial(shutil.rmtree, tmp_path / "one"), partial(shutil.rmtree, tmp_path / "two"))
    ended, output = await ran(project, "echo ran", *changes, bounds=bounds)
    assert (ended.notes, output) == (("exit code 0", CLEAN), "ran\n")


@pytest.mark.parametrize("name", [".mcp.json", ".claude"])
async def test_a_guarded_file_that_appears_meanwhile_is_read_only(project: Path, name: str) -> None:
    script = f"echo planted > {name}; cat {name}"
    ended, output = await ran(project, script, lambda: (project / name).write_text("users\n"))
    assert (project / name).read_text() == "users\n"
    assert (ended.exit_code, output.splitlines()[-1]) == (0, "users")


async def test_a_hidden_file_that_is_exchanged_for_a_folder_stays_hidden(
    project: Path, tmp_path: Path
) -> None:
    def exchange() -> None:
        (project / "keys").unlink()
        (project / "keys").mkdir()
        (project / "keys/key").write_text("secret")

    (project / "keys").write_text("secret")
    bounds = Bounds(hidden=[str(project / "keys")])
    ended, output = await ran(project, "cat keys keys/* 2>/dev/null; echo ran", exchange, bounds=bounds)
    assert (ended.exit_code, output) == (0, "ran\n")


async def test_a_sandbox_that_can_never_be_set_up_is_an_error_and_runs_nothing(project: Path) -> None:
    def exchange() -> None:
        (project / ".mcp.json").touch()
        undone.append(1)

    def undo() -> None:
        (project / ".mcp.json").unlink()

    class Unlucky(Outdated, frozen=True):
        def wrap(self, *args: object, **more: object) -> list[str]:
            undo() if undone else None
            return super().wrap(*args, **more)  # type: ignore[arg-type]

    undone: list[int] = []
    found = needed_box()
    box = Unlucky(
        found.program, found.can_limit_memory, found.can_count_processes, found.syscalls, [exchange] * SET_UPS
    )
    context = FolderContext(Workspace(str(project)))
    with pytest.raises(ToolError, match=r"sandbox could not be set up \(bwrap: .*\.mcp\.json"):
        await Runner("require", ENVIRON).run(
            ProgramRun(["/bin/bash", "-c", "touch ran"], 60, ".", ENVIRON), box, Transcript(), context
        )
    assert (len(undone), (project / "ran").exists()) == (SET_UPS, False)


@pytest.mark.parametrize("ending", ["exit 1", "kill -KILL $$", "exec /no/such", "exit 127"])
async def test_what_only_looks_like_a_failed_set_up_runs_once(project: Path, ending: str) -> None:
    script = f"echo 'bwrap: Can not create file at /opt/s: Read-only file system'; echo x >> count; {ending}"
    ended, output = await ran(project, script)
    assert (ended.failed, output.startswith("bwrap: Can not"), (project / "count").read_text()) == (
        True,
        True,
        "x\n",
    )


async def test_a_command_cannot_report_to_the_supervisor(project: Path) -> None:
    script = "ls -l /proc/self/fd /proc/1/fd | grep -c pipe; { echo exit 7 >&8; } 2>/dev/null || echo closed"
    _, output = await ran(project, script)
    assert output.splitlines()[-1] == "closed"
    _, output = await ran(
        project, "for d in /proc/1/fd/*; do [ $d -ef /dev/stdout ] || echo 'exit 7' > $d; done 2>/dev/null"
    )
    assert output == ""


async def test_parallel_commands_neither_fail_nor_report_what_others_need(project: Path) -> None:
    """Each has mount points for names that are missing; they are made and removed at any moment of the others."""
    needed_box()
    notes: list[tuple[str, ...]] = []

    async def work(number: int) -> None:
        for turn in range(4):
            ended, output = await ran(project, f"sleep 0.0{(number * 3 + turn) % 5}; echo {number} {turn}")
            assert output == f"{number} {turn}\n"
            notes.append(ended.notes)

    async with anyio.create_task_group() as tasks:
        for number in range(5):
            tasks.start_soon(work, number)
    assert set(notes) == {("exit code 0", CLEAN)}
    assert os.listdir(project) == ["sub"]


@pytest.mark.parametrize("name", [".sidecar", ".claude", ".cursor", ".mcp.json"])
async def test_a_mount_point_of_another_sandbox_is_no_finding(project: Path, name: str) -> None:
    ended, _ = await ran(project, "true", (project / name).mkdir)
    assert ended.notes == ("exit code 0", CLEAN)
    (project / name).mkdir()
    another = sandbox.MountPoints(str(project))
    ended, _ = await ran(project, "true")
    another.release()
    assert (ended.notes, os.listdir(project)) == (("exit code 0", CLEAN), ["sub"])
