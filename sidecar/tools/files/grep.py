"""`grep`: find the lines of the project's files that match a regular expression."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from msgspec.structs import replace

from ...model.failures import Refused
from ...policy.read_rules import excluded_summary
from ...providers.base import ToolSpec
from ...workspace.paths import ConfinedPath, Workspace
from ..base import Intent, PlannedCall, ToolContext, ToolError, ToolInput, ToolKind, ToolOutcome
from .file_search import (
    MAX_FILE_BYTES,
    MAX_MATCHES,
    SECONDS,
    FileMatches,
    FileQuery,
    find_ripgrep,
    left_out,
    search_with_ripgrep,
    search_with_worker,
    share_matches,
)
from .glob import path_filter

MAX_CONTEXT = 5
MAX_PATTERN = 2000
"""Characters: no useful pattern is longer, and each costs memory in the matcher."""

MAX_LINE = 500
"""Characters of a line: a minified file is one line."""

MAX_OUTPUT = 30 * 1024
"""Characters of a result that the model gets in full."""

OUTPUTS = ("lines", "files", "count")

_TOO_LONG = (
    f"The search took longer than {SECONDS:.0f} s. Use a simpler pattern, or narrow it by `path` or `glob`."
)


class Grep:
    """`find` returns the path of ripgrep; without it a worker process does the same, slower."""

    kind: ToolKind = "search"
    runs_alone = False
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

    def __init__(self, find: Callable[[], str | None] = find_ripgrep) -> None:
        self._find = find

    def title(self, input: ToolInput) -> str:
        return f"Search for {input.get('pattern', '')}"

    async def prepare(self, input: ToolInput, context: ToolContext) -> PlannedCall:
        pattern = _checked_pattern(input.text("pattern"))
        output = input.text("output", "lines")
        if output not in OUTPUTS:
            raise ToolError("`output` must be lines, files or count.")
        around = input.number("context", 0, low=0)
        if around > MAX_CONTEXT:
            raise ToolError(f"`context` must be at most {MAX_CONTEXT}.")
        glob = input.optional_text("glob")
        start = context.workspace.resolve(input.text("path", "."))
        query = FileQuery(
            pattern=pattern,
            ignore_case=input.flag("ignore_case"),
            start=start,
            chosen=path_filter(glob or "**", start),
            glob=glob,
            one_file=await context.block(_is_file, context.workspace, start),
        )

        async def run() -> ToolOutcome:
            asked = replace(query, left_out=await context.read_filter(start.shown))
            try:
                # Asked before the matches are known: otherwise its answer would depend on the content of a file that
                # must not be read.
                left = await left_out(self._find(), asked, context)
                hits = await self._search(asked, context, lines=output == "lines")
            except TimeoutError:
                return ToolOutcome(_TOO_LONG, failed=True)
            if output == "lines":
                found = await context.block(_lines, context.workspace, hits, around)
            else:
                found = await context.block(_files_outcome, context.workspace, hits, output == "count")
            return replace(found, text=f"{found.text}\n({excluded_summary(left)})") if left else found

        return PlannedCall(Intent("read", start.shown), run)

    async def _search(self, query: FileQuery, context: ToolContext, *, lines: bool) -> list[FileMatches]:
        program = self._find()
        if program is None:
            return await search_with_worker(query, context)
        return await search_with_ripgrep(program, query, context, lines=lines)


def _checked_pattern(pattern: str) -> str:
    if len(pattern) > MAX_PATTERN:
        raise ToolError(f"`pattern` must have at most {MAX_PATTERN} characters.")
    if "\0" in pattern or "\n" in pattern:
        raise ToolError("`pattern` is matched line by line: it may have no line break and no NUL.")
    try:
        pattern.encode()
    except UnicodeEncodeError as error:
        raise ToolError("`pattern` must be well-formed text.") from error
    return pattern


def _is_file(workspace: Workspace, start: ConfinedPath) -> bool:
    """Return whether the path is a file; raise when there is neither a folder nor a file."""
    try:
        os.close(workspace.open_dir(start.shown))
    except Refused as refused:
        if refused.name == "not_found":
            os.close(workspace.open_file(start.shown))
        elif refused.reason != "kind":
            raise
        return True
    return False


def _lines(workspace: Workspace, hits: list[FileMatches], around: int) -> ToolOutcome:
    """Return the first matches as text, with a note on those that are omitted."""
    shown: list[str] = []
    matched: list[str] = []
    counted = size = 0
    for hit, share in share_matches(hits):
        rows = _read_lines(workspace, hit.path)
        if rows is None:
            counted += hit.count
            continue
        lines = list(_lines_with_context(rows, hit.path, hit.lines[:share], around))
        if share < hit.count:
            lines.append(f"{hit.path}: … {hit.count - share} more matches")
        size += sum(map(len, lines))
        if shown and size > MAX_OUTPUT:
            break
        counted += hit.count
        matched.append(hit.path)
        shown.extend(["--", *lines] if around and shown else lines)
    rest = sum(hit.count for hit in hits) - counted
    if rest:
        shown.append(f"… {rest} more matches in other files; ask more narrowly")
    return ToolOutcome("\n".join(shown) or "No matches.", matched=tuple(matched))


def _files_outcome(workspace: Workspace, hits: list[FileMatches], counts: bool) -> ToolOutcome:
    first = [hit for hit in hits[:MAX_MATCHES] if _readable(workspace, hit.path)]
    shown = [f"{hit.path}:{hit.count}" if counts else hit.path for hit in first]
    if len(hits) > MAX_MATCHES:
        shown.append(f"… {len(hits) - MAX_MATCHES} more files")
    return ToolOutcome("\n".join(shown) or "No matches.", matched=tuple(hit.path for hit in first))


def _read_lines(workspace: Workspace, path: str) -> list[str] | None:
    """Return the lines of a file; None when it must not be read, is deleted or has become binary."""
    try:
        data = workspace.read_bytes(path, MAX_FILE_BYTES)
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


def _lines_with_context(rows: list[str], path: str, lines: tuple[int, ...], around: int) -> Iterator[str]:
    """Return the matches and the lines around them, with a dash in place of the colon; `--` marks omitted lines."""
    matches = set(lines)
    last = 0
    for line in lines:
        first = max(last + 1, line - around)
        if around and last and first > last + 1:
            yield "--"
        for at in range(first, min(len(rows), line + around) + 1):
            sign = ":" if at in matches else "-"
            row = rows[at - 1].removesuffix("\r")
            yield f"{path}{sign}{at}{sign}{row[:MAX_LINE]}{'…' if len(row) > MAX_LINE else ''}"
            last = at
