"""A project with everything in it that has ever led a file tool astray, and the paths that try."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sidecar.model.failures import Refused
from sidecar.system.confined_open import FileCheck, HeldEntry, has_openat2
from sidecar.workspace.paths import ConfinedPath, Workspace

SECRET = b"the secret outside"
HAD_OPENAT2 = has_openat2()
Make = Callable[["Tree"], Workspace]


class Tree:
    """`project` with an inside, an `extra` folder beside it, and `outside` with the secret."""

    def __init__(self, base: Path) -> None:
        self.base = Path(os.path.realpath(base))
        self.root = self.base / "project"
        self.extra = self.base / "extra"
        self.outside = self.base / "outside"
        for folder in (self.root / "a/b", self.extra, self.outside / "sub", self.base / "project_evil"):
            folder.mkdir(parents=True)
        for folder in (self.outside, self.outside / "sub", self.base / "project_evil"):
            (folder / "secret.txt").write_bytes(SECRET)
        (self.root / "inside.txt").write_bytes(b"inside")
        (self.root / "a/b/deep.txt").write_bytes(b"deep")
        (self.extra / "more.txt").write_bytes(b"more")

    def own_files(self) -> set[tuple[int, int]]:
        """The database's file, as the store would name it."""
        found = os.stat(self.outside / "chats.db")
        return {(found.st_dev, found.st_ino)}

    def link(self, name: str, target: str) -> None:
        os.symlink(target, self.root / name)


def outside(tree: Tree) -> dict[str, tuple[object, ...]]:
    """All that lies outside the workspace, so that no change escapes: bytes, kinds, names, and when they changed."""
    seen: dict[str, tuple[object, ...]] = {}
    for folder, folders, files in os.walk(tree.base):
        folders[:] = [name for name in folders if Path(folder, name) not in (tree.root, tree.extra)]
        for path in (folder, *(os.path.join(folder, name) for name in files)):
            found = os.lstat(path)
            bytes_ = Path(path).read_bytes() if stat.S_ISREG(found.st_mode) else b""
            seen[path] = (found.st_mode, found.st_nlink, found.st_mtime_ns, found.st_ctime_ns, bytes_)
    return seen


def litter(base: Path) -> list[Path]:
    """What an interrupted write has left, anywhere."""
    return list(base.rglob(".sidecar-*"))


def careful(tree: Tree) -> Workspace:
    """With openat2, where it is: a test before this one may not have made us believe otherwise."""
    assert has_openat2() or not HAD_OPENAT2
    return Workspace(str(tree.root), [str(tree.extra)], tree.own_files)


def by_hand(tree: Tree) -> Workspace:
    return Workspace(str(tree.root), [str(tree.extra)], tree.own_files, by_hand=True)


class Twin(Workspace):
    """Deliberately broken, as most are: the real path is compared as text, and then opened."""

    def resolve(self, path: str) -> ConfinedPath:
        return ConfinedPath(self.root, (path,), path)

    def _open(self, place: ConfinedPath, path: str, *, folder: bool) -> int:
        try:
            return os.open(self._real(path), os.O_RDONLY | os.O_NONBLOCK)
        except (OSError, ValueError) as error:
            raise Refused("not_found", str(error)) from error

    @contextmanager
    def hold(self, path: str, *, make: bool = False) -> Iterator[HeldEntry]:
        try:
            folder, name = os.path.split(self._real(path))
            if make:
                os.makedirs(folder, exist_ok=True)
            fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except (OSError, ValueError) as error:
            raise Refused("not_found", str(error)) from error
        try:
            yield HeldEntry(fd, os.fsencode(name), None, (), False)
        finally:
            os.close(fd)

    def check(self, path: str, *, folder: bool = False) -> FileCheck:
        return lambda found: None

    def _real(self, path: str) -> str:
        real = os.path.realpath(os.path.join(self.root, path))
        # Where it could be right, it is not to build a tree so deep that nobody can remove it.
        if not real.startswith(self.root) or len(real) > 1000:
            raise Refused("denied", "outside")
        return real


def broken(tree: Tree) -> Workspace:
    return Twin(str(tree.root))


def hostile(base: Path) -> Tree:
    """The tree with all links, pipes and sockets that the corpus goes through."""
    tree = Tree(base)
    (tree.outside / "chats.db").write_bytes(SECRET)
    for hard in ("hard", "a/b/hard", "hard.txt"):
        os.link(tree.outside / "chats.db", tree.root / hard)
    for name, target in _links(tree).items():
        tree.link(name, target)
    os.mkfifo(tree.root / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        folder = os.open(tree.root, os.O_RDONLY)
        server.bind(f"/proc/self/fd/{folder}/socket")
        os.close(folder)
    return tree


def _links(tree: Tree) -> dict[str, str]:
    chain = {f"long{n}": f"long{n + 1}" for n in range(50)} | {"long50": "inside.txt"}
    return chain | {
        "out_file": f"{tree.outside}/secret.txt",
        "out_rel": "../outside/secret.txt",
        "out_dir": "../outside",
        "out_abs": str(tree.outside),
        "a/up": "../../outside",
        "a/b/climb": "../../../outside/secret.txt",
        "chain1": "chain2",
        "chain2": "a/../chain3",
        "chain3": "a/up/secret.txt",
        "parent": "..",
        "parents": "parent",
        "top": "/",
        "dotty": "./././../outside/secret.txt",
        "slashy": "..//outside///secret.txt",
        "trailing": "../outside/",
        "evil": "../project_evil",
        "bounce": "../project/inside.txt",
        "absolute_inside": f"{tree.root}/inside.txt",
        "into_extra": str(tree.extra),
        "in_and_out": "a/b/../../../outside/secret.txt",
        "missing_and_out": "missing/../../outside/secret.txt",
        "file_and_out": "inside.txt/../../outside/secret.txt",
        "nowhere": "../outside/none",
        "far": "../" * 60 + "etc/passwd",
        "proc_root": "/proc/self/root",
        "proc_cwd": "/proc/self/cwd",
        "proc_fd": "/proc/self/fd",
        "proc_exe": "/proc/self/exe",
        "environ": "/proc/self/environ",
        "zero": "/dev/zero",
        "stdin": "/dev/stdin",
        "loop": "loop",
        "loop_a": "a/../loop_b",
        "loop_b": "./loop_a",
        "loop_in": "loop_in/x",
        "to_fifo": "fifo",
        "to_folder": "a/b",
        "soft": "hard",
        "a/soft": "b/hard",
        "file_slash": "inside.txt/",
        "a/b/out": "../../../outside",
        "a/b/abs": str(tree.outside),
        "a/mid": "b/out",
        "first": "a/mid",
        "self": ".",
        "selves": "self/./self/self",
        "around": "a/b/../../a/b/out",
        "again": "../project",
        "new_out": "../outside/new.txt",
        "new_folder_out": "../outside/new",
        "new_in": "none.txt",
        "new_folder_in": "none",
        "new_in_chain": "self/new_in",
        "database": "../outside/chats.db",
        "log": "../outside/chats.db-wal",
        "to_hard": "a/b/hard",
        "to_soft": "self/soft",
        "to_socket": "./socket",
        "to_fifos": "to_fifo",
        "proc": "/proc",
        "proc_thread": "/proc/thread-self/root",
        "proc_task": "/proc/self/task",
        "proc_maps": "/proc/self/map_files",
        "dev_fd": "/dev/fd",
        "tty": "/dev/tty",
        "shared": "/dev/shm",
        "sys": "/sys",
        "temporary": "/tmp",
        "full": "/dev/full",
        "loop_far": "a/b/../../self/loop_far",
    }
