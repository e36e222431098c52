"""Where the repository of a project is, whether it may be read, and a stand-in for it that git can be shown.

A repository's own configuration names programs that git would run for a mere diff: file watchers, filters, external
diffs, hooks, transports. So git is not shown it. The stand-in is a folder of ours whose configuration is ours, while
references, objects and the index are the project's. Of the project's settings only those are taken over that say
what counts as a change and cannot name a program. Blocking functions; runs nothing itself.

Refused, in words, is what would make git read elsewhere: a `.git` that is a link or points away, objects borrowed
from another repository, a work tree that is not the project.
"""

from __future__ import annotations

import os
import re
import stat

import msgspec

from ..model.failures import Refused
from ..system.beneath import FOLDER, open_beneath
from .paths import Workspace

GIT = ".git"
TAKEN_OVER = {
    "core.autocrlf": {"true", "false", "input"},
    "core.eol": {"lf", "crlf", "native"},
    "core.filemode": {"true", "false"},
    "core.ignorecase": {"true", "false"},
    "core.precomposeunicode": {"true", "false"},
    "core.symlinks": {"true", "false"},
    "extensions.objectformat": {"sha1", "sha256"},
}
"""Settings of the repository that are kept, and what they may say."""

_MAX_HEAD = 4096  # bytes: a name of a branch, or a hash
_MAX_POINTER = 8192  # bytes of a file that says where a folder is


class Repository(msgspec.Struct, frozen=True):
    """`top` is the work tree: the project, or a folder above it. `own` holds HEAD and the index, `common` the
    rest; they differ for a linked work tree."""

    top: str
    own: str
    common: str
    head: bytes


def is_repository(workspace: Workspace) -> bool:
    """Whether the project is a work tree of git, or lies in one."""
    return _top(workspace) is not None


def examined(workspace: Workspace) -> Repository:
    """The project's repository, if all of it is where it should be."""
    top = _top(workspace)
    if top is None:
        raise Refused("not_found", "The project is not in a git repository")
    git = os.path.join(top, GIT)
    kind = os.lstat(git).st_mode
    if stat.S_ISLNK(kind):
        raise refused("links", "The project's .git is a link; it is not followed")
    if stat.S_ISDIR(kind):
        own = common = git
    else:
        own, common = _linked(workspace, top, git)
    head = _read(workspace, own, "HEAD", _MAX_HEAD)
    if not head.strip():
        raise refused("kind", "The project's .git is not a repository")
    for folder in ("objects", "refs"):
        _find_folder(workspace, common, folder)
    for name in ("config", "packed-refs"):
        _read(workspace, common, name, 1)
    _read(workspace, own, "index", 1)
    if any(_read(workspace, common, f"objects/info/{name}", _MAX_POINTER).strip() for name in _ALTERNATES):
        raise refused("outside", "The repository borrows objects from another one, which is not read")
    return Repository(top, own, common, head)


_ALTERNATES = ("alternates", "http-alternates")


def settings_of(listed: bytes, repository: Repository) -> dict[str, str]:
    """What is taken over of a configuration, as `git config -z --list` prints it."""
    kept: dict[str, str] = {}
    for entry in listed.decode(errors="replace").split("\0"):
        name, _, value = entry.partition("\n")
        if name == "core.worktree" and repository.own == os.path.join(repository.top, GIT):
            elsewhere = os.path.realpath(os.path.join(repository.own, value))
            if elsewhere != repository.top:
                raise refused("outside", "The repository's work tree lies elsewhere (core.worktree)")
        if value in TAKEN_OVER.get(name, ()):
            kept[name] = value
    return kept


def furnish(home: str, repository: Repository, settings: dict[str, str]) -> None:
    """Make the empty folder `home` the stand-in of the repository."""
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
    os.symlink(os.path.join(repository.common, "info/exclude"), os.path.join(home, "info/exclude"))


def remove(home: str) -> None:
    """Take the stand-in away; what its links lead to stays."""
    import shutil

    shutil.rmtree(home, ignore_errors=True)


def refused(reason: str, words: str) -> Refused:
    return Refused("denied", words, reason=reason)


def _top(workspace: Workspace) -> str | None:
    """The nearest folder with a `.git`, from the project upwards on its own file system.

    Above the project it counts only when it belongs to the same user: anyone may put a `.git` into /tmp.
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


def _linked(workspace: Workspace, top: str, git: str) -> tuple[str, str]:
    """The folders of a linked work tree (`git worktree add`). That a `.git` file names a repository proves nothing;
    that the repository names this very file as one of its work trees does."""
    pointer = _read(workspace, top, GIT, _MAX_POINTER)
    if pointer.startswith(b"gitdir:"):
        own = _named(top, pointer.removeprefix(b"gitdir:"))
        back = _named(own, _read(workspace, own, "gitdir", _MAX_POINTER))
        common = _named(own, _read(workspace, own, "commondir", _MAX_POINTER))
        if back == git and own.startswith(f"{common}/worktrees/"):
            return own, common
    raise refused("outside", "The project's .git points to another folder, which is not read")


def _named(folder: str, text: bytes) -> str:
    """The real path of what a file of the repository names, relative to `folder` or from `/` on."""
    return os.path.realpath(os.path.join(folder, os.fsdecode(text.strip())))


def _read(workspace: Workspace, folder: str, path: str, max_bytes: int) -> bytes:
    """A small file beneath a folder of the repository; empty when it is not there. Never one of our database."""
    fd = _open(workspace, folder, path, os.O_RDONLY, is_folder=False)
    if fd is None:
        return b""
    with open(fd, "rb") as file:
        return file.read(max_bytes)


def _find_folder(workspace: Workspace, folder: str, path: str) -> None:
    """Refuse a folder that is not there, or that a link leads out to."""
    fd = _open(workspace, folder, path, os.O_RDONLY, is_folder=True)
    if fd is None:
        raise refused("kind", "The project's .git is not a repository")
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
        raise refused("outside", words) from error
    finally:
        os.close(top)


def _shared_indexes(folder: str) -> list[str]:
    """The files that a split index goes on in."""
    return [name for name in os.listdir(folder) if re.fullmatch(r"sharedindex\.[0-9a-f]{40,64}", name)]


def _write(path: str, data: bytes) -> None:
    with open(path, "xb") as file:
        file.write(data)
