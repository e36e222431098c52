"""A file is replaced whole, as what it was; what cannot be written says why, and leaves everything as it was."""

from __future__ import annotations

import os
import resource
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sidecar.model.failures import Refused
from sidecar.system import confined_open
from sidecar.workspace.paths import Workspace
from sidecar.workspace.writing import digest, read_current, remove_leftovers, replace
from tests.unit.workspace.trees import Tree, litter

TOKEN = "0123456789abcdef"
TEMP = f".sidecar-{TOKEN}.tmp"
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may do it")
pytestmark = pytest.mark.parametrize("by_hand", [False, True])


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Tree]:
    tree = Tree(tmp_path)
    yield tree
    assert litter(tree.base) == []


def made(tree: Tree, by_hand: bool) -> Workspace:
    return Workspace(str(tree.root), [str(tree.extra)], by_hand=by_hand)


def put(
    workspace: Workspace, path: str, old: bytes | None, new: bytes | None, mode: int | None = None
) -> None:
    replace(workspace, path, None if old is None else digest(old), new, mode=mode, token=TOKEN)


def refusal(workspace: Workspace, path: str, old: bytes | None, new: bytes | None) -> tuple[str, str | None]:
    with pytest.raises(Refused) as refused:
        put(workspace, path, old, new)
    assert refused.value.params == {"path": path}
    return refused.value.name, refused.value.reason


@pytest.mark.parametrize(
    "data",
    [b"", b"\r\n", b"\xef\xbb\xbfone\r\ntwo\rthree\n", b"\xff\xfe\x00", bytes(range(256)), b"x" * 3_000_000],
    ids=["empty", "crlf", "bom", "utf16", "all", "large"],
)
def test_any_bytes_are_written_as_they_are(tree: Tree, by_hand: bool, data: bytes) -> None:
    workspace = made(tree, by_hand)
    put(workspace, "new.bin", None, data)
    put(workspace, "inside.txt", b"inside", data)
    assert (tree.root / "new.bin").read_bytes() == (tree.root / "inside.txt").read_bytes() == data
    assert read_current(workspace, "new.bin", len(data)) == data
    put(workspace, "new.bin", data, None)
    assert read_current(workspace, "new.bin", 1) is None


def test_every_spelling_writes_the_same_file(tree: Tree, by_hand: bool) -> None:
    workspace, last = made(tree, by_hand), b"deep"
    for n, path in enumerate(
        ("a/b/deep.txt", "./a//b/./deep.txt", "a/x/../b/deep.txt", f"{tree.root}/a/b/deep.txt")
    ):
        put(workspace, path, last, last := b"%d" % n)
    assert (tree.root / "a/b/deep.txt").read_bytes() == b"3"
    put(workspace, f"{tree.extra}/more.txt", b"more", b"most")
    put(workspace, f"{tree.extra}/new/er.txt", None, b"new")
    assert [path.read_bytes() for path in (tree.extra / "more.txt", tree.extra / "new/er.txt")] == [
        b"most",
        b"new",
    ]


@pytest.mark.parametrize(
    "name", ["é", "日本語", "a\nb", " ", "...", "~", "-rf", "\\", "%2e%2e", "\udcff", "x" * 255]
)
def test_odd_names_are_plain_names(tree: Tree, by_hand: bool, name: str) -> None:
    workspace = made(tree, by_hand)
    put(workspace, f"{name}/{name}", None, b"odd")
    put(workspace, f"{name}/{name}", b"odd", b"even")
    assert (tree.root / name / name).read_bytes() == b"even"
    assert workspace.real(f"{name}/{name}") == f"{tree.root}/{name}/{name}"


def test_a_new_file_and_its_folders_get_what_the_umask_leaves(tree: Tree, by_hand: bool) -> None:
    before = os.umask(0o027)
    try:
        put(made(tree, by_hand), "new/er/file.txt", None, b"new")
    finally:
        os.umask(before)
    assert [_mode(tree.root / path) for path in ("new", "new/er", "new/er/file.txt")] == [0o750, 0o750, 0o640]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o755, 0o777, 0o1644])
def test_a_changed_file_keeps_its_mode(tree: Tree, by_hand: bool, mode: int) -> None:
    (tree.root / "inside.txt").chmod(mode)
    put(made(tree, by_hand), "inside.txt", b"inside", b"new")
    assert _mode(tree.root / "inside.txt") == mode


def test_a_mode_that_is_asked_for_is_set_and_none_runs_as_another_user(tree: Tree, by_hand: bool) -> None:
    workspace = made(tree, by_hand)
    put(workspace, "new.sh", None, b"1", mode=0o700)
    put(workspace, "inside.txt", b"inside", b"2", mode=0o4751)
    (tree.root / "a/b/deep.txt").chmod(0o6755)
    put(workspace, "a/b/deep.txt", b"deep", b"3")
    assert [_mode(tree.root / path) for path in ("new.sh", "inside.txt", "a/b/deep.txt")] == [
        0o700,
        0o751,
        0o755,
    ]


@as_root
def test_a_changed_file_keeps_its_owner_and_group(tree: Tree, by_hand: bool) -> None:
    os.chown(tree.root / "inside.txt", 1234, 5678)
    put(made(tree, by_hand), "inside.txt", b"inside", b"new")
    found = os.stat(tree.root / "inside.txt")
    assert (found.st_uid, found.st_gid) == (1234, 5678)


@pytest.mark.sampled(1)
@as_root
def test_a_group_that_cannot_be_kept_takes_its_rights_along(by_hand: bool) -> None:
    with _for_everyone() as tree:
        file = tree.root / "inside.txt"
        os.chown(file, 65534, 5678)
        file.chmod(0o664)
        _as_nobody(tree, by_hand, "put(workspace, 'inside.txt', b'inside', b'new')")
        found = os.stat(file)
        assert (found.st_uid, found.st_gid, _mode(file), file.read_bytes()) == (65534, 65534, 0o644, b"new")


def test_extended_attributes_are_kept(tree: Tree, by_hand: bool) -> None:
    file = tree.root / "inside.txt"
    try:
        os.setxattr(file, "user.origin", b"\x00where it came from")
    except (OSError, AttributeError) as error:
        pytest.skip(f"no extended attributes here: {error}")
    put(made(tree, by_hand), "inside.txt", b"inside", b"new")
    assert {name: os.getxattr(file, name) for name in os.listxattr(file)} == {
        "user.origin": b"\x00where it came from"
    }


def test_an_access_list_of_the_folder_is_not_forced_on_an_old_file(tree: Tree, by_hand: bool) -> None:
    file = tree.root / "inside.txt"
    file.chmod(0o640)
    try:
        os.setxattr(tree.root, "system.posix_acl_default", _acl_for(user=1234))
    except (OSError, AttributeError) as error:
        pytest.skip(f"no access lists here: {error}")
    workspace = made(tree, by_hand)
    put(workspace, "inside.txt", b"inside", b"changed")
    put(workspace, "new.txt", None, b"new")
    assert (os.listxattr(file), _mode(file)) == ([], 0o640)
    assert os.listxattr(tree.root / "new.txt") == ["system.posix_acl_access"]


def test_what_is_not_as_expected_is_left_alone(tree: Tree, by_hand: bool) -> None:
    workspace = made(tree, by_hand)
    for new in (b"new", None):
        assert refusal(workspace, "inside.txt", b"outdated", new) == ("denied", "changed")
        assert refusal(workspace, "gone.txt", b"was here", new) == ("denied", "changed")
        assert refusal(workspace, "inside.txt", None, new) == ("denied", "exists")
        assert refusal(workspace, "gone/gone.txt", b"was here", new) == ("not_found", None)
    with pytest.raises(Refused, match="The file changed on disk since it was read"):
        put(workspace, "inside.txt", b"outdated", b"new")
    put(workspace, "none.txt", None, None)
    assert (tree.root / "inside.txt").read_bytes() == b"inside"
    assert sorted(os.listdir(tree.root)) == ["a", "inside.txt"]


def test_a_link_stays_and_the_file_at_its_end_is_replaced(tree: Tree, by_hand: bool) -> None:
    links = {
        "one": "a/b/deep.txt",
        "two": "one",
        "a/back": "../a/b/../b/deep.txt",
        "dir": "a/b/",
        "a/b/up": "../..",
    }
    for name, target in links.items():
        tree.link(name, target)
    workspace, last = made(tree, by_hand), b"deep"
    for n, path in enumerate(("one", "two", "a/back", "dir/deep.txt", "dir/up/dir/up/a/back")):
        put(workspace, path, last, last := b"%d" % n)
        assert workspace.real(path) == f"{tree.root}/a/b/deep.txt"
    put(workspace, "dir/up/new/er.txt", None, b"new")
    assert (tree.root / "a/b/deep.txt").read_bytes() == b"4"
    assert (tree.root / "new/er.txt").read_bytes() == b"new"
    assert {name: os.readlink(tree.root / name) for name in links} == links


def test_a_link_is_not_deleted_and_nothing_is_made_where_one_leads_to_nothing(
    tree: Tree, by_hand: bool
) -> None:
    for name, target in {
        "one": "inside.txt",
        "to_none": "none.txt",
        "to_nowhere": "no/where",
        "way": "no",
    }.items():
        tree.link(name, target)
    workspace = made(tree, by_hand)
    assert refusal(workspace, "one", b"inside", None) == ("denied", "links")
    for path in ("to_none", "to_nowhere", "way/x.txt", "way/x/y.txt"):
        assert refusal(workspace, path, None, b"new") == ("not_found", None)
    assert sorted(os.listdir(tree.root)) == ["a", "inside.txt", "one", "to_none", "to_nowhere", "way"]


def test_another_hard_link_keeps_the_old_bytes(tree: Tree, by_hand: bool) -> None:
    os.link(tree.root / "inside.txt", tree.root / "second.txt")
    put(made(tree, by_hand), "inside.txt", b"inside", b"new")
    assert [(tree.root / name).read_bytes() for name in ("inside.txt", "second.txt")] == [b"new", b"inside"]


def test_what_is_no_file_is_refused(tree: Tree, by_hand: bool) -> None:
    os.mkfifo(tree.root / "fifo")
    with socket.socket(socket.AF_UNIX) as server, pytest.MonkeyPatch.context() as patch:
        patch.chdir(tree.root)
        server.bind("socket")
    workspace = made(tree, by_hand)
    for path in ("a", ".", "", "fifo", "socket", f"{tree.root}", f"{tree.extra}"):
        for old, new in ((None, b"new"), (b"", b"new"), (b"", None)):
            assert refusal(workspace, path, old, new) == ("denied", "kind")
    assert refusal(workspace, "inside.txt/x", None, b"new") == ("denied", "kind")
    assert refusal(workspace, "fifo/x/y", None, b"new") == ("denied", "kind")


def test_the_database_is_neither_replaced_nor_deleted_nor_opened(tree: Tree, by_hand: bool) -> None:
    (tree.root / "chats.db").write_bytes(b"rows")
    os.link(tree.root / "chats.db", tree.root / "hard")
    tree.link("soft", "hard")
    found = os.stat(tree.root / "hard")
    workspace = Workspace(str(tree.root), (), lambda: {(found.st_dev, found.st_ino)}, by_hand=by_hand)
    for path in ("chats.db", "hard", "soft"):
        for old, new in ((None, b"new"), (b"rows", b"new"), (b"rows", None)):
            assert refusal(workspace, path, old, new) == ("denied", "own_file")
    assert os.stat(tree.root / "hard").st_nlink == 2


def test_a_leftover_in_the_way_is_refused_until_it_is_swept(tree: Tree, by_hand: bool) -> None:
    workspace = made(tree, by_hand)
    (tree.root / TEMP).write_bytes(b"half")
    assert refusal(workspace, "inside.txt", b"inside", b"new") == ("denied", "exists")
    assert (tree.root / TEMP).read_bytes() == b"half"
    remove_leftovers(workspace, "inside.txt", TOKEN)
    put(workspace, "inside.txt", b"inside", b"new")


def test_sweeping_removes_a_leftover_file_and_nothing_else(tree: Tree, by_hand: bool) -> None:
    tree.link("link.txt", "a/b/deep.txt")
    tree.link("out", "../outside")
    tree.link(TEMP, "inside.txt")
    (tree.root / f"a/{TEMP}").mkdir()
    for folder in (tree.root / "a/b", tree.outside):
        (folder / TEMP).write_bytes(b"half")
    workspace = made(tree, by_hand)
    for path in (
        "inside.txt",
        "a/x.txt",
        "link.txt",
        "out/secret.txt",
        "none/none.txt",
        "../outside/x",
        "a/b",
    ):
        remove_leftovers(workspace, path, TOKEN)
    assert [path.relative_to(tree.base).as_posix() for path in sorted(litter(tree.base))] == [
        f"outside/{TEMP}",
        f"project/{TEMP}",
        f"project/a/{TEMP}",
    ]
    os.unlink(tree.outside / TEMP)
    os.unlink(tree.root / TEMP)
    os.rmdir(tree.root / "a" / TEMP)


@pytest.mark.parametrize("token", ["", "abc", "0123456", "../../../x", "ABCDEF01", "0123456g", "01234567/"])
def test_a_token_that_could_be_part_of_a_path_is_not_taken(tree: Tree, by_hand: bool, token: str) -> None:
    with pytest.raises(ValueError, match="hexadecimal"):
        replace(made(tree, by_hand), "x", None, b"", token=token)
    with pytest.raises(ValueError, match="hexadecimal"):
        remove_leftovers(made(tree, by_hand), "x", token)


def test_a_system_without_a_rename_that_spares_makes_new_files_as_well(
    tree: Tree, by_hand: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confined_open, "_renamed_new", lambda folder, old, new: False)
    workspace = made(tree, by_hand)
    put(workspace, "new/er.txt", None, b"new")
    top = os.open(tree.root, os.O_RDONLY)
    (tree.root / "other.txt").write_bytes(b"other")
    with pytest.raises(FileExistsError):
        confined_open.rename_new(top, b"other.txt", b"inside.txt")
    os.close(top)
    assert (tree.root / "inside.txt").read_bytes() == b"inside"
    assert os.stat(tree.root / "new/er.txt").st_nlink == 1


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, with room for a few pages."""
    where = tmp_path / "small"
    where.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(where)]
    if (
        os.geteuid() != 0
        or not shutil.which("mount")
        or subprocess.run(mount, capture_output=True).returncode
    ):
        pytest.skip("only root mounts a small file system, and not in every container")
    yield where
    subprocess.run(["umount", where], check=True)


def test_a_full_disk_leaves_the_old_bytes_and_no_litter(small: Path, by_hand: bool) -> None:
    (small / "old.txt").write_bytes(b"old")
    workspace = Workspace(str(small), by_hand=by_hand)
    for path, old in (("old.txt", b"old"), ("new.txt", None)):
        assert refusal(workspace, path, old, b"x" * 100_000) == ("denied", "full")
    assert {path.name: path.read_bytes() for path in small.iterdir()} == {"old.txt": b"old"}
    put(workspace, "old.txt", b"old", b"fits")


def test_a_read_only_file_system_is_named_as_such(small: Path, by_hand: bool) -> None:
    (small / "old.txt").write_bytes(b"old")
    subprocess.run(["mount", "-o", "remount,ro", small], check=True)
    workspace = Workspace(str(small), by_hand=by_hand)
    for path, old, new in (
        ("old.txt", b"old", b"new"),
        ("old.txt", b"old", None),
        ("new.txt", None, b""),
        ("a/b", None, b""),
    ):
        assert refusal(workspace, path, old, new) == ("denied", "readonly")


def test_a_file_larger_than_the_limit_leaves_the_old_bytes_and_no_litter(tree: Tree, by_hand: bool) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        assert refusal(made(tree, by_hand), "inside.txt", b"inside", b"x" * 10_001) == ("denied", "too_large")
        put(made(tree, by_hand), "new.txt", None, b"x" * 10_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (tree.root / "inside.txt").read_bytes() == b"inside"


@pytest.mark.sampled(1)
def test_what_the_user_may_not_write_is_denied(by_hand: bool) -> None:
    with _for_everyone() as tree:
        (tree.root / "marked.txt").write_bytes(b"marked")
        os.chmod(tree.root / "marked.txt", 0o444)
        os.chmod(tree.root / "a", 0o555)
        (tree.root / "a/open.txt").write_bytes(b"open")
        os.chmod(tree.root / "a/open.txt", 0o666)
        _as_nobody(
            tree,
            by_hand,
            "for path, old, new in (('marked.txt', b'marked', b'new'), ('marked.txt', b'marked', None),\n"
            "    ('a/open.txt', b'open', b'new'), ('a/open.txt', b'open', None), ('a/new.txt', None, b''),\n"
            "    ('a/new/er.txt', None, b'')):\n"
            "    assert refusal(workspace, path, old, new) == ('denied', 'permission'), (path, new)\n"
            "put(workspace, 'inside.txt', b'inside', b'new')\n",
        )
        assert sorted(os.listdir(tree.root / "a")) == ["b", "open.txt"]
        assert (tree.root / "marked.txt").read_bytes() == b"marked"
        assert litter(tree.base) == []


@pytest.mark.sampled(1)
def test_a_folder_that_may_not_be_read_can_be_written_to(by_hand: bool) -> None:
    with _for_everyone() as tree:
        os.chmod(tree.root, 0o333)
        _as_nobody(tree, by_hand, "put(workspace, 'inside.txt', b'inside', b'new')")
        assert (tree.root / "inside.txt").read_bytes() == b"new"


def test_no_descriptor_is_left_open(tree: Tree, by_hand: bool) -> None:
    tree.link("one", "inside.txt")
    workspace, before = made(tree, by_hand), len(os.listdir("/dev/fd"))
    put(workspace, "new/er.txt", None, b"1")
    put(workspace, "one", b"inside", b"2")
    workspace.real("one")
    remove_leftovers(workspace, "one", TOKEN)
    for path, old in (
        ("one", b"wrong"),
        ("a", b""),
        ("a/b/c/d/e", b""),
        ("inside.txt/x", None),
        ("../x", None),
    ):
        refusal(workspace, path, old, b"3")
    assert len(os.listdir("/dev/fd")) == before


def _mode(path: Path) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def _acl_for(user: int) -> bytes:
    """rw for the owner and one more user, r for the group, nothing for others; as the kernel stores it."""
    entries = [(0x01, 6, -1), (0x02, 6, user), (0x04, 4, -1), (0x10, 6, -1), (0x20, 0, -1)]
    packed = [
        tag.to_bytes(2, "little") + bits.to_bytes(2, "little") + (who & 0xFFFFFFFF).to_bytes(4, "little")
        for tag, bits, who in entries
    ]
    return (2).to_bytes(4, "little") + b"".join(packed)


@contextmanager
def _for_everyone() -> Iterator[Tree]:
    """A tree that another user reaches, and owns: pytest's own folders are closed to him."""
    base = Path(tempfile.mkdtemp())
    try:
        base.chmod(0o755)
        tree = Tree(base)
        for path in (tree.root, tree.root / "a", tree.root / "inside.txt"):
            if os.geteuid() == 0:
                os.chown(path, 65534, 65534)
        yield tree
    finally:
        for folder, _, _ in os.walk(base):
            os.chmod(folder, 0o755)
        shutil.rmtree(base)


def _as_nobody(tree: Tree, by_hand: bool, code: str) -> None:
    """Run it as someone whom permissions bind, in a process of its own."""
    start = (
        "import ctypes; from tests.unit.workspace.test_writing import *\n"
        "from sidecar.system.confined_open import has_openat2\n"
        "has_openat2(); digest(b'')  # what they import may not be readable later on\n"
        "if os.geteuid() == 0: os.setgroups([]); os.setegid(65534); os.seteuid(65534)\n"
        f"workspace = Workspace({str(tree.root)!r}, by_hand={by_hand})\n"
    )
    done = subprocess.run([sys.executable, "-c", start + code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
