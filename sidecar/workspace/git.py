"""Reads what git reports as changed in a project, without running anything that the project's repository
configures.

Git gets a stand-in of the repository (`repository`), created for the call, and our own environment: no other
configuration, no hooks, no network, no prompts, and it writes nothing. Does not know what a diff is used for.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import anyio
import anyio.to_thread
import msgspec

from ..system.capture import Captured, capture
from ..system.lazy import lazy_module
from ..system.programs import find_program
from .git_waits import git_refusal
from .paths import ReadFilter, Workspace
from .repository import (
    Repository,
    create_stand_in,
    find_repository,
    is_repository,
    parse_settings,
    remove_stand_in,
)

if TYPE_CHECKING:
    import tempfile
else:
    tempfile = lazy_module("tempfile")

__all__ = ["FileDiff", "GitDiff", "diff", "is_repository"]

SECONDS = 10.0
"""For everything that one call runs in git."""

MAX_OUTPUT = 1024 * 1024
"""Bytes of a diff. Nobody reads more, and a model far less."""

MAX_UNTRACKED = 200
"""Names of untracked files; a folder of such files counts once."""

ChangeStatus = Literal["added", "modified", "deleted", "type_changed", "unmerged"]

_STATUS: dict[str, ChangeStatus] = {
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
"""The stand-in names no programs and a diff takes no lock; repeated in case a newer git changes its defaults."""

_WITH_PATTERNS = tuple(word for word in _OVERRIDES if word != "--literal-pathspecs")

MAX_PATHS = 64 * 1024
"""Characters of names in a command: half of the argument limit of Linux on small systems."""

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
    status: ChangeStatus
    added: int | None
    removed: int | None


class GitDiff(msgspec.Struct, frozen=True):
    """`summary` is git's own table, `text` the diff; `truncated` when a part of anything is omitted. Paths
    are relative to the project; changes elsewhere in the same repository are not included."""

    summary: str
    files: tuple[FileDiff, ...]
    untracked: tuple[str, ...]
    text: str
    truncated: bool
    left_out: tuple[tuple[str, str], ...] = ()
    """Changed files that are not shown, with the reason."""


async def diff(
    workspace: Workspace, *, staged: bool = False, path: str | None = None, left_out: ReadFilter | None = None
) -> GitDiff:
    """Return the unstaged or the staged changes; Refused with the reason when they cannot be determined.

    No started process outlives the call, even when it is cancelled.
    """
    program = find_program("git")
    if program is None:
        raise git_refusal("unsupported", "git is not installed")
    place = workspace.resolve(path or ".")
    if place.root != workspace.root:
        raise git_refusal("outside", "git is only available for the project, not for further folders")
    repository = await anyio.to_thread.run_sync(find_repository, workspace, abandon_on_cancel=True)
    folder = await anyio.to_thread.run_sync(workspace.open_dir, ".", abandon_on_cancel=True)
    home = tempfile.mkdtemp(prefix="sidecar-git-")
    try:
        git = _Git(program, folder, home, repository)
        await git.prepare()
        return await git.diff(staged, place.shown, left_out)
    finally:
        os.close(folder)
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(remove_stand_in, home)


class _Git:
    """Git, for one call."""

    def __init__(self, program: str, folder: int, home: str, repository: Repository) -> None:
        self._program = program
        self._folder = folder
        self._home = home
        self._repository = repository
        self._until = time.monotonic() + SECONDS

    async def prepare(self) -> None:
        # Read by git, which knows its format, but as data: `--file` applies none of it.
        config = os.path.join(self._repository.common, "config")
        listed = await self._run(["config", "--file", config, "--no-includes", "-z", "--list"])
        settings = parse_settings(listed.out, self._repository)
        await anyio.to_thread.run_sync(create_stand_in, self._home, self._repository, settings)

    async def diff(self, staged: bool, path: str, left_out: ReadFilter | None) -> GitDiff:
        command = [*_DIFF, *(["--cached"] if staged else [])]
        table = await self._run([*command, "--raw", "--numstat", "-z", "--", path])
        files, left = await anyio.to_thread.run_sync(_split_excluded, _files(table.out), left_out)
        # A list that was cut may lack a file that must not be shown, and the diff would show it.
        if left_out is not None and table.stopped:
            raise git_refusal(
                "too_large", "There are too many changes to determine which may be shown; name a folder"
            )
        shown = await self._run_diff([*command, "--stat=100", "--patch"], path, [name for name, _ in left])
        others = ["ls-files", "--others", "--directory", "--no-empty-directory", "--exclude-standard", "-z"]
        unknown = await self._run([*others, "--", path])
        names = [os.fsdecode(name) for name in unknown.out.split(b"\0")[:-1]]
        summary, text = _split_output(shown.out.decode(errors="replace"))
        if shown.stopped:
            text = await self._patches([*command, "--patch"], [file.path for file in files], MAX_OUTPUT)
        cut = any(part.stopped for part in (table, shown, unknown)) or len(names) > MAX_UNTRACKED
        return GitDiff(summary, files, tuple(names[:MAX_UNTRACKED]), text, cut, left)

    async def _patches(self, command: Sequence[str], paths: Sequence[str], space: int) -> str:
        """Return the diff of these files, in halves if it is too long: so a huge file hides no other."""
        if not paths:
            return ""
        few = len(paths) == 1 or sum(map(len, paths)) <= MAX_PATHS
        if few:
            shown = await self._run([*command, "--", *paths], max_bytes=space)
            text = shown.out.decode(errors="replace")
            if not shown.stopped:
                return text
            if len(paths) == 1:
                return _close_diff(text, space)
        middle = len(paths) // 2
        first = await self._patches(command, paths[:middle], space // 2)
        return first + await self._patches(command, paths[middle:], space - len(first.encode()))

    async def _run_diff(self, command: Sequence[str], path: str, left: Sequence[str]) -> Captured:
        """Run the diff without some files. Their names are excluded literally, not as patterns."""
        if not left:
            return await self._run([*command, "--", path])
        if sum(map(len, left)) > MAX_PATHS:
            raise git_refusal("too_large", "Too many changed files may not be shown; name a folder or a file")
        # Excluded by git itself: cutting it out of the diff afterwards would need a parser that is never
        # wrong.
        excluded = [f":(exclude,literal){name}" for name in left]
        return await self._run([*command, "--", f":(literal){path}", *excluded], overrides=_WITH_PATTERNS)

    async def _run(
        self, command: Sequence[str], overrides: Sequence[str] = (), max_bytes: int = MAX_OUTPUT
    ) -> Captured:
        done = await capture(
            [self._program, *(overrides or _OVERRIDES), *command],
            folder=self._folder,
            env=self._env(),
            seconds=max(0.0, self._until - time.monotonic()),
            max_bytes=max_bytes,
        )
        if done.stopped == "time":
            raise git_refusal("timeout", f"git took longer than {SECONDS:.0f} s")
        if done.stopped is None and done.code:
            raise git_refusal("git", f"git failed: {done.err.decode(errors='replace').strip()[:500]}")
        return done

    def _env(self) -> dict[str, str]:
        return {
            **_ENV,
            "HOME": self._home,
            "XDG_CONFIG_HOME": self._home,
            # The stand-in, not the repository: a configuration that names programs is never read.
            "GIT_DIR": self._home,
            "GIT_WORK_TREE": self._repository.top,
            "GIT_INDEX_FILE": os.path.join(self._repository.own, "index"),
            "GIT_CEILING_DIRECTORIES": "/",
        }


def _split_output(shown: str) -> tuple[str, str]:
    """Split the output at the empty line between table and diff: a name with a line break in it is quoted."""
    table, _, text = shown.partition("\n\n")
    return table.rstrip("\n"), text


def _close_diff(text: str, space: int) -> str:
    """End a diff that was cut by its size after its last whole line, with a notice."""
    kept = text[: text.rfind("\n") + 1]
    return f"{kept}… the rest is left out: the diff of this file has more than {space} bytes\n"


def _files(table: bytes) -> tuple[FileDiff, ...]:
    """Parse `:modes hashes status`, NUL, path, NUL for each file, then `added TAB removed TAB path NUL`."""
    status: dict[str, ChangeStatus] = {}
    lines: dict[str, tuple[int | None, int | None]] = {}
    fields = iter(table.split(b"\0")[:-1])
    for field in fields:
        if field.startswith(b":"):
            path = os.fsdecode(next(fields, b""))
            # An unmerged file is listed a second time, as its result.
            status.setdefault(path, _STATUS.get(field.decode().rpartition(" ")[2][:1], "modified"))
        else:
            added, removed, name = field.split(b"\t", 2)
            lines[os.fsdecode(name)] = (_count(added), _count(removed))
    return tuple(FileDiff(path, kind, *lines.get(path, (0, 0))) for path, kind in status.items())


def _split_excluded(
    files: tuple[FileDiff, ...], left_out: ReadFilter | None
) -> tuple[tuple[FileDiff, ...], tuple[tuple[str, str], ...]]:
    """Return the files to show, and the hidden ones with the reason."""
    if left_out is None:
        return files, ()
    reasons = {file.path: left_out(file.path) for file in files}
    left = tuple((path, reason) for path, reason in reasons.items() if reason)
    return tuple(file for file in files if not reasons[file.path]), left


def _count(field: bytes) -> int | None:
    return None if field == b"-" else int(field)
