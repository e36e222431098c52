"""No path of the corpus opens anything, whichever way is taken; and the corpus finds a careless twin out."""

from __future__ import annotations

import fcntl
import os
import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from sidecar.model.failures import Refused
from sidecar.workspace.paths import Workspace
from sidecar.workspace.writing import digest, replace
from tests.unit.workspace.corpus import ESCAPES, Verdict, escapes
from tests.unit.workspace.trees import SECRET, Make, Tree, broken, by_hand, careful, hostile, litter, outside

both = pytest.mark.parametrize("make", [careful, by_hand])


WRITES = {
    "create": (None, b"escaped"),
    "modify": (digest(SECRET), b"escaped"),
    "delete": (digest(SECRET), None),
}


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return hostile(tmp_path)


def verdict(workspace: Workspace, path: str) -> Verdict | str:
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
    assert min(len(expected), len(set(ESCAPES))) >= 500
    assert set(ESCAPES) <= set(expected)
    assert _descriptors() == before


@both
def test_no_escape_reads_lists_or_walks_what_is_outside(tree: Tree, make: Make) -> None:
    before, workspace = outside(tree), make(tree)
    shown = {path: seen(workspace, path) for path in escapes(tree)}
    assert {path: names for path, names in shown.items() if names & {"secret.txt", SECRET.decode()}} == {}
    assert shown["self"] > {"inside.txt", "deep.txt"}
    assert outside(tree) == before


@both
@pytest.mark.parametrize(("expected", "data"), WRITES.values(), ids=WRITES)
def test_no_escape_changes_what_is_outside(
    tree: Tree, make: Make, expected: str | None, data: bytes | None
) -> None:
    before, inside, workspace = outside(tree), kinds(tree), make(tree)
    written = {path for path in attempts(tree, expected) if wrote(workspace, path, expected, data)}
    assert outside(tree) == before
    assert kinds(tree).items() >= inside.items()
    assert litter(tree.base) == []
    # What is merely an odd name is a file like any other, in the project.
    may = {path for path, verdict in escapes(tree).items() if verdict[0] == "not_found"}
    assert {"none", "a/none", "~", "CON"} <= written <= may if expected is None else not written


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


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc is Linux's")
@both
def test_in_a_workspace_of_everything_no_folder_of_the_kernels_is_written_to(tree: Tree, make: Make) -> None:
    tree.root = Path("/")
    with open("/proc/self/mountinfo") as file:
        mounts = [line.split()[4] for line in file]
    # Where the kernel itself refuses to make anything, and else only looked at: a mistake here must do no harm.
    held = [("/proc/new/er", True), ("/sys/new/er", True), ("/proc/self/new", False)]
    held += [
        (f"{mount}/new", False) for mount in mounts if mount.startswith("/sys/") and os.path.isdir(mount)
    ]
    for path, making in held:
        with pytest.raises(Refused) as refused, make(tree).hold(path, make=making):
            pass
        assert (path, refused.value.reason) == (path, "kind")


def test_the_corpus_catches_a_twin_that_shows_real_paths(tree: Tree) -> None:
    twin = broken(tree)
    caught = {path for path in escapes(tree) if seen(twin, path) & {"secret.txt", SECRET.decode()}}
    assert {"../project_evil", "evil", "../project_evil/secret.txt", "hard"} <= caught


@pytest.mark.parametrize(("expected", "data"), WRITES.values(), ids=WRITES)
def test_the_corpus_catches_a_twin_that_writes_to_real_paths(
    tree: Tree, expected: str | None, data: bytes | None
) -> None:
    before, twin = outside(tree), broken(tree)
    caught = {path for path in attempts(tree, expected) if wrote(twin, path, expected, data)}
    assert caught & {"evil/new.txt", "../project_evil/new.txt"} if expected is None else "hard" in caught
    assert expected is None or caught & {"evil/secret.txt", "../project_evil/secret.txt"}
    assert outside(tree) != before


def test_the_corpus_catches_a_twin_that_opens_real_paths(tree: Tree) -> None:
    twin = broken(tree)
    opened = {path for path in escapes(tree) if verdict(twin, path) == "opened"}
    assert {"hard", "soft", "fifo", "../project_evil/secret.txt", "evil/secret.txt", "a"} <= opened
    assert os.read(twin.open_file("evil/secret.txt"), 100) == SECRET


def seen(workspace: Workspace, path: str) -> set[str]:
    """All that a path shows: bytes, names in a folder, and names beneath it."""
    shown: set[str] = set()
    # A twin opens folders as files, and files as folders.
    with suppress(Refused, IsADirectoryError):
        shown.add(workspace.read_bytes(path, 100).decode("latin-1"))
    with suppress(Refused, NotADirectoryError):
        shown |= {entry.name for entry in workspace.list_dir(path)}
    with suppress(Refused, NotADirectoryError):
        shown |= {entry.name for _, entries in workspace.walk(path) for entry in entries}
    return shown


def attempts(tree: Tree, expected: str | None) -> list[str]:
    """The paths to write to. A careless twin is not to make files anywhere but in the tree; what is to be replaced
    must have the secret's bytes, which no other file has."""
    near = tree.base.as_posix()
    return [
        path
        for path in escapes(tree)
        if expected or not path.startswith("/") or near in path[: len(near) + 3]
    ]


def wrote(workspace: Workspace, path: str, expected: str | None, data: bytes | None) -> bool:
    try:
        replace(workspace, path, expected, data, token="0badcafe")
    except Refused:
        return False
    return True


def kinds(tree: Tree) -> dict[str, tuple[int, int, str]]:
    """Everything in the project: its kind, its inode, and where it leads."""
    seen = {}
    for folder, folders, files in os.walk(tree.root):
        for path in (os.path.join(folder, name) for name in (*folders, *files)):
            found = os.lstat(path)
            target = os.readlink(path) if stat.S_ISLNK(found.st_mode) else ""
            seen[path] = (found.st_mode, found.st_ino, target)
    return seen


def _locked(path: Path) -> bool:
    code = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'rb+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    return subprocess.run([sys.executable, "-c", code, path], stderr=subprocess.DEVNULL).returncode != 0


def _descriptors() -> int:
    return len(os.listdir("/dev/fd"))
