"""Runs scripts in the sandbox, as the tests' own user or as an ordinary one."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from sidecar.system import sandbox
from sidecar.system.environment import select_environment
from sidecar.system.sandbox import Sandbox, SandboxView
from sidecar.tools.shell.runner import SET_UPS
from tests.support.patience import PATIENCE_S

ORDINARY = 54321
"""A user and group that no machine has: no files, no groups, no powers."""

PATH = "/usr/local/bin:/usr/bin:/bin"


def needed_box() -> Sandbox:
    found = sandbox.detect()
    if found is None:
        pytest.skip("bubblewrap does not work here")
    return found


def run_boxed(
    script: str,
    project: Path,
    environ: Mapping[str, str],
    *,
    view: SandboxView | None = None,
    hidden: tuple[str, ...] = (),
    writable: tuple[str, ...] = (),
) -> str:
    """What a script prints in the sandbox, both streams; its environment is selected from `environ`."""
    argv = ["/bin/bash", "-c", script]
    box, shown = needed_box(), view or SandboxView()
    return run_planned(
        lambda: box.wrap(argv, str(project), writable, hidden, str(project), shown, environ),
        project,
        env=select_environment(environ),
        stderr=subprocess.STDOUT,
    ).stdout


def run_planned(
    plan: Callable[[], list[str]],
    project: Path,
    env: Mapping[str, str] | None = None,
    stderr: int = subprocess.PIPE,
) -> subprocess.CompletedProcess[str]:
    """Run a command in the sandbox, planned anew while sockets of other tests come and go, as the program does."""
    for _ in range(SET_UPS):
        done = subprocess.run(
            plan(),
            cwd=project,
            env=env,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            timeout=PATIENCE_S,
        )
        sandbox.remove_mount_points(str(project))
        said = done.stderr or done.stdout
        if not said.startswith("bwrap: "):
            return done
    raise AssertionError(f"the sandbox did not start: {said}")


def as_ordinary(work: Callable[[], str]) -> str:
    """What `work` returns in a child process of an ordinary user; skips where that cannot be."""
    return _in_child(_become_ordinary, work)


def with_own_mounts(empty: str, work: Callable[[], str]) -> str:
    """What `work` returns in a child process where the folder `empty` is a new one that no other process sees."""

    def prepare() -> None:
        import ctypes

        assert ctypes.CDLL(None).unshare(0x00020000) == 0  # CLONE_NEWNS
        subprocess.run(["mount", "--make-rprivate", "/"], check=True, timeout=PATIENCE_S)
        subprocess.run(["mount", "-t", "tmpfs", "none", empty], check=True, timeout=PATIENCE_S)

    return _in_child(prepare, work)


def _in_child(prepare: Callable[[], None], work: Callable[[], str]) -> str:
    if os.geteuid() != 0:
        pytest.skip("only root can become another user, or mount")
    for module in ("shutil", "fcntl", "signal", "selectors"):  # nothing can be imported from another's home
        __import__(module)
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(reading)
        _work_and_exit(prepare, work, writing)
    os.close(writing)
    with open(reading, encoding="utf-8") as pipe:
        said = pipe.read()
    status = os.waitpid(pid, 0)[1]
    if said == "no sandbox":
        pytest.skip("ordinary users may not create namespaces here")
    assert status == 0, said
    return said


def _become_ordinary() -> None:
    os.setgroups([])
    os.setresgid(ORDINARY, ORDINARY, ORDINARY)
    os.setresuid(ORDINARY, ORDINARY, ORDINARY)
    os.environ.update({"PATH": PATH, "HOME": "/nonexistent"})


def _work_and_exit(prepare: Callable[[], None], work: Callable[[], str], writing: int) -> None:
    code = 1
    try:
        prepare()
        sandbox.detect.cache_clear()
        said = "no sandbox" if sandbox.detect() is None else work()
        code = 0
    except BaseException as error:
        said = f"{type(error).__name__}: {error}"
    finally:
        os.write(writing, said.encode(errors="replace"))
        os._exit(code)


@contextmanager
def seen_folder() -> Iterator[Path]:
    """A new folder that the sandbox would show: not in /tmp, which it empties, nor in a home. Skips without one."""
    parents = [path for path in ("/srv", "/var/lib", "/opt", "/mnt") if os.access(path, os.W_OK)]
    if not parents:
        pytest.skip("only /tmp and the home can be written to here")
    with tempfile.TemporaryDirectory(dir=parents[0]) as name:
        yield Path(name)


@contextmanager
def folder_of(user: int) -> Iterator[Path]:
    """A new folder that belongs to a user, with a project and a home in it."""
    with seen_folder() as folder:
        for path in (folder / "project", folder / "home"):
            path.mkdir()
        give(folder, user)
        yield folder


def give(folder: Path, user: int) -> None:
    """Make a user the owner of a folder and all in it."""
    for path in (folder, *folder.rglob("*")):
        os.chown(path, user, user, follow_symlinks=False)


def python_for(user: int) -> str:
    """A Python of our version that the user can run; skips where there is none."""
    minor = f"python3.{sys.version_info[1]}"
    for program in (sys.executable, f"/usr/bin/{minor}", f"/usr/local/bin/{minor}"):
        # By a shell of that user: setpriv itself could start a program that only root can reach.
        identity = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        command = [*identity, "/bin/sh", "-c", '"$0" -c "print(1)"', program]
        try:
            if subprocess.run(command, capture_output=True, timeout=PATIENCE_S).stdout == b"1\n":
                return program
        except OSError:
            continue
    pytest.skip("no Python that another user can run")


def own_home() -> Path:
    """The home that the system's list of users has for us, where toolchains may lie."""
    return Path(pwd.getpwuid(os.geteuid()).pw_dir)
