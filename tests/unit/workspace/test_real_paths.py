"""A file has one real path, however it was asked for, and one that is shown."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sidecar.model.failures import Refused
from sidecar.workspace.paths import Workspace
from tests.unit.workspace.corpus import escapes
from tests.unit.workspace.trees import Make, Tree, by_hand, careful, hostile

both = pytest.mark.parametrize("make", [careful, by_hand])


@both
def test_every_way_to_a_file_has_one_real_path(tmp_path: Path, make: Make) -> None:
    tree = hostile(tmp_path)
    workspace, deep = make(tree), f"{tree.root}/a/b/deep.txt"
    ways = [
        "a/b/deep.txt",
        "./a//b/deep.txt",
        "to_folder/deep.txt",
        "self/a/b/deep.txt",
        "selves/to_folder/deep.txt",
    ]
    assert {workspace.real(path) for path in [*ways, deep]} == {deep}
    assert {workspace.relative(workspace.real(path)) for path in ways} == {"a/b/deep.txt"}
    more = f"{tree.extra}/more.txt"
    assert (workspace.real("../extra/more.txt"), workspace.relative(more)) == (more, more)


@both
def test_no_escape_has_a_real_path(tmp_path: Path, make: Make) -> None:
    tree = hostile(tmp_path)
    workspace, expected = make(tree), escapes(tree)
    verdicts = {}
    for path in expected:
        with pytest.raises(Refused) as refused:
            workspace.real(path)
        verdicts[path] = (refused.value.name, refused.value.reason)
    assert verdicts == expected


def test_names_that_differ_in_case_are_different_files(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    (tree.root / "INSIDE.TXT").touch()
    if os.path.samefile(tree.root / "INSIDE.TXT", tree.root / "inside.txt"):
        pytest.skip("case does not count here")
    os.link(tree.root / "inside.txt", tree.root / "Inside.txt")
    workspace = Workspace(str(tree.root))
    for name in ("inside.txt", "INSIDE.TXT", "Inside.txt"):
        assert workspace.real(name) == f"{tree.root}/{name}"


@pytest.fixture
def caseless(tmp_path: Path) -> Iterator[Path]:
    """A folder in which case does not count: as it is on most desktops, else on a file system made for it."""
    where = tmp_path / "caseless"
    where.mkdir()
    if os.path.exists(str(where).upper()):
        yield where
        return
    mount = ["mount", "-t", "tmpfs", "-o", "casefold", "none", str(where)]
    if (
        os.geteuid() != 0
        or not shutil.which("mount")
        or subprocess.run(mount, capture_output=True).returncode
    ):
        pytest.skip("case counts here, and no file system can be mounted where it does not")
    try:
        (where / "folder").mkdir()
        if subprocess.run(["chattr", "+F", str(where / "folder")], capture_output=True).returncode:
            pytest.skip("case counts in all folders here")
        yield where / "folder"
    finally:
        subprocess.run(["umount", str(where)], check=True)


def test_where_case_does_not_count_the_real_path_is_spelled_as_on_disk(caseless: Path) -> None:
    (caseless / "Docs").mkdir()
    (caseless / "Docs/ReadMe.md").write_bytes(b"text")
    workspace = Workspace(str(caseless))
    for path in ("Docs/ReadMe.md", "docs/readme.MD", "DOCS/README.md", "dOCS/rEADmE.md"):
        assert workspace.read_bytes(path, 4) == b"text"
        assert workspace.real(path) == f"{workspace.root}/Docs/ReadMe.md"
