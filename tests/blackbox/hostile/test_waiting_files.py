"""A FIFO, socket, device link or huge file in the place of a file that the sidecar reads by itself is never waited for.

A project brings these files along, so whoever wrote the project chooses what they are. The limit of each wait is far
below the ten seconds that git and searches may take, and nothing here depends on it but to fail.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from sidecar.workspace.git_waits import check_waits, has_waiting_rules
from tests.blackbox.work.workbench import Workbench, call, statuses
from tests.support.sidecar import Sidecar

WITHIN = 6.0
"""Seconds for a whole turn: less than one wait for git or ripgrep would take."""

HUGE = 3 * 1024**3

NAMES = (
    ".gitignore",
    "src/.gitignore",
    "src/.gitattributes",
    ".git/info/exclude",
    "AGENTS.md",
    "CLAUDE.md",
    ".cursor/rules/a.mdc",
    ".sidecar/hooks.json",
    ".mcp.json",
)
GIT_OWN = (
    ".git/HEAD",
    ".git/index",
    ".git/config",
    ".git/packed-refs",
    ".git/refs/heads/side",
    ".git/objects/pack/x.idx",
)


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # the name of a socket may have a hundred bytes only
    try:
        with closing(socket.socket(socket.AF_UNIX)) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(HUGE)


KINDS: dict[str, Callable[[Path], None]] = {
    "fifo": _fifo,
    "socket": _socket,
    "device": _device,
    "huge": _huge,
}


def _put(bench: Workbench, name: str, kind: str) -> None:
    path = bench.project / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    KINDS[kind](path)


def _work(bench: Workbench) -> tuple[Sidecar, str, list[str]]:
    """A turn that searches, lists and asks git; its tools' statuses."""
    steps = [
        [call("grep", pattern="return")],
        [call("glob", pattern="**/*.py")],
        [call("git_diff")],
        [call("read_file", path="notes.txt")],
    ]
    sidecar = bench.start([*steps, "done"])
    sent = sidecar.say("look at the diff of the project", chatId="c")
    ended = sidecar.wait_turn(sent["sessionId"], sent["turnId"], timeout=WITHIN)
    assert ended["data"]["reason"] == "end_turn"
    return sidecar, sent["sessionId"], statuses(sidecar, sent["sessionId"])


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_a_turn_waits_for_no_file_of_the_project(bench: Workbench, name: str, kind: str) -> None:
    (bench.project / "src" / "add.py").write_text("def add(a, b):\n    return a + b\n")
    _put(bench, name, kind)
    _, _, found = _work(bench)
    assert [found[at] for at in (0, 1, 3)] == ["completed"] * 3


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", [name for name in NAMES if "git" in name and name != ".git/info/exclude"])
def test_git_is_not_asked_where_it_would_wait(bench: Workbench, name: str) -> None:
    _put(bench, name, "fifo")
    _, _, found = _work(bench)
    assert found[2] == "failed"


def test_git_is_asked_though_its_exclude_file_is_a_fifo(bench: Workbench) -> None:
    _put(bench, ".git/info/exclude", "fifo")
    _, _, found = _work(bench)
    assert found == ["completed"] * 4


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", GIT_OWN)
def test_no_file_of_the_repository_is_waited_for(bench: Workbench, name: str) -> None:
    _put(bench, name, "fifo")
    _, _, found = _work(bench)
    assert found[2] == "failed"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", KINDS)
def test_a_settings_file_that_is_no_file_is_refused_by_name(bench: Workbench, kind: str) -> None:
    _put(bench, ".sidecar/config.toml", kind)
    sidecar = bench.spawn()
    refusal = sidecar.refused("chat/open", chatId="c", projectPath=str(bench.project))
    assert (refusal.code, ".sidecar/config.toml" in str(refusal)) == (-32010, True)


FOR_RIPGREP = {
    "of the project": ".rgignore",
    "of a folder": "src/.rgignore",
    "above the project": "../.rgignore",
    "of git above the project": "../.gitignore",
    "of another repository above": "../.git/info/exclude",
    "of a repository in the project": "src/sub/.git/info/exclude",
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["fifo", "device", "huge"])
@pytest.mark.parametrize("name", FOR_RIPGREP.values(), ids=FOR_RIPGREP)
def test_a_search_waits_for_no_file_that_ripgrep_opens_by_itself(
    bench: Workbench, name: str, kind: str
) -> None:
    _put(bench, name, kind)
    _, _, found = _work(bench)
    assert [found[at] for at in (0, 1, 3)] == ["completed"] * 3


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["commondir", "info/exclude"])
def test_a_search_waits_for_no_file_of_a_linked_work_tree(bench: Workbench, name: str) -> None:
    tree = bench.project / "src" / "tree"
    (bench.project / "real" / "info").mkdir(parents=True)
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {bench.project}/real\n")
    _put(bench, f"real/{name}", "fifo")
    _, _, found = _work(bench)
    assert [found[at] for at in (0, 1, 3)] == ["completed"] * 3


def test_a_plain_repository_is_read(bench: Workbench) -> None:
    folder = bench.path(".git")
    check_waits(bench.path("."), folder, folder)
    assert not has_waiting_rules(bench.path("."))
