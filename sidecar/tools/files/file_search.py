"""Find the lines of files that match a regular expression, with ripgrep or, without it, with a worker process.

Both return line numbers only; the lines are read later, through the workspace. A file that is replaced by a symbolic
link during the search therefore reveals nothing of the link's target. Knows nothing of the model and its results.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence

import msgspec

from ...model.failures import Refused
from ...system.capture import Captured, capture
from ...system.helper_programs import helper_command
from ...system.programs import find_program
from ...workspace.git_waits import has_waiting_rules
from ...workspace.globs import expand_braces
from ...workspace.ignore import Ignore
from ...workspace.paths import ConfinedPath, ReadFilter, Workspace
from ..base import ToolContext, ToolError
from .glob import PathFilter, child_path, walk

SECONDS = 20.0
"""Seconds for one search. Catastrophic backtracking and a project that is a whole disk both end here."""

MAX_FILE_BYTES = 8 * 1024 * 1024
"""Bytes of a file that is searched; larger files are data, not text that someone wrote."""

MAX_MATCHES = 200
MAX_MATCHES_PER_FILE = 50
"""Matches in one result, and per file in it; a narrower pattern finds more."""

_MAX_OUTPUT = 16 * 1024 * 1024
"""Bytes of a matcher's output: a path and a number for each of some 200,000 files."""

_BATCH_BYTES = 1024 * 1024
"""Bytes of files that are read at once for the worker: enough that the switch to a thread does not matter."""


class FileQuery(msgspec.Struct, frozen=True):
    """What to search for, and where: in a folder, in the files that `chosen` accepts, or in one file. `glob` is the
    pattern that `chosen` was made from.
    """

    pattern: str
    ignore_case: bool
    start: ConfinedPath
    chosen: PathFilter
    glob: str | None
    one_file: bool
    left_out: ReadFilter | None = None
    """Which files of a folder are skipped; permission for a single file was checked before."""

    def stops(self, path: str) -> str | None:
        return None if self.one_file or self.left_out is None else self.left_out(path)


class FileMatches(msgspec.Struct, frozen=True):
    """A file with matches: the number of matching lines, and for the first files the first of them."""

    path: str
    count: int
    lines: tuple[int, ...] = ()


def find_ripgrep() -> str | None:
    """Where ripgrep is, if it is installed."""
    return find_program("rg")


def share_matches(hits: Sequence[FileMatches]) -> list[tuple[FileMatches, int]]:
    """Return the files that fit in a result, and how many matches of each."""
    space = MAX_MATCHES
    taken: list[tuple[FileMatches, int]] = []
    for hit in hits:
        share = min(hit.count, MAX_MATCHES_PER_FILE, space)
        # The first files in full instead of a line of each: a reader opens one of them.
        if not share:
            break
        taken.append((hit, share))
        space -= share
    return taken


async def search_with_ripgrep(
    program: str, query: FileQuery, context: ToolContext, *, lines: bool
) -> list[FileMatches]:
    """Count the matches per file first, which is little to read; then find the lines in the first files."""
    until = time.monotonic() + SECONDS
    where = await context.block(_open_root, context.workspace, query)
    try:
        counted = await _run_ripgrep(program, query, where, until, _count_options(query, where))
        hits = await context.block(_parse_counts, context.workspace, query, counted)
        if not lines or not hits:
            return hits
        names = {_path_argument(query, hit): hit for hit, _ in share_matches(hits)}
        numbers = _parse_line_numbers(await _run_ripgrep(program, query, where, until, _line_options(names)))
        located = {hit.path: numbers.get(name, ()) for name, hit in names.items()}
        return [msgspec.structs.replace(hit, lines=located.get(hit.path, ())) for hit in hits]
    finally:
        where.close()


async def left_out(program: str | None, query: FileQuery, context: ToolContext) -> list[tuple[str, str]]:
    """Return the files that are skipped, with the reason. By name alone: naming a file only when it matches would
    reveal its content.
    """
    if query.one_file:
        return []
    until = time.monotonic() + SECONDS
    if program is None:
        names = await context.block(_matching_names, context.workspace, query, until)
        return await context.block(_excluded_paths, context.workspace, query, names)
    where = await context.block(_open_root, context.workspace, query)
    try:
        done = await capture(
            [
                program,
                "--no-config",
                "--no-messages",
                "--no-follow",
                "--null",
                "--files",
                *_walk_options(query, where),
                ".",
            ],
            folder=where.folder,
            env={},
            seconds=max(0.0, until - time.monotonic()),
            max_bytes=_MAX_OUTPUT,
        )
    finally:
        where.close()
    if done.stopped == "time":
        raise TimeoutError
    names = [tuple(os.fsdecode(name).removeprefix("./").split("/")) for name in done.out.split(b"\0")[:-1]]
    return await context.block(_excluded_paths, context.workspace, query, names)


def _excluded_paths(
    workspace: Workspace, query: FileQuery, names: list[tuple[str, ...]]
) -> list[tuple[str, str]]:
    ignore = Ignore(workspace, query.start.shown)
    left: list[tuple[str, str]] = []
    for parts in sorted(names):
        path = child_path(query.start, "/".join(parts))
        reason = query.stops(path)
        if reason and query.chosen(parts) and not ignore.hides((*query.start.parts, *parts)):
            left.append((path, reason))
    return left


async def search_with_worker(query: FileQuery, context: ToolContext) -> list[FileMatches]:
    """Send files to the worker's stdin, read through the workspace, without hidden and excluded ones."""
    until = time.monotonic() + SECONDS
    paths = await context.block(_matching_paths, context.workspace, query, until)
    folder = await context.block(context.workspace.open_dir, ".")
    try:
        done = await capture(
            helper_command("sidecar.tools.files.regex_worker"),
            folder=folder,
            env={},
            seconds=max(0.0, until - time.monotonic()),
            max_bytes=_MAX_OUTPUT,
            feed=_file_batches(query, context, paths),
        )
    finally:
        os.close(folder)
    _check_exit(done)
    replies = [msgspec.json.decode(line, type=_WorkerReply) for line in done.out.splitlines()]
    wrong = next((reply.error for reply in replies if reply.error), None)
    if wrong:
        raise ToolError(f"The pattern cannot be parsed: {wrong}")
    if done.code:
        raise TimeoutError
    return [FileMatches(paths[reply.file], reply.count, reply.lines) for reply in replies]


class _WorkerReply(msgspec.Struct, frozen=True):
    file: int = 0
    count: int = 0
    lines: tuple[int, ...] = ()
    error: str | None = None


class _SearchRoot(msgspec.Struct, frozen=True):
    """The folder that ripgrep runs in, and the single file that it reads from stdin: it would follow a symbolic link
    that is given by name.
    """

    folder: int
    file: int | None = None
    waits: bool = False
    """Whether an ignore file is a FIFO, for which ripgrep would wait; then it reads no ignore files."""

    def close(self) -> None:
        os.close(self.folder)
        if self.file is not None:
            os.close(self.file)


def _open_root(workspace: Workspace, query: FileQuery) -> _SearchRoot:
    if not query.one_file:
        waits = has_waiting_rules("/".join((query.start.root, *query.start.parts)))
        return _SearchRoot(workspace.open_dir(query.start.shown), waits=waits)
    file = workspace.open_file(query.start.shown)
    size = os.fstat(file).st_size
    where = _SearchRoot(workspace.open_dir("."), file)
    if size > MAX_FILE_BYTES:
        where.close()
        raise ToolError(
            f"{query.start.shown} has more than {MAX_FILE_BYTES} bytes; grep does not look into it."
        )
    return where


async def _run_ripgrep(
    program: str, query: FileQuery, where: _SearchRoot, until: float, options: list[str]
) -> bytes:
    if where.file is not None:
        # The descriptor is shared with the child of the run before, and so is its position.
        os.lseek(where.file, 0, os.SEEK_SET)
    done = await capture(
        [program, *_COMMON_OPTIONS, *_pattern_options(query), *options],
        folder=where.folder,
        env={},
        seconds=max(0.0, until - time.monotonic()),
        max_bytes=_MAX_OUTPUT,
        feed=where.file,
    )
    _check_exit(done)
    if done.code not in (0, 1) and done.err:
        raise ToolError(f"The pattern cannot be parsed: {done.err.decode(errors='replace').strip()}")
    return done.out


_COMMON_OPTIONS = (
    "--no-config",
    "--color=never",
    "--no-messages",
    "--no-mmap",
    "--no-follow",
    "--crlf",
    "--encoding=none",
    "--with-filename",
    "--null",
)


def _pattern_options(query: FileQuery) -> list[str]:
    return [f"--regexp={query.pattern}", *(["--ignore-case"] if query.ignore_case else [])]


def _count_options(query: FileQuery, where: _SearchRoot) -> list[str]:
    """Our own rules for hidden files are applied to the result; ripgrep's rules only save it the largest folders."""
    if query.one_file:
        return ["--count", "--", "-"]
    return ["--count", *_walk_options(query, where), "--", "."]


def _walk_options(query: FileQuery, where: _SearchRoot) -> list[str]:
    """Return the options that choose which files ripgrep searches."""
    rules = ["--hidden", "--no-require-git", "--no-ignore-parent", "--no-ignore-global", "--no-ignore-dot"]
    if where.waits:
        rules.append("--no-ignore")
    return [f"--max-filesize={MAX_FILE_BYTES}", *rules, *_glob_options(query), "--glob=!.git"]


def _glob_options(query: FileQuery) -> list[str]:
    """Return the glob when ripgrep reads it as we do; otherwise it is applied to the result only."""
    glob = (query.glob or "").removeprefix("./")
    # Only patterns that both read alike; a `!` would exclude, and a class may differ.
    if not re.fullmatch(r"[\w*{][\w./*{},-]*", glob):
        return []
    return [f"--glob={alternative}" for alternative in expand_braces(glob)]


def _line_options(names: Iterable[bytes]) -> list[str]:
    """Counted files hold no NUL, so they are text; the text of a line is not needed, so it is omitted."""
    options = [
        "--text",
        "--no-heading",
        "--line-number",
        "--max-columns=1",
        f"--max-count={MAX_MATCHES_PER_FILE}",
    ]
    return [*options, "--", *map(os.fsdecode, names)]


def _path_argument(query: FileQuery, hit: FileMatches) -> bytes:
    """Return the path of a file relative to the folder that ripgrep runs in."""
    if query.one_file:
        return b"-"
    above = "" if query.start.shown == "." else f"{query.start.shown}/"
    return b"./" + os.fsencode(hit.path.removeprefix(above))


def _parse_counts(workspace: Workspace, query: FileQuery, out: bytes) -> list[FileMatches]:
    """Return counts in the order of the paths, without hidden and excluded files."""
    if query.one_file:
        return [FileMatches(query.start.shown, count) for _, count in _parse_records(out)]
    ignore = Ignore(workspace, query.start.shown)
    found: list[tuple[tuple[str, ...], int]] = []
    for name, count in _parse_records(out):
        names = tuple(os.fsdecode(name).removeprefix("./").split("/"))
        if query.chosen(names) and not ignore.hides((*query.start.parts, *names)):
            found.append((names, count))
    hits = [FileMatches(child_path(query.start, "/".join(names)), count) for names, count in sorted(found)]
    return [hit for hit in hits if query.stops(hit.path) is None]


def _parse_line_numbers(out: bytes) -> dict[bytes, tuple[int, ...]]:
    """Return the matching line numbers per file."""
    found: dict[bytes, list[int]] = {}
    for name, line in _parse_records(out):
        found.setdefault(b"-" if name == b"<stdin>" else name, []).append(line)
    return {name: tuple(lines) for name, lines in found.items()}


def _parse_records(out: bytes) -> Iterator[tuple[bytes, int]]:
    """Parse ripgrep's records: a path, NUL, a number, and up to the end of the line what we do not need. A path may
    contain line breaks; what follows the NUL has none.
    """
    at = 0
    while (end := out.find(b"\0", at)) >= 0:
        after = out.find(b"\n", end)
        if after < 0:
            return
        yield out[at:end], int(out[end + 1 : after].partition(b":")[0])
        at = after + 1


def _check_exit(done: Captured) -> None:
    if done.stopped == "time":
        raise TimeoutError
    if done.stopped == "size":
        raise ToolError("The pattern matches in too many files to count; narrow it by `path` or `glob`.")


def _matching_paths(workspace: Workspace, query: FileQuery, until: float) -> list[str]:
    if query.one_file:
        _open_root(workspace, query).close()
        return [query.start.shown]
    paths = [
        child_path(query.start, "/".join(parts)) for parts in sorted(_matching_names(workspace, query, until))
    ]
    return [path for path in paths if query.stops(path) is None]


def _matching_names(workspace: Workspace, query: FileQuery, until: float) -> list[tuple[str, ...]]:
    """Return the files to search, by their names relative to the start."""
    depth = len(query.start.parts)
    return [
        (*place.parts[depth:], entry.name)
        for place, entries in walk(workspace, query.start.shown, query.chosen, until)
        for entry in entries
        if entry.kind == "file" and 0 < entry.size <= MAX_FILE_BYTES
    ]


async def _file_batches(query: FileQuery, context: ToolContext, paths: list[str]) -> AsyncIterator[bytes]:
    options = {"pattern": query.pattern, "ignore_case": query.ignore_case, "max_lines": MAX_MATCHES_PER_FILE}
    yield msgspec.json.encode(options) + b"\n"
    at = 0
    while at < len(paths):
        piece, at = await context.block(_batch, context.workspace, paths, at)
        yield piece


def _batch(workspace: Workspace, paths: list[str], at: int) -> tuple[bytes, int]:
    """Return some files from index `at` on, and the next index. An unreadable file has no matches."""
    piece = bytearray()
    while at < len(paths) and len(piece) < _BATCH_BYTES:
        try:
            data = workspace.read_bytes(paths[at], MAX_FILE_BYTES)
        # Its number is sent all the same: the worker counts the files, and replies by number.
        except Refused:
            data = b""
        piece += b"%d %d\n" % (at, len(data)) + data
        at += 1
    return bytes(piece), at
