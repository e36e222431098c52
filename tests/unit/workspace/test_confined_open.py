"""The opening itself: the kernel is asked once, and what it cannot settle is walked by hand."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sidecar.system import confined_open
from sidecar.workspace.paths import Workspace
from tests.unit.workspace.trees import Tree


def anything(found: os.stat_result) -> None:
    """No objection."""


@pytest.fixture(autouse=True)
def asked_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The answer is known when a test starts, and no test's own answer outlives it."""
    confined_open.has_openat2()
    yield
    monkeypatch.undo()
    confined_open.has_openat2.cache_clear()


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_openat2_is_asked_for_once_and_not_at_import(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []

    def absent(folder: int, path: bytes) -> int:
        asked.append(path)
        raise OSError(errno.ENOSYS, "no such call")

    monkeypatch.setattr(confined_open, "_openat2", absent)
    confined_open.has_openat2.cache_clear()
    workspace = Workspace(str(tree.root))
    assert asked == []
    assert [workspace.read_bytes("inside.txt", 9) for _ in range(3)] == [b"inside"] * 3
    assert asked in ([b"/"], [])  # other systems need not ask


def test_importing_the_workspace_loads_no_ctypes() -> None:
    code = "import sys, sidecar.workspace.paths; sys.exit('ctypes' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.skipif(not confined_open.has_openat2(), reason="no openat2 here")
def test_a_kernel_that_is_never_sure_is_helped_by_hand(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsure(folder: int, path: bytes) -> int:
        raise OSError(errno.EAGAIN, "a rename came between")

    monkeypatch.setattr(confined_open, "_openat2", unsure)
    assert Workspace(str(tree.root)).read_bytes("inside.txt", 9) == b"inside"


@pytest.mark.skipif(not confined_open.has_openat2(), reason="no openat2 here")
def test_without_proc_the_way_by_hand_opens(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_proc(pin: int, flags: int, check: confined_open.FileCheck) -> int:
        raise FileNotFoundError(errno.ENOENT, "/proc is not mounted")

    monkeypatch.setattr(confined_open, "open_pinned", no_proc)
    assert Workspace(str(tree.root)).read_bytes("inside.txt", 9) == b"inside"


def test_a_tree_that_makes_us_climb_for_ever_ends(tree: Tree) -> None:
    os.makedirs(tree.root / ("d/" * 60))
    tree.link("up0", "d/" * 60 + "../" * 60 + "inside.txt")
    for n in range(1, 20):
        tree.link(f"up{n}", "d/" * 60 + "../" * 60 + f"up{n - 1}")
    top = os.open(tree.root, os.O_RDONLY)
    os.close(confined_open.open_beneath(top, [b"up3"], os.O_RDONLY, anything, by_hand=True))
    with pytest.raises(OSError, match="symbolic links") as error:
        confined_open.open_beneath(top, [b"up19"], os.O_RDONLY, anything, by_hand=True)
    assert error.value.errno == errno.ELOOP
    os.close(top)


def test_a_link_put_in_place_just_before_the_opening_is_looked_at_again(tree: Tree) -> None:
    def exchanging(name: str, target: str) -> int:
        def check(found: os.stat_result) -> None:
            if not (tree.root / name).is_symlink():
                (tree.root / name).unlink()
                tree.link(name, target)

        return confined_open.open_beneath(top, [name.encode()], os.O_RDONLY, check, by_hand=True)

    (tree.root / "second.txt").touch()
    top = os.open(tree.root, os.O_RDONLY)
    with open(exchanging("inside.txt", "a/b/deep.txt"), "rb") as file:
        assert file.read() == b"deep"
    with pytest.raises(OSError, match="cross-device"):
        exchanging("second.txt", "../outside/secret.txt")
    os.close(top)


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_file_slipped_in_between_the_checks_is_refused_and_never_closed(tree: Tree, by_hand: bool) -> None:
    seen: list[int] = []

    def second_thoughts(found: os.stat_result) -> None:
        seen.append(found.st_ino)
        if len(seen) == 2:
            raise RuntimeError("now it is forbidden")

    before = set(os.listdir("/dev/fd"))
    top = os.open(tree.root, os.O_RDONLY)
    with pytest.raises(RuntimeError):
        confined_open.open_beneath(top, [b"inside.txt"], os.O_RDONLY, second_thoughts, by_hand=by_hand)
    os.close(top)
    kept = [int(fd) for fd in set(os.listdir("/dev/fd")) - before]
    assert [os.fstat(fd).st_ino for fd in kept if _regular(fd)] == [seen[0]]
    for fd in kept:
        if _regular(fd):
            os.close(fd)


def _regular(fd: int) -> bool:
    try:
        return os.fstat(fd).st_size == 6
    except OSError:
        return False
