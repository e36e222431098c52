"""While another process exchanges what a path names, only the careless twin opens what is outside."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from sidecar.workspace.paths import Workspace
from tests.unit.workspace.races import Outcome, often, swapping
from tests.unit.workspace.trees import SECRET, Make, Tree, broken, by_hand, careful

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


@pytest.mark.sampled(1)
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
