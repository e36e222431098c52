"""What is inside opens, by every spelling, and what cannot be opened says why."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from sidecar.model.failures import Refused
from sidecar.workspace import paths
from sidecar.workspace.paths import ConfinedPath, FolderEntry, Workspace
from tests.unit.workspace.trees import Tree

pytestmark = pytest.mark.parametrize("by_hand", [False, True])


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def made(tree: Tree, by_hand: bool) -> Workspace:
    return Workspace(str(tree.root), [str(tree.extra)], by_hand=by_hand)


def refusal(workspace: Workspace, path: str, max_bytes: int = 100) -> tuple[str, str | None]:
    with pytest.raises(Refused) as refused:
        workspace.read_bytes(path, max_bytes)
    return refused.value.name, refused.value.reason


def test_every_spelling_of_a_file_reads_it(tree: Tree, by_hand: bool) -> None:
    workspace = made(tree, by_hand)
    root, extra = str(tree.root), str(tree.extra)
    for path in (
        "a/b/deep.txt",
        "./a//b/./deep.txt",
        "a/x/../b/deep.txt",
        f"{root}/a/b/deep.txt",
        "a/b/deep.txt/",
    ):
        assert workspace.resolve(path) == ConfinedPath(root, ("a", "b", "deep.txt"), "a/b/deep.txt")
        assert workspace.read_bytes(path, 4) == b"deep"
    for path in (f"{extra}/more.txt", "../extra/more.txt"):
        assert workspace.resolve(path) == ConfinedPath(extra, ("more.txt",), f"{extra}/more.txt")
        assert workspace.read_bytes(path, 4) == b"more"
    assert workspace.resolve(f"{root}/").shown == "."


def test_links_that_stay_inside_are_followed(tree: Tree, by_hand: bool) -> None:
    links = {
        "one": "a/b/deep.txt",
        "two": "one",
        "a/back": "../a/b/../b/deep.txt",
        "a/b/up": "../..",
        "dir": "a/b/",
    }
    for name, target in (links | {f"l{n}": f"l{n + 1}" for n in range(39)} | {"l39": "one"}).items():
        tree.link(name, target)
    workspace = made(tree, by_hand)
    for path in ("one", "two", "a/back", "a/b/up/one", "dir/deep.txt", "dir/up/dir/up/a/back", "l1"):
        assert workspace.read_bytes(path, 9) == b"deep", path
    assert refusal(workspace, "l0") == ("denied", "links")


@pytest.mark.parametrize(
    "name",
    [
        "é",
        "e\u0301",
        "日本語",
        "👩‍👩‍👧",
        "a\nb",
        "tab\t",
        " ",
        "...",
        "~",
        "-rf",
        "\\",
        "%2e%2e",
        "\udcff\udc80",
        "x" * 255,
    ],
)
def test_odd_names_are_plain_names(tree: Tree, by_hand: bool, name: str) -> None:
    (tree.extra / name).mkdir()
    (tree.extra / name / name).write_bytes(b"odd")
    workspace = Workspace(str(tree.extra), by_hand=by_hand)
    assert workspace.read_bytes(f"{name}/{name}", 3) == b"odd"
    assert workspace.list_dir(name) == [FolderEntry(name, "file", 3)]


@pytest.mark.sampled(1)
def test_the_deepest_path_that_fits_opens(tree: Tree, by_hand: bool) -> None:
    deep, deeper = "d/" * 2000, "d/" * 60
    try:
        _dig(tree.root, deep + deeper, "bottom")
        workspace = made(tree, by_hand)
        assert workspace.list_dir(deep) == [FolderEntry("d", "folder", 0)]
        assert refusal(workspace, deep + deeper + "bottom") == ("denied", "name")
        # Walking goes on where no single path reaches.
        *_, (place, entries) = workspace.walk(deep)
        assert (len(place.parts), entries) == (2060, [FolderEntry("bottom", "file", 0)])
    finally:
        subprocess.run(["rm", "-rf", tree.root / "d"], check=True)  # Python's own would recurse too deep


def test_a_folder_is_listed_by_name_kind_and_size(tree: Tree, by_hand: bool) -> None:
    tree.link("z", "nowhere")
    os.mkfifo(tree.root / "pipe")
    expected = [
        FolderEntry("a", "folder", 0),
        FolderEntry("inside.txt", "file", 6),
        FolderEntry("pipe", "other", 0),
        FolderEntry("z", "link", 0),
    ]
    workspace = made(tree, by_hand)
    assert workspace.list_dir(".") == expected
    fd = workspace.open_dir("a")
    assert os.listdir(fd) == ["b"]
    os.close(fd)


def test_a_walk_leaves_out_what_its_caller_removes(tree: Tree, by_hand: bool) -> None:
    for name in ("a/skip/x", "c"):
        (tree.root / name).mkdir(parents=True)
    seen = []
    for place, entries in made(tree, by_hand).walk():
        seen.append(place.shown)
        entries[:] = [entry for entry in entries if entry.name != "skip"]
    assert seen == [".", "a", "a/b", "c"]


def test_too_large_is_refused_and_just_right_is_not(
    tree: Tree, by_hand: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = made(tree, by_hand)
    with pytest.raises(Refused, match="6 bytes, more than the 5 that may be read") as refused:
        workspace.read_bytes("inside.txt", 5)
    assert refused.value.details()["params"] == {"path": "inside.txt"}
    assert workspace.read_bytes("inside.txt", 6) == b"inside"
    with pytest.MonkeyPatch.context() as grown:
        # A file that was shorter when it was asked for its size.
        grown.setattr(paths, "_size", lambda fd: 3)
        assert refusal(workspace, "inside.txt", 5) == ("denied", "too_large")
    monkeypatch.setattr(paths, "MAX_ENTRIES", 1)
    with pytest.raises(Refused, match="more than 1 entries"):
        workspace.list_dir(".")


def test_a_project_that_is_a_link_is_known_by_both_names(tree: Tree, by_hand: bool) -> None:
    alias = tree.base / "alias"
    alias.symlink_to("project")
    workspace = Workspace(str(alias), by_hand=by_hand)
    assert workspace.root == str(tree.root)
    for path in ("inside.txt", f"{alias}/inside.txt", f"{tree.root}/inside.txt"):
        assert workspace.resolve(path).shown == "inside.txt"
        assert workspace.read_bytes(path, 6) == b"inside"
    alias.unlink()
    alias.symlink_to("outside")
    assert workspace.read_bytes(f"{alias}/inside.txt", 6) == b"inside"


def test_a_project_that_is_gone_or_exchanged_is_not_found(tree: Tree, by_hand: bool) -> None:
    workspace = made(tree, by_hand)
    os.rename(tree.root, tree.base / "moved")
    assert refusal(workspace, "inside.txt") == ("not_found", None)
    os.symlink("outside", tree.root)
    assert refusal(workspace, "secret.txt") == ("not_found", None)
    os.unlink(tree.root)
    os.rename(tree.outside, tree.root)
    assert refusal(workspace, "secret.txt") == ("not_found", None)
    with pytest.raises(Refused, match="project folder does not exist"):
        Workspace(str(tree.base / "none"), by_hand=by_hand)
    with pytest.raises(Refused, match="is a folder"):
        Workspace(str(tree.extra / "more.txt"), by_hand=by_hand)


def test_an_open_file_stays_readable_after_its_deletion(tree: Tree, by_hand: bool) -> None:
    fd = made(tree, by_hand).open_file("inside.txt")
    shutil.rmtree(tree.root)
    with open(fd, "rb") as file:
        assert file.read() == b"inside"


@pytest.mark.sampled(1)
def test_what_the_user_may_not_read_is_denied_and_folders_to_pass_through_are_not(by_hand: bool) -> None:
    base = Path(tempfile.mkdtemp())
    try:
        tree = Tree(base)
        (tree.root / "a/b/closed.txt").write_bytes(b"closed")
        for path, mode in ((base, 0o755), (tree.root / "a", 0o711), (tree.root / "a/b/closed.txt", 0)):
            path.chmod(mode)
        code = (
            "from tests.unit.workspace.test_paths import *; from sidecar.system.confined_open import has_openat2\n"
            "has_openat2()  # what it imports may not be readable later on\n"
            "if os.geteuid() == 0: os.setegid(65534); os.seteuid(65534)\n"
            f"workspace = Workspace({str(tree.root)!r}, by_hand={by_hand})\n"
            "assert refusal(workspace, 'a/b/closed.txt') == ('denied', 'permission')\n"
            "assert workspace.read_bytes('a/b/deep.txt', 4) == b'deep'\n"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
    finally:
        shutil.rmtree(base)


def test_an_error_names_any_path_in_text_that_can_travel(tree: Tree, by_hand: bool) -> None:
    for path, quoted in (("\ud800", "\\ud800"), ("\udcff", "\\udcff"), ("x" * 9000, "x" * 300)):
        with pytest.raises(Refused) as refused:
            made(tree, by_hand).open_file(path)
        assert refused.value.params == {"path": quoted}


def _dig(top: Path, way: str, name: str) -> None:
    """Make folders deeper than one path can say."""
    here = os.open(top, os.O_RDONLY)
    for part in way.strip("/").split("/"):
        os.mkdir(part, dir_fd=here)
        inner = os.open(part, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(os.open(name, os.O_WRONLY | os.O_CREAT, dir_fd=here))
    os.close(here)
