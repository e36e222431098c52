"""While another process exchanges what a path names, only the careless twin opens what is outside."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sidecar.model.failures import Refused
from sidecar.workspace.paths import Workspace
from tests.workspace.trees import SECRET, Make, Tree, broken, by_hand, careful

TRIES = 2000
PATIENCE = 8  # seconds; a second core needs milliseconds
SWAP = """
import os, sys, threading
one, other = sys.argv[1:]
done = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), done.set())).start()
print(flush=True)
while not done.is_set():
    for old, new in ((one, "aside"), (other, one), (one, other), ("aside", one)):
        os.rename(old, new)
"""
Outcome = bytes | str
MET: set[Outcome] = {b"harmless", "denied"}  # both sides of the exchange, so there was a race to lose
both = pytest.mark.parametrize("make", [careful, by_hand])


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """`door` is a folder with a harmless file; `other` a link to where the file of that name is secret."""
    tree = Tree(tmp_path)
    (tree.outside / "chats.db").write_bytes(b"")
    (tree.root / "door").mkdir()
    (tree.root / "door/secret.txt").write_bytes(b"harmless")
    tree.link("other", "../outside")
    tree.link("a/b/round", "../../door/../door/secret.txt")
    return tree


@both
@pytest.mark.parametrize("path", ["door/secret.txt", "a/b/round"])
def test_a_folder_exchanged_for_a_link_never_shows_the_secret(tree: Tree, make: Make, path: str) -> None:
    with swapping(tree.root, "door", "other"):
        seen = read_often(make(tree), path, until=MET)
    assert MET <= set(seen) <= MET | {"not_found"}


@both
def test_a_file_exchanged_for_a_link_never_shows_the_secret(tree: Tree, make: Make) -> None:
    (tree.root / "plain").write_bytes(b"harmless")
    tree.link("trap", "../outside/secret.txt")
    with swapping(tree.root, "plain", "trap"):
        seen = read_often(make(tree), "plain", until=MET)
    assert MET <= set(seen) <= MET | {"not_found"}


@both
def test_a_file_exchanged_for_a_pipe_never_blocks(tree: Tree, make: Make) -> None:
    (tree.root / "plain").write_bytes(b"harmless")
    os.mkfifo(tree.root / "pipe")
    with swapping(tree.root, "plain", "pipe"):
        seen = read_often(make(tree), "plain", until=MET)
    assert MET <= set(seen) <= MET | {"not_found"}


@both
def test_a_listed_folder_exchanged_for_a_link_never_shows_names_outside(tree: Tree, make: Make) -> None:
    workspace = make(tree)
    with swapping(tree.root, "door", "other"):
        seen = often(
            lambda: " ".join(entry.name for entry in workspace.list_dir("door")),
            until={"secret.txt", "denied"},
        )
    assert {"secret.txt", "denied"} <= set(seen) <= {"secret.txt", "denied", "not_found"}


def test_the_race_catches_a_twin_that_checks_and_then_opens(tree: Tree) -> None:
    with swapping(tree.root, "door", "other"):
        seen = read_often(broken(tree), "door/secret.txt", until={SECRET})
    assert seen[SECRET] > 0


def read_often(workspace: Workspace, path: str, until: set[Outcome]) -> Counter[Outcome]:
    return often(lambda: workspace.read_bytes(path, 100), until)


def often(attempt: Callable[[], Outcome], until: set[Outcome]) -> Counter[Outcome]:
    """How many times each outcome came, in `TRIES` and then until all of `until` were met: a busy machine
    may run one side of the race for a while before it runs the other."""
    seen: Counter[Outcome] = Counter()
    give_up = time.monotonic() + PATIENCE
    while seen.total() < TRIES or (not until <= set(seen) and time.monotonic() < give_up):
        try:
            seen[attempt()] += 1
        except Refused as refused:
            seen[refused.name] += 1
    return seen


@contextmanager
def swapping(folder: Path, one: str, other: str) -> Iterator[None]:
    """Exchange the two names for as long as the block runs: in a process, as a thread would wait for us."""
    with subprocess.Popen(
        [sys.executable, "-c", SWAP, one, other], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as attacker:
        assert attacker.stdin is not None
        assert attacker.stdout is not None
        attacker.stdout.readline()
        try:
            yield
        finally:
            attacker.stdin.close()
            assert attacker.wait(10) == 0
