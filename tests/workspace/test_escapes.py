"""No path of the corpus opens anything, whichever way is taken; and the corpus finds a careless twin out."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sidecar.model.failures import Refused
from sidecar.workspace.paths import Workspace
from tests.workspace.corpus import escapes
from tests.workspace.trees import SECRET, Make, Tree, broken, by_hand, careful, hostile

Verdict = tuple[str, str | None] | str
both = pytest.mark.parametrize("make", [careful, by_hand])


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return hostile(tmp_path)


def verdict(workspace: Workspace, path: str) -> Verdict:
    """How opening the file was refused, or that it was not."""
    try:
        os.close(workspace.open_file(path))
    except Refused as refused:
        return refused.name, refused.reason
    return "opened"


@both
def test_every_escape_is_refused_for_its_reason(tree: Tree, make: Make) -> None:
    expected = escapes(tree)
    workspace = make(tree)
    before = _descriptors()
    assert {path: verdict(workspace, path) for path in expected} == expected
    assert len(expected) >= 120
    assert _descriptors() == before


@both
def test_no_escape_lists_a_folder_outside(tree: Tree, make: Make) -> None:
    workspace = make(tree)
    for path in escapes(tree):
        try:
            names = {entry.name for entry in workspace.list_dir(path)}
        except Refused:
            continue
        assert (
            names in ({"b", "up", "soft"}, {"deep.txt", "hard", "climb"}, {"more.txt"})
            or "inside.txt" in names
        )


@both
def test_a_walk_meets_nothing_outside(tree: Tree, make: Make) -> None:
    seen = [place.shown for place, _ in make(tree).walk()]
    assert seen == [".", "a", "a/b"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc is Linux's")
@both
def test_in_a_workspace_of_everything_the_kernels_files_stay_closed(tree: Tree, make: Make) -> None:
    tree.root = Path("/")
    paths = [
        "proc/self/root/etc/passwd",
        "proc/self/environ",
        "/proc/self/fd/0",
        "proc/self/exe",
        "proc/1/maps",
    ]
    paths += [
        "/dev/stdin",
        "dev/fd/0",
        "/sys/kernel/notes",
        "dev/null",
        "dev/zero",
        "proc/self/cwd/x",
        "proc",
    ]
    assert {verdict(make(tree), path)[0] for path in paths} <= {"denied", "not_found"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
@both
def test_a_device_in_the_project_is_refused(tree: Tree, make: Make) -> None:
    try:
        os.mknod(tree.root / "zero_device", 0o20666, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("a container without devices")
    assert verdict(make(tree), "zero_device") == ("denied", "kind")


@both
def test_a_refusal_keeps_the_locks_on_the_database(tree: Tree, make: Make) -> None:
    with open(tree.outside / "chats.db", "rb+") as database:
        fcntl.lockf(database, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert verdict(make(tree), "hard") == ("denied", "own_file")
        assert _locked(tree.outside / "chats.db")
        os.close(broken(tree).open_file("hard"))
        assert not _locked(tree.outside / "chats.db")


def test_the_corpus_catches_a_twin_that_opens_real_paths(tree: Tree) -> None:
    twin = broken(tree)
    opened = {path for path in escapes(tree) if verdict(twin, path) == "opened"}
    assert {"hard", "soft", "fifo", "../project_evil/secret.txt", "evil/secret.txt", "a"} <= opened
    assert os.read(twin.open_file("evil/secret.txt"), 100) == SECRET


def _locked(path: Path) -> bool:
    code = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'rb+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    return subprocess.run([sys.executable, "-c", code, path], stderr=subprocess.DEVNULL).returncode != 0


def _descriptors() -> int:
    return len(os.listdir("/dev/fd"))
