"""Which lines of which files match a regular expression: asked of ripgrep, or of a process of ours without it.

Both only say where; what stands there is read elsewhere, through the workspace. So a file that is exchanged for a
link while ripgrep walks shows nothing of what the link leads to. Knows nothing of the model and of what it is shown.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence

import msgspec

from ..model.failures import Refused
from ..system.capture import Captured, capture
from ..workspace.globs import alternatives
from ..workspace.ignore import Ignore
from ..workspace.paths import Place, Workspace
from .base import Hands, Wrong
from .glob import Chosen, beneath, walk

SECONDS = 20.0
"""For one search. A pattern that blows up and a project that is a whole disk both end here."""

MAX_FILE = 8 * 1024 * 1024
"""Bytes of a file that is looked into; what is larger is data, not text that someone wrote."""

MAX_MATCHES = 200
MAX_IN_FILE = 50
"""Matches of one answer, and of one file in it; who needs more asks more narrowly."""

_MAX_OUTPUT = 16 * 1024 * 1024
"""Bytes of a matcher's output: a path and a number for each of some 200,000 files."""

_BATCH = 1024 * 1024
"""Bytes of files that are read at once for the child: enough that the hop to a thread does not count."""


_MATCHER = os.path.join(os.path.dirname(__file__), "matching.py")


class Query(msgspec.Struct, frozen=True):
    """What is looked for, and where: in a folder, in the files that `chosen` takes, or in one file. `glob` is what
    `chosen` was made of."""

    pattern: str
    ignore_case: bool
    start: Place
    chosen: Chosen
    glob: str | None
    one_file: bool


class Hit(msgspec.Struct, frozen=True):
    """A file with matches: in how many lines, and the first of these, for those files that come first."""

    path: str
    count: int
    lines: tuple[int, ...] = ()


def ripgrep() -> str | None:
    """Where ripgrep is, if it is installed. A relative entry of PATH would look for it in the project."""
    import shutil

    found = shutil.which("rg")
    return found if found and os.path.isabs(found) else None


def shares(hits: Sequence[Hit]) -> list[tuple[Hit, int]]:
    """The files that an answer has room for, and for how many of their matches."""
    room = MAX_MATCHES
    taken: list[tuple[Hit, int]] = []
    for hit in hits:
        share = min(hit.count, MAX_IN_FILE, room)
        if not share:
            break
        taken.append((hit, share))
        room -= share
    return taken


async def by_ripgrep(program: str, query: Query, hands: Hands, *, lines: bool) -> list[Hit]:
    """First how often each file matches, which is little to read; then where, in the files that come first."""
    until = time.monotonic() + SECONDS
    where = await hands.block(_opened, hands.workspace, query)
    try:
        counted = await _ripgrep(program, query, where, until, _counting(query))
        hits = await hands.block(_counts, hands.workspace, query, counted)
        if not lines or not hits:
            return hits
        names = {_argument(query, hit): hit for hit, _ in shares(hits)}
        numbers = _numbers(await _ripgrep(program, query, where, until, _locating(names)))
        located = {hit.path: numbers.get(name, ()) for name, hit in names.items()}
        return [msgspec.structs.replace(hit, lines=located.get(hit.path, ())) for hit in hits]
    finally:
        where.close()


async def by_child(query: Query, hands: Hands) -> list[Hit]:
    """The files go through the child's input, read by the workspace, hidden and unwanted ones left out."""
    until = time.monotonic() + SECONDS
    paths = await hands.block(_paths, hands.workspace, query, until)
    folder = await hands.block(hands.workspace.open_dir, ".")
    try:
        done = await capture(
            [sys.executable, "-I", "-S", _MATCHER],
            folder=folder,
            env={},
            seconds=max(0.0, until - time.monotonic()),
            max_bytes=_MAX_OUTPUT,
            feed=_pieces(query, hands, paths),
        )
    finally:
        os.close(folder)
    _check(done)
    replies = [msgspec.json.decode(line, type=_Reply) for line in done.out.splitlines()]
    wrong = next((reply.error for reply in replies if reply.error), None)
    if wrong:
        raise Wrong(f"The pattern is not understood: {wrong}")
    if done.code:
        raise TimeoutError
    return [Hit(paths[reply.file], reply.count, reply.lines) for reply in replies]


class _Reply(msgspec.Struct, frozen=True):
    file: int = 0
    count: int = 0
    lines: tuple[int, ...] = ()
    error: str | None = None


class _Where(msgspec.Struct, frozen=True):
    """The folder that ripgrep runs in, and the one file that it reads from its input: it would follow a link that
    it is given by name."""

    folder: int
    file: int | None = None

    def close(self) -> None:
        os.close(self.folder)
        if self.file is not None:
            os.close(self.file)


def _opened(workspace: Workspace, query: Query) -> _Where:
    if not query.one_file:
        return _Where(workspace.open_dir(query.start.shown))
    file = workspace.open_file(query.start.shown)
    size = os.fstat(file).st_size
    where = _Where(workspace.open_dir("."), file)
    if size > MAX_FILE:
        where.close()
        raise Wrong(f"{query.start.shown} has more than {MAX_FILE} bytes; grep does not look into it.")
    return where


async def _ripgrep(program: str, query: Query, where: _Where, until: float, options: list[str]) -> bytes:
    if where.file is not None:
        os.lseek(where.file, 0, os.SEEK_SET)
    done = await capture(
        [program, *_COMMON, *_spelled(query), *options],
        folder=where.folder,
        env={},
        seconds=max(0.0, until - time.monotonic()),
        max_bytes=_MAX_OUTPUT,
        feed=where.file,
    )
    _check(done)
    if done.code not in (0, 1) and done.err:
        raise Wrong(f"The pattern is not understood: {done.err.decode(errors='replace').strip()}")
    return done.out


_COMMON = (
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


def _spelled(query: Query) -> list[str]:
    return [f"--regexp={query.pattern}", *(["--ignore-case"] if query.ignore_case else [])]


def _counting(query: Query) -> list[str]:
    """The rules of hidden files are ours, applied to what is found; ripgrep's own spare it the largest folders."""
    if query.one_file:
        return ["--count", "--", "-"]
    rules = ["--hidden", "--no-require-git", "--no-ignore-parent", "--no-ignore-global", "--no-ignore-dot"]
    return ["--count", f"--max-filesize={MAX_FILE}", *rules, *_globs(query), "--glob=!.git", "--", "."]


def _globs(query: Query) -> list[str]:
    """The glob, when ripgrep reads it as we do; else it is only applied to what is found."""
    glob = (query.glob or "").removeprefix("./")
    if not re.fullmatch(r"[\w*{][\w./*{},-]*", glob):
        return []
    return [f"--glob={alternative}" for alternative in alternatives(glob)]


def _locating(names: Iterable[bytes]) -> list[str]:
    """What was counted holds no NUL, so it is text; what stands in a line is not wanted, so it is left out."""
    options = ["--text", "--no-heading", "--line-number", "--max-columns=1", f"--max-count={MAX_IN_FILE}"]
    return [*options, "--", *map(os.fsdecode, names)]


def _argument(query: Query, hit: Hit) -> bytes:
    """A file as ripgrep is to name it, from the folder it runs in."""
    if query.one_file:
        return b"-"
    above = "" if query.start.shown == "." else f"{query.start.shown}/"
    return b"./" + os.fsencode(hit.path.removeprefix(above))


def _counts(workspace: Workspace, query: Query, out: bytes) -> list[Hit]:
    """In the order of the paths, without what is hidden or was not looked for."""
    if query.one_file:
        return [Hit(query.start.shown, count) for _, count in _records(out)]
    ignore = Ignore(workspace, query.start.shown)
    found: list[tuple[tuple[str, ...], int]] = []
    for name, count in _records(out):
        names = tuple(os.fsdecode(name).removeprefix("./").split("/"))
        if query.chosen(names) and not ignore.hides((*query.start.parts, *names)):
            found.append((names, count))
    return [Hit(beneath(query.start, "/".join(names)), count) for names, count in sorted(found)]


def _numbers(out: bytes) -> dict[bytes, tuple[int, ...]]:
    """The lines of each file."""
    found: dict[bytes, list[int]] = {}
    for name, line in _records(out):
        found.setdefault(b"-" if name == b"<stdin>" else name, []).append(line)
    return {name: tuple(lines) for name, lines in found.items()}


def _records(out: bytes) -> Iterator[tuple[bytes, int]]:
    """ripgrep writes a path, NUL, a number, and to the end of the line what we do not need. A path may have line
    breaks; what follows the NUL has none."""
    at = 0
    while (end := out.find(b"\0", at)) >= 0:
        after = out.find(b"\n", end)
        if after < 0:
            return
        yield out[at:end], int(out[end + 1 : after].partition(b":")[0])
        at = after + 1


def _check(done: Captured) -> None:
    if done.stopped == "time":
        raise TimeoutError
    if done.stopped == "size":
        raise Wrong("The pattern matches in too many files to count; narrow it by `path` or `glob`.")


def _paths(workspace: Workspace, query: Query, until: float) -> list[str]:
    if query.one_file:
        _opened(workspace, query).close()
        return [query.start.shown]
    found = [
        (*place.parts, entry.name)
        for place, entries in walk(workspace, query.start.shown, query.chosen, until)
        for entry in entries
        if entry.kind == "file" and 0 < entry.size <= MAX_FILE
    ]
    depth = len(query.start.parts)
    return [beneath(query.start, "/".join(parts[depth:])) for parts in sorted(found)]


async def _pieces(query: Query, hands: Hands, paths: list[str]) -> AsyncIterator[bytes]:
    options = {"pattern": query.pattern, "ignore_case": query.ignore_case, "max_lines": MAX_IN_FILE}
    yield msgspec.json.encode(options) + b"\n"
    at = 0
    while at < len(paths):
        piece, at = await hands.block(_batch, hands.workspace, paths, at)
        yield piece


def _batch(workspace: Workspace, paths: list[str], at: int) -> tuple[bytes, int]:
    """Some files from the one at `at` on, and which is the next. What cannot be read has no matches."""
    piece = bytearray()
    while at < len(paths) and len(piece) < _BATCH:
        try:
            data = workspace.read_bytes(paths[at], MAX_FILE)
        except Refused:
            data = b""
        piece += b"%d %d\n" % (at, len(data)) + data
        at += 1
    return bytes(piece), at
