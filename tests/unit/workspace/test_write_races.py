"""While another process exchanges what a path names, only the careless twin writes outside, and nothing is lost."""

from __future__ import annotations

import ctypes
import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sidecar.model.failures import Refused
from sidecar.workspace.paths import Workspace
from sidecar.workspace.writing import digest, replace
from tests.unit.workspace.races import SWAP_AT_ONCE, Outcome, often, swapping
from tests.unit.workspace.trees import Make, Tree, broken, by_hand, careful, litter, outside

ROUNDS = 300  # each waits for the disk a few times
PLENTY = 3000  # files to delete: more than there are rounds, as these go on until both sides were met
MET: set[Outcome] = {"written", "denied"}  # both sides of the exchange, so there was a race to lose
both = pytest.mark.parametrize("make", [careful, by_hand])
OTHER_WRITER = """
import sys
from sidecar.workspace.paths import Workspace
from sidecar.workspace.writing import replace
from sidecar.model.failures import Refused
workspace = Workspace(sys.argv[1])
for n in range(int(sys.argv[2])):
    try:
        replace(workspace, f"turn{n}.txt", None, sys.argv[3].encode(), token=sys.argv[3])
        print(n)
    except Refused as refused:
        assert refused.reason == "exists", refused.reason
"""


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """`door` is a folder of the project; `other` a link to one outside, with a file of the same name and bytes."""
    tree = Tree(tmp_path)
    (tree.outside / "chats.db").write_bytes(b"")
    (tree.root / "door").mkdir()
    (tree.root / "door/secret.txt").write_bytes(b"same")
    (tree.outside / "secret.txt").write_bytes(b"same")
    tree.link("other", "../outside")
    return tree


def write(workspace: Workspace, path: str, expected: bytes | None, data: bytes | None) -> Outcome:
    replace(workspace, path, None if expected is None else digest(expected), data, token="0badcafe")
    return "written"


@both
def test_a_file_in_a_folder_exchanged_for_a_link_is_never_replaced_outside(tree: Tree, make: Make) -> None:
    before, workspace = outside(tree), make(tree)
    with swapping(tree.root, "door", "other"):
        seen = often(lambda: write(workspace, "door/secret.txt", b"same", b"same"), MET, ROUNDS)
    assert MET <= set(seen) <= MET | {"not_found"}
    assert outside(tree) == before
    assert litter(tree.base) == []


@pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "renameat2"), reason="names are not exchanged at once here"
)
@both
def test_a_file_in_a_folder_exchanged_for_a_link_is_never_made_outside(tree: Tree, make: Make) -> None:
    before, workspace, number = outside(tree), make(tree), itertools.count()
    with swapping(tree.root, "door", "other", script=SWAP_AT_ONCE):
        seen = often(lambda: write(workspace, f"door/{next(number)}/new/er.txt", None, b"new"), MET, ROUNDS)
    assert set(seen) == MET
    assert outside(tree) == before
    assert litter(tree.base) == []


@pytest.mark.sampled(1)
@both
def test_a_file_in_a_folder_exchanged_for_a_link_is_never_deleted_outside(tree: Tree, make: Make) -> None:
    for n, folder in itertools.product(range(PLENTY), (tree.root / "door", tree.outside)):
        (folder / f"{n}.txt").write_bytes(b"same")
    before, workspace, number = outside(tree), make(tree), itertools.count()
    with swapping(tree.root, "door", "other"):
        seen = often(lambda: write(workspace, f"door/{next(number)}.txt", b"same", None), MET, ROUNDS)
    assert MET <= set(seen) <= MET | {"not_found"}
    assert outside(tree) == before


def test_the_race_catches_a_twin_that_checks_and_then_writes(tree: Tree) -> None:
    before, workspace = outside(tree), broken(tree)

    def attempt() -> Outcome:
        write(workspace, "door/secret.txt", b"same", b"same")
        return "written" if outside(tree) == before else "escaped"

    with swapping(tree.root, "door", "other"):
        seen = often(attempt, {"escaped"}, 1)
    assert seen["escaped"] > 0


def test_of_two_that_make_the_same_files_each_is_made_by_one(tree: Tree) -> None:
    tokens = ["aaaaaaaa", "bbbbbbbb"]
    command = [sys.executable, "-c", OTHER_WRITER, str(tree.root), str(ROUNDS)]
    writers = [subprocess.Popen([*command, token], stdout=subprocess.PIPE, text=True) for token in tokens]
    made = [{int(line) for line in writer.communicate()[0].splitlines()} for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0]
    assert (made[0] | made[1], made[0] & made[1]) == (set(range(ROUNDS)), set())
    for token, numbers in zip(tokens, made, strict=True):
        assert {(tree.root / f"turn{n}.txt").read_text() for n in numbers} <= {token}
    assert litter(tree.base) == []


@both
def test_what_another_program_wrote_meanwhile_stays(
    tree: Tree, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one writes when the new bytes are already beside the file, before its name is given to them."""
    path = tree.root / "inside.txt"
    sync = os.fsync

    def meanwhile(fd: int) -> None:
        sync(fd)
        path.write_bytes(b"theirs")

    monkeypatch.setattr(os, "fsync", meanwhile)
    with pytest.raises(Refused, match="changed on disk since it was read") as refused:
        write(make(tree), "inside.txt", b"inside", b"ours")
    assert (refused.value.reason, path.read_bytes(), litter(tree.base)) == ("changed", b"theirs", [])
