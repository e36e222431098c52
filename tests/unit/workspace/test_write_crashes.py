"""The process that writes is killed before each of its system calls, and each of them fails: the file has its old
bytes or its new ones, and what is left over is swept."""

from __future__ import annotations

import functools
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from sidecar.workspace.paths import Workspace
from sidecar.workspace.writing import remove_leftovers
from tests.support.patience import PATIENCE_S
from tests.unit.workspace.one_write import TOKEN
from tests.unit.workspace.trees import Tree, litter

CALLS = """
openat read write lseek close fcntl dup fstat newfstatat faccessat faccessat2 statfs fstatfs readlinkat
fchmod fchown flistxattr fgetxattr fsetxattr fremovexattr fsync
rename renameat renameat2 link linkat unlink unlinkat mkdir mkdirat
"""
FAILING = {
    "openat",
    "write",
    "fchmod",
    "fsync",
    "rename",
    "renameat",
    "renameat2",
    "mkdirat",
    "unlinkat",
    "read",
}
WRITES = {
    "modify": ("inside.txt", "inside", "new bytes"),
    "create": ("new/er/file.txt", "-", "new bytes"),
    "delete": ("inside.txt", "inside", "-"),
}


@functools.cache
def unable() -> str:
    """Why nothing can be traced here; empty when it can."""
    if not shutil.which("strace"):
        return "strace is not installed"
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as other:
        attach = ["strace", "-p", str(other.pid), "-o", os.devnull]
        with subprocess.Popen(attach, stderr=subprocess.PIPE, text=True) as tracer:
            assert tracer.stderr is not None
            said = tracer.stderr.readline()
            other.terminate()
    return "" if "attached" in said and not tracer.returncode else said or "strace cannot attach"


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(unable()), reason=unable() or "-"),
]
every = pytest.mark.parametrize("write", WRITES)


def traced(tree: Tree, write: str, *inject: str, careless: bool = False) -> tuple[int, list[str]]:
    """How one write ended, and the system calls that it made."""
    log = tree.base / "calls.log"
    command = [sys.executable, "-B", "-m", "tests.unit.workspace.one_write", str(tree.root), *WRITES[write]]
    with subprocess.Popen(command + ["careless"] * careless, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
        # A question mark is for calls that this architecture may not have.
        trace = "trace=" + ",".join(f"?{name}" for name in CALLS.split())
        rules = [part for rule in (trace, *inject) for part in ("-e", rule)]
        attach = ["strace", "-p", str(writer.pid), "-o", str(log), *rules]
        with subprocess.Popen(attach, stderr=subprocess.PIPE) as tracer:
            assert tracer.stderr is not None
            assert b"attached" in tracer.stderr.readline()
            writer.send_signal(signal.SIGUSR1)
            code = writer.wait(PATIENCE_S)
    return code, [line for line in log.read_text().splitlines() if re.match(r"\w+\(", line)]


def points(calls: list[str]) -> list[tuple[str, int]]:
    """Each call, as strace counts them: its name, and how many of that name it makes."""
    counted: Counter[str] = Counter()
    found = []
    for line in calls:
        name = line.partition("(")[0]
        counted[name] += 1
        found.append((name, counted[name]))
    return found


def fresh(base: Path, number: int) -> Tree:
    folder = base / str(number)
    folder.mkdir()
    return Tree(folder)


def state(tree: Tree, write: str) -> bytes | None:
    path = tree.root / WRITES[write][0]
    return path.read_bytes() if path.exists() else None


def wanted(write: str) -> tuple[bytes | None, bytes | None]:
    """The bytes before and after."""
    _, old, new = WRITES[write]
    return (None if old == "-" else old.encode(), None if new == "-" else new.encode())


@every
def test_killed_before_any_call_the_file_is_old_or_new_and_the_rest_is_swept(
    tmp_path: Path, write: str
) -> None:
    old, new = wanted(write)
    whole = fresh(tmp_path, 0)
    code, calls = traced(whole, write)
    assert (code, state(whole, write)) == (0, new)
    met = set()
    left = 0
    for number, (name, nth) in enumerate(points(calls), 1):
        tree = fresh(tmp_path, number)
        code, _ = traced(tree, write, f"inject={name}:signal=KILL:when={nth}")
        assert code == -signal.SIGKILL, (name, nth)
        assert state(tree, write) in (old, new), (name, nth)
        met.add(state(tree, write))
        left += len(litter(tree.base))
        remove_leftovers(Workspace(str(tree.root)), WRITES[write][0], TOKEN)
        assert litter(tree.base) == [], (name, nth)
        assert {path.name for path in tree.root.iterdir()} <= {"a", "inside.txt", "new"}
    assert met == {old, new}
    assert (left > 0) is (new is not None)


@every
def test_any_call_that_fails_leaves_the_old_bytes_or_the_write_is_done(tmp_path: Path, write: str) -> None:
    old, new = wanted(write)
    _, calls = traced(fresh(tmp_path, 0), write)
    refusals = 0
    for number, (name, nth) in enumerate(points(calls), 1):
        if name not in FAILING:
            continue
        for error in ("EIO", "ENOSPC"):
            tree = fresh(tmp_path, number * 2 + (error == "EIO"))
            code, _ = traced(tree, write, f"inject={name}:error={error}:when={nth}")
            refusals += code == 3
            assert (code, state(tree, write)) in ((0, new), (3, old)), (name, nth, error)
            assert litter(tree.base) == [], (name, nth, error)
    assert refusals > 0


@every
def test_bytes_are_durable_before_they_get_the_name_and_the_name_after(tmp_path: Path, write: str) -> None:
    _, calls = traced(fresh(tmp_path, 0), write)
    ours = [
        line.partition("(")[0]
        for line in calls
        if re.match(r"(write|fsync|rename\w*|unlinkat|mkdirat)\(", line)
    ]
    steps = ["write", "fsync", "rename", "fsync"] if write != "delete" else ["unlinkat", "fsync"]
    made = ["mkdirat", "fsync"] * 2 if write == "create" else []
    assert [re.sub(r"(?<=rename)at2?", "", name) for name in ours] == made + steps


def test_the_kills_catch_a_twin_that_writes_in_place(tmp_path: Path) -> None:
    _, calls = traced(fresh(tmp_path, 0), "modify", careless=True)
    met = set()
    for number, (name, nth) in enumerate(points(calls), 1):
        tree = fresh(tmp_path, number)
        traced(tree, "modify", f"inject={name}:signal=KILL:when={nth}", careless=True)
        met.add(state(tree, "modify"))
    assert b"" in met
