"""Locates the repository of a project, checks that it may be read, and creates a stand-in for git.

A repository's own configuration names programs that git would run even for a diff: file watchers, filters,
external diffs, hooks, transports. So git does not get it. The stand-in is a folder with our configuration,
while references, objects and the index are the project's. Only project settings that define what counts as a
change and cannot name a program are copied. Blocking functions; runs nothing itself.

Refused with a message is what would make git read elsewhere: a `.git` that is a link or points outside,
objects borrowed from another repository, a work tree that is not the project.
"""

from __future__ import annotations

import os
import re
import stat
from typing import TYPE_CHECKING

import msgspec

from ..model.failures import Refused
from ..system.confined_open import FOLDER, open_beneath
from ..system.lazy import lazy_module
from .git_waits import check_waits, git_refusal
from .paths import Workspace

if TYPE_CHECKING:
    import shutil
else:
    shutil = lazy_module("shutil")

GIT = ".git"
COPIED_SETTINGS = {
    "core.autocrlf": {"true", "false", "input"},
    "core.eol": {"lf", "crlf", "native"},
    "core.filemode": {"true", "false"},
    "core.ignorecase": {"true", "false"},
    "core.precomposeunicode": {"true", "false"},
    "core.symlinks": {"true", "false"},
    "extensions.objectformat": {"sha1", "sha256"},
}
"""Settings of the repository that are copied, and their allowed values."""

_MAX_HEAD = 4096  # bytes: a branch name, or a hash
_MAX_POINTER = 8192  # bytes of a file that names a folder
_MAX_EXCLUDE = 256 * 1024  # bytes of `info/exclude`; a longer one is not used


class Repository(msgspec.Struct, frozen=True):
    """`top` is the work tree: the project, or a folder above it. `own` contains HEAD and the index, `common`
    the rest; they differ for a linked work tree."""

    top: str
    own: str
    common: str
    head: bytes
    exclude: bytes = b""
    """The patterns of `info/exclude`, which git gets as a copy: it would block on a FIFO in its place."""


def is_repository(workspace: Workspace) -> bool:
    """Return whether the project is a work tree of git, or inside one."""
    return _find_work_tree(workspace) is not None


def find_repository(workspace: Workspace) -> Repository:
    """Return the project's repository, if all of it is where it should be."""
    top = _find_work_tree(workspace)
    if top is None:
        raise Refused("not_found", "The project is not in a git repository")
    git = os.path.join(top, GIT)
    kind = os.lstat(git).st_mode
    if stat.S_ISLNK(kind):
        raise git_refusal("links", "The project's .git is a link; it is not followed")
    if stat.S_ISDIR(kind):
        own = common = git
    else:
        own, common = _linked_folders(workspace, top, git)
    head = _read(workspace, own, "HEAD", _MAX_HEAD)
    if not head.strip():
        raise git_refusal("kind", "The project's .git is not a repository")
    for folder in ("objects", "refs"):
        _check_folder(workspace, common, folder)
    for name in ("config", "packed-refs"):
        _read(workspace, common, name, 1)
    _read(workspace, own, "index", 1)
    if any(_read(workspace, common, f"objects/info/{name}", _MAX_POINTER).strip() for name in _ALTERNATES):
        raise git_refusal("outside", "The repository borrows objects from another one, which is not read")
    check_waits(top, own, common)
    return Repository(top, own, common, head, _exclude(workspace, common))


_ALTERNATES = ("alternates", "http-alternates")


def parse_settings(listed: bytes, repository: Repository) -> dict[str, str]:
    """Return the copied settings of a configuration, as `git config -z --list` prints it."""
    kept: dict[str, str] = {}
    for entry in listed.decode(errors="replace").split("\0"):
        name, _, value = entry.partition("\n")
        if name == "core.worktree" and repository.own == os.path.join(repository.top, GIT):
            elsewhere = os.path.realpath(os.path.join(repository.own, value))
            if elsewhere != repository.top:
                raise git_refusal("outside", "The repository's work tree lies elsewhere (core.worktree)")
        if value in COPIED_SETTINGS.get(name, ()):
            kept[name] = value
    return kept


def create_stand_in(home: str, repository: Repository, settings: dict[str, str]) -> None:
    """Turn the empty folder `home` into the stand-in of the repository."""
    sha256 = settings.get("extensions.objectformat") == "sha256"
    lines = ["[core]", f"repositoryformatversion = {int(sha256)}", "bare = false"]
    for name, value in settings.items():
        section, _, key = name.partition(".")
        lines += [f"[{section}]", f"{key} = {value}"]
    _write(os.path.join(home, "config"), "\n".join(lines).encode() + b"\n")
    _write(os.path.join(home, "HEAD"), repository.head)
    links = {name: os.path.join(repository.common, name) for name in ("objects", "refs", "packed-refs")}
    links |= {name: os.path.join(repository.own, name) for name in _shared_indexes(repository.own)}
    for name, target in links.items():
        os.symlink(target, os.path.join(home, name))
    os.mkdir(os.path.join(home, "info"))
    _write(os.path.join(home, "info/exclude"), repository.exclude)


def remove_stand_in(home: str) -> None:
    """Remove the stand-in, but not the targets of its links."""
    shutil.rmtree(home, ignore_errors=True)


def _find_work_tree(workspace: Workspace) -> str | None:
    """Return the nearest folder with a `.git`, from the project upwards on its own file system.

    Above the project it counts only if it belongs to the same user: anyone may create a `.git` in /tmp.
    """
    project = os.stat(workspace.root)
    folder = workspace.root
    while True:
        try:
            found = os.lstat(os.path.join(folder, GIT))
        except OSError:
            found = None
        if found is not None:
            ours = folder == workspace.root or found.st_uid in (os.geteuid(), project.st_uid)
            return folder if ours else None
        above = os.path.dirname(folder)
        if above == folder or os.stat(above).st_dev != project.st_dev:
            return None
        folder = above


def _linked_folders(workspace: Workspace, top: str, git: str) -> tuple[str, str]:
    """Return the folders of a linked work tree (`git worktree add`). A `.git` file that names a repository
    proves nothing; the repository must name this very file as one of its work trees."""
    pointer = _read(workspace, top, GIT, _MAX_POINTER)
    if pointer.startswith(b"gitdir:"):
        own = _named_path(top, pointer.removeprefix(b"gitdir:"))
        back = _named_path(own, _read(workspace, own, "gitdir", _MAX_POINTER))
        common = _named_path(own, _read(workspace, own, "commondir", _MAX_POINTER))
        if back == git and own.startswith(f"{common}/worktrees/"):
            return own, common
    raise git_refusal("outside", "The project's .git points to another folder, which is not read")


def _named_path(folder: str, text: bytes) -> str:
    """Return the real path of what a file of the repository names, relative to `folder` or absolute."""
    return os.path.realpath(os.path.join(folder, os.fsdecode(text.strip())))


def _read(workspace: Workspace, folder: str, path: str, max_bytes: int) -> bytes:
    """Return a small file below a folder of the repository; empty when it does not exist. Never one of our
    database."""
    fd = _open(workspace, folder, path, os.O_RDONLY, is_folder=False)
    if fd is None:
        return b""
    with open(fd, "rb") as file:
        return file.read(max_bytes)


def _exclude(workspace: Workspace, common: str) -> bytes:
    """Return the patterns of `info/exclude`; none when it is not a regular file of ordinary size."""
    try:
        found = _read(workspace, common, "info/exclude", _MAX_EXCLUDE + 1)
    except Refused:
        return b""
    return found if len(found) <= _MAX_EXCLUDE else b""


def _check_folder(workspace: Workspace, folder: str, path: str) -> None:
    """Refuse a folder that does not exist, or that a link leads out of the repository."""
    fd = _open(workspace, folder, path, os.O_RDONLY, is_folder=True)
    if fd is None:
        raise git_refusal("kind", "The project's .git is not a repository")
    os.close(fd)


def _open(workspace: Workspace, folder: str, path: str, flags: int, *, is_folder: bool) -> int | None:
    try:
        top = os.open(folder, FOLDER)
    except OSError:
        return None
    try:
        check = workspace.check(path, folder=is_folder)
        return open_beneath(top, [os.fsencode(name) for name in path.split("/")], flags, check)
    except FileNotFoundError:
        return None
    except OSError as error:
        words = f"The repository is not read: its {path} leads elsewhere, or may not be opened"
        raise git_refusal("outside", words) from error
    finally:
        os.close(top)


def _shared_indexes(folder: str) -> list[str]:
    """Return the files in which a split index continues."""
    return [name for name in os.listdir(folder) if re.fullmatch(r"sharedindex\.[0-9a-f]{40,64}", name)]


def _write(path: str, data: bytes) -> None:
    with open(path, "xb") as file:
        file.write(data)
