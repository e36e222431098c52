"""What git says has changed in a project, without running anything that the project's repository asks for.

Git is shown a stand-in of the repository (`repository`), made for the one call, and an environment of ours: no
configuration but ours, no hooks, no network, no prompts, and it writes nothing. Not known here is what a diff is for.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Literal

import anyio
import anyio.to_thread
import msgspec

from ..system.capture import Captured, capture
from .paths import Workspace
from .repository import Repository, examined, furnish, is_repository, refused, remove, settings_of

__all__ = ["FileDiff", "GitDiff", "diff", "is_repository"]

SECONDS = 10.0
"""For all that one call asks of git."""

MAX_OUTPUT = 1024 * 1024
"""Bytes of a diff. Nobody reads more, and a model far less."""

MAX_UNTRACKED = 200
"""Names of files that git does not know; a folder of such files counts once."""

Status = Literal["added", "modified", "deleted", "type_changed", "unmerged"]

_STATUS: dict[str, Status] = {
    "A": "added",
    "M": "modified",
    "D": "deleted",
    "T": "type_changed",
    "U": "unmerged",
}
_DIFF = (
    "diff",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--no-renames",
    "--ignore-submodules=all",
    "--relative",
    "--src-prefix=a/",
    "--dst-prefix=b/",
)
_OVERRIDES = (
    "--no-pager",
    "--no-optional-locks",
    "--literal-pathspecs",
    *("-c", "core.attributesFile=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.quotePath=false"),
    *("-c", "diff.autoRefreshIndex=false"),
    *("-c", "protocol.allow=never"),
)
"""The stand-in names no programs and a diff takes no lock; said again where a new git may come to think otherwise."""

_ENV = {
    "PATH": "/usr/bin:/bin",
    "LC_ALL": "C.UTF-8",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
}


class FileDiff(msgspec.Struct, frozen=True):
    """A changed file. `added` and `removed` are lines, None for a binary file."""

    path: str
    status: Status
    added: int | None
    removed: int | None


class GitDiff(msgspec.Struct, frozen=True):
    """`summary` is git's own table, `text` the diff; `truncated` when a part of anything is left out. Paths are
    relative to the project; what lies beside it in the same repository is not told."""

    summary: str
    files: tuple[FileDiff, ...]
    untracked: tuple[str, ...]
    text: str
    truncated: bool


async def diff(workspace: Workspace, *, staged: bool = False, path: str | None = None) -> GitDiff:
    """What is changed and not staged, or what is staged; Refused when that cannot be told, with the reason.

    Nothing that was started outlives the call, also when it is cancelled.
    """
    import shutil
    import tempfile

    program = shutil.which("git")
    if program is None or not os.path.isabs(program):
        raise refused("unsupported", "git is not installed")
    place = workspace.resolve(path or ".")
    if place.root != workspace.root:
        raise refused("outside", "git is asked about the project alone, not about further folders")
    repository = await anyio.to_thread.run_sync(examined, workspace, abandon_on_cancel=True)
    folder = await anyio.to_thread.run_sync(workspace.open_dir, ".", abandon_on_cancel=True)
    home = tempfile.mkdtemp(prefix="sidecar-git-")
    try:
        git = _Git(program, folder, home, repository)
        await git.prepare()
        return await git.diff(staged, place.shown)
    finally:
        os.close(folder)
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(remove, home)


class _Git:
    """Git, for one call."""

    def __init__(self, program: str, folder: int, home: str, repository: Repository) -> None:
        self._program = program
        self._folder = folder
        self._home = home
        self._repository = repository
        self._until = time.monotonic() + SECONDS

    async def prepare(self) -> None:
        config = os.path.join(self._repository.common, "config")
        listed = await self._run(["config", "--file", config, "--no-includes", "-z", "--list"])
        settings = settings_of(listed.out, self._repository)
        await anyio.to_thread.run_sync(furnish, self._home, self._repository, settings)

    async def diff(self, staged: bool, path: str) -> GitDiff:
        command = [*_DIFF, *(["--cached"] if staged else [])]
        table = await self._run([*command, "--raw", "--numstat", "-z", "--", path])
        shown = await self._run([*command, "--stat=100", "--patch", "--", path])
        others = ["ls-files", "--others", "--directory", "--no-empty-directory", "--exclude-standard", "-z"]
        unknown = await self._run([*others, "--", path])
        names = [os.fsdecode(name) for name in unknown.out.split(b"\0")[:-1]]
        summary, text = _parted(shown.out.decode(errors="replace"))
        cut = any(part.stopped for part in (table, shown, unknown)) or len(names) > MAX_UNTRACKED
        whole = _ended(text) if shown.stopped else text
        return GitDiff(summary, _files(table.out), tuple(names[:MAX_UNTRACKED]), whole, cut)

    async def _run(self, command: Sequence[str]) -> Captured:
        done = await capture(
            [self._program, *_OVERRIDES, *command],
            folder=self._folder,
            env=self._env(),
            seconds=max(0.0, self._until - time.monotonic()),
            max_bytes=MAX_OUTPUT,
        )
        if done.stopped == "time":
            raise refused("timeout", f"git took longer than {SECONDS:.0f} s")
        if done.stopped is None and done.code:
            raise refused("git", f"git failed: {done.err.decode(errors='replace').strip()[:500]}")
        return done

    def _env(self) -> dict[str, str]:
        return {
            **_ENV,
            "HOME": self._home,
            "XDG_CONFIG_HOME": self._home,
            "GIT_DIR": self._home,
            "GIT_WORK_TREE": self._repository.top,
            "GIT_INDEX_FILE": os.path.join(self._repository.own, "index"),
            "GIT_CEILING_DIRECTORIES": "/",
        }


def _parted(shown: str) -> tuple[str, str]:
    """The table and the diff, which an empty line parts: a name with a line break in it is quoted."""
    table, _, text = shown.partition("\n\n")
    return table.rstrip("\n"), text


def _ended(text: str) -> str:
    """A diff that was cut off by its size, with its last line whole and a word on it."""
    return f"{text[: text.rfind(chr(10)) + 1]}… the rest is left out: the diff has more than {MAX_OUTPUT} bytes\n"


def _files(table: bytes) -> tuple[FileDiff, ...]:
    """`:modes hashes status`, NUL, path, NUL for each file, then `added TAB removed TAB path NUL`."""
    status: dict[str, Status] = {}
    lines: dict[str, tuple[int | None, int | None]] = {}
    fields = iter(table.split(b"\0")[:-1])
    for field in fields:
        if field.startswith(b":"):
            path = os.fsdecode(next(fields, b""))
            # What is unmerged is listed a second time, as what it has become.
            status.setdefault(path, _STATUS.get(field.decode().rpartition(" ")[2][:1], "modified"))
        else:
            added, removed, name = field.split(b"\t", 2)
            lines[os.fsdecode(name)] = (_count(added), _count(removed))
    return tuple(FileDiff(path, kind, *lines.get(path, (0, 0))) for path, kind in status.items())


def _count(field: bytes) -> int | None:
    return None if field == b"-" else int(field)
