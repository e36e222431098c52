"""`grep`: the lines of the project's files that match a regular expression."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from ..model.failures import Refused
from ..providers.base import ToolSpec
from ..workspace.paths import Place, Workspace
from .base import Hands, Kind, Need, Outcome, Ready, Wrong, flag, number, text
from .glob import choice
from .searching import MAX_FILE, MAX_MATCHES, SECONDS, Hit, Query, by_child, by_ripgrep, ripgrep, shares

MAX_CONTEXT = 5
MAX_PATTERN = 2000
"""Characters: no pattern that a model means is longer, and each costs memory in the matcher."""

MAX_LINE = 500
"""Characters of a line: a minified file is one line."""

MAX_OUTPUT = 30 * 1024
"""Characters of an answer: what a model is given whole."""

OUTPUTS = ("lines", "files", "count")

_TOO_LONG = (
    f"The search took longer than {SECONDS:.0f} s. Use a simpler pattern, or narrow it by `path` or `glob`."
)


class Grep:
    """`find` says where ripgrep is; without it a process of ours does the same, slower."""

    kind: Kind = "search"
    alone = False
    spec = ToolSpec(
        "grep",
        "Search the project's files for a regular expression. Answers path:line:text. Binary files and those that"
        " .gitignore names are left out.",
        {
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "description": "A regular expression, matched line by line."},
                "path": {"type": "string", "description": "A folder or file; the project by default."},
                "glob": {"type": "string", "description": "Only files like this, such as *.{ts,tsx}."},
                "ignore_case": {"type": "boolean"},
                "context": {
                    "type": "integer",
                    "minimum": 0,
                    "maximum": MAX_CONTEXT,
                    "description": "Lines to show before and after each match.",
                },
                "output": {
                    "type": "string",
                    "enum": list(OUTPUTS),
                    "description": "Matching lines (default), only file names, or matches a file.",
                },
            },
            "required": ["pattern"],
        },
    )

    def __init__(self, find: Callable[[], str | None] = ripgrep) -> None:
        self._find = find

    def title(self, input: dict[str, Any]) -> str:
        return f"Search for {input.get('pattern', '')}"

    async def prepare(self, input: dict[str, Any], hands: Hands) -> Ready:
        pattern = _pattern(text(input, "pattern"))
        output = text(input, "output", "lines")
        if output not in OUTPUTS:
            raise Wrong("`output` must be lines, files or count.")
        context = number(input, "context", 0, low=0)
        if context > MAX_CONTEXT:
            raise Wrong(f"`context` must be at most {MAX_CONTEXT}.")
        glob = text(input, "glob") if input.get("glob") is not None else None
        start = hands.workspace.resolve(text(input, "path", "."))
        query = Query(
            pattern=pattern,
            ignore_case=flag(input, "ignore_case"),
            start=start,
            chosen=choice(glob or "**", start),
            glob=glob,
            one_file=await hands.block(_is_file, hands.workspace, start),
        )

        async def run() -> Outcome:
            try:
                hits = await self._search(query, hands, lines=output == "lines")
            except TimeoutError:
                return Outcome(_TOO_LONG, failed=True)
            if output == "lines":
                return await hands.block(_lines, hands.workspace, hits, context)
            return await hands.block(_files, hands.workspace, hits, output == "count")

        return Ready(Need("read", start.shown), run)

    async def _search(self, query: Query, hands: Hands, *, lines: bool) -> list[Hit]:
        program = self._find()
        if program is None:
            return await by_child(query, hands)
        return await by_ripgrep(program, query, hands, lines=lines)


def _pattern(pattern: str) -> str:
    if len(pattern) > MAX_PATTERN:
        raise Wrong(f"`pattern` must have at most {MAX_PATTERN} characters.")
    if "\0" in pattern or "\n" in pattern:
        raise Wrong("`pattern` is matched line by line: it may have no line break and no NUL.")
    try:
        pattern.encode()
    except UnicodeEncodeError as error:
        raise Wrong("`pattern` must be well-formed text.") from error
    return pattern


def _is_file(workspace: Workspace, start: Place) -> bool:
    """Refused when there is neither a folder nor a file."""
    try:
        os.close(workspace.open_dir(start.shown))
    except Refused as refused:
        if refused.name == "not_found":
            os.close(workspace.open_file(start.shown))
        elif refused.reason != "kind":
            raise
        return True
    return False


def _lines(workspace: Workspace, hits: list[Hit], context: int) -> Outcome:
    """The first matches as text, with a word on those that are left out."""
    shown: list[str] = []
    matched: list[str] = []
    told = size = 0
    for hit, share in shares(hits):
        rows = _rows(workspace, hit.path)
        if rows is None:
            told += hit.count
            continue
        lines = list(_around(rows, hit.path, hit.lines[:share], context))
        if share < hit.count:
            lines.append(f"{hit.path}: … {hit.count - share} more matches")
        size += sum(map(len, lines))
        if shown and size > MAX_OUTPUT:
            break
        told += hit.count
        matched.append(hit.path)
        shown.extend(["--", *lines] if context and shown else lines)
    rest = sum(hit.count for hit in hits) - told
    if rest:
        shown.append(f"… {rest} more matches in other files; ask more narrowly")
    return Outcome("\n".join(shown) or "No matches.", matched=tuple(matched))


def _files(workspace: Workspace, hits: list[Hit], counts: bool) -> Outcome:
    first = [hit for hit in hits[:MAX_MATCHES] if _readable(workspace, hit.path)]
    shown = [f"{hit.path}:{hit.count}" if counts else hit.path for hit in first]
    if len(hits) > MAX_MATCHES:
        shown.append(f"… {len(hits) - MAX_MATCHES} more files")
    return Outcome("\n".join(shown) or "No matches.", matched=tuple(hit.path for hit in first))


def _rows(workspace: Workspace, path: str) -> list[str] | None:
    """The lines of a file; None when it may not be read, is gone or has become binary."""
    try:
        data = workspace.read_bytes(path, MAX_FILE)
    except Refused:
        return None
    if b"\0" in data:
        return None
    return data.removesuffix(b"\n").decode(errors="replace").split("\n")


def _readable(workspace: Workspace, path: str) -> bool:
    try:
        os.close(workspace.open_file(path))
    except Refused:
        return False
    return True


def _around(rows: list[str], path: str, lines: tuple[int, ...], context: int) -> Iterator[str]:
    """The matches, and the lines around them with a dash instead of the colon; `--` where lines are left out."""
    matches = set(lines)
    last = 0
    for line in lines:
        first = max(last + 1, line - context)
        if context and last and first > last + 1:
            yield "--"
        for at in range(first, min(len(rows), line + context) + 1):
            sign = ":" if at in matches else "-"
            row = rows[at - 1].removesuffix("\r")
            yield f"{path}{sign}{at}{sign}{row[:MAX_LINE]}{'…' if len(row) > MAX_LINE else ''}"
            last = at
