"""Markdown block by block: where one ends, and how it is rendered. Knows neither answers nor streams."""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar

from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Markdown, TableElement
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

MAX_BLOCK_CHARACTERS = 8 * 1024
"""Of an unfinished block longer than this only the end is shown, as plain text: rendering Markdown takes time."""

_parse = MarkdownIt("commonmark").enable("table").parse

# The answer of a model must not move the cursor, set the title or press keys: no control characters but these.
_CONTROLS = {code: "\ufffd" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\t\n"}
_CONTROLS[ord("\r")] = ""


def printable(text: str) -> str:
    """Return text without terminal control sequences."""
    return text.translate(_CONTROLS)


def split_blocks(text: str) -> list[str]:
    """Split a printable text into paragraphs, lists, fences and so on; joined, they are the text again."""
    # By the parser: a blank line may be within a list or a fence.
    starts = [token.map[0] for token in _parse(text) if token.level == 0 and token.map and token.nesting >= 0]
    lines = text.split("\n")
    borders = [0, *starts[1:], len(lines)]
    parts = ["\n".join(lines[start:end]) for start, end in pairwise(borders)]
    return [part + "\n" for part in parts[:-1]] + parts[-1:]


class _FoldedTable(TableElement):
    """A table that wraps long cells: the end of a path is what distinguishes it."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for part in super().__rich_console__(console, options):
            if isinstance(part, Table):
                for column in part.columns:
                    column.overflow = "fold"
            yield part


class _Markdown(Markdown):
    elements: ClassVar = {**Markdown.elements, "table_open": _FoldedTable}


class MarkdownBlock:
    """One block of a printable text, without blank lines around it; with `end_of`, so many lines of its end."""

    def __init__(self, text: str, end_of: int | None = None) -> None:
        self._text = text
        self._end_of = end_of

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        unfinished = self._end_of is not None
        long = unfinished and len(self._text) > MAX_BLOCK_CHARACTERS
        shown = (
            Text(self._text[-MAX_BLOCK_CHARACTERS:])
            if long
            else _Markdown(self._text, code_theme="ansi_dark")
        )
        lines = console.render_lines(shown, options.update(height=None), pad=False)
        for line in _trim(lines)[-(self._end_of or 0) :]:
            yield from line
            yield Segment.line()


def print_blocks(console: Console, text: str, *, gap: bool = False) -> bool:
    """Print a text with one blank line between its blocks, and one before the first if there is a `gap`.

    Return True when there was something to print.
    """
    for block in split_blocks(printable(text)):
        if block.strip():
            if gap:
                console.print()
            console.print(MarkdownBlock(block))
            gap = True
    return gap


def _trim(lines: list[list[Segment]]) -> list[list[Segment]]:
    full = [number for number, line in enumerate(lines) if any(segment.text.strip() for segment in line)]
    return lines[full[0] : full[-1] + 1] if full else []
