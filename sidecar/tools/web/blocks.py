"""Markdown output, block by block, within quotes, lists and table cells. Knows nothing of HTML."""

from __future__ import annotations

import re

import msgspec

MAX_INDENT = 8
"""Nested quotes and lists that are still shown as such; each indents every line once more."""

MAX_COLUMNS = 50
"""Columns that one cell may span."""

MAX_IN_CELL = 4
"""Blocks of a table cell; a table with more in a cell, or with headings or code, is a layout table."""

_TOO_BIG_FOR_CELL = re.compile(r"#{1,6} |`{3}")
_BLANKS = re.compile(r"[ \t\n\r\f\v\u00a0\u200b]+")
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_ANCHOR_SIGNS = frozenset(("¶", "#", "§", "🔗", ""))
"""The text of anchor links beside headings."""


class _Container(msgspec.Struct):
    """A quote or a list item: the prefix of its first line, until that is written, and that of the others."""

    first: str | None
    others: str


class _Span(msgspec.Struct):
    mark: str
    href: str | None
    start: int


class _List(msgspec.Struct):
    ordered: bool
    number: int


class _Table(msgspec.Struct):
    """`plain` marks a layout table: its cells are ordinary blocks."""

    rows: list[list[str]]
    plain: bool = False


class _BlockList(msgspec.Struct):
    """Where blocks go: the page, or a cell. `tight` blocks follow the one before without a blank line."""

    blocks: list[str]
    tight: list[bool]
    containers: list[_Container]
    lists: list[_List]
    after_item: bool = False
    columns: int = 1


class MarkdownWriter:
    def __init__(self) -> None:
        self._page = _BlockList([], [], [], [])
        self._outer: list[_BlockList] = []
        self._tables: list[_Table] = []
        self._pieces: list[str] = []
        self._spans: list[_Span] = []
        self._level = 0
        self._fenced = False
        self.language = ""
        self.size = 0
        self.first_heading: str | None = None

    @property
    def verbatim(self) -> bool:
        return self._fenced

    @property
    def count(self) -> int:
        """Return the blocks of the page so far, without those of a table that is still open."""
        return len((self._outer[0] if self._outer else self._page).blocks)

    def write(self, text: str) -> None:
        text = _CONTROLS.sub("", text)
        if not self._fenced:
            text = _BLANKS.sub(" ", text)
        if text:
            self.size += len(text)
            self._pieces.append(text)

    def line_break(self) -> None:
        self._pieces.append("\n")

    def span(self, mark: str, href: str | None) -> None:
        if any(span.mark == mark for span in self._spans):
            mark, href = "", None  # nested in the same kind it adds nothing
        if not self._fenced:
            self._spans.append(_Span(mark, href, len(self._pieces)))

    def end_span(self, mark: str) -> None:
        while self._spans and not self._fenced:
            span = self._spans.pop()
            self._wrap(span)
            if span.mark in (mark, ""):
                return

    def begin_heading(self, level: int) -> None:
        self._level = level

    def end(self) -> None:
        """Finish the current block."""
        if not self._pieces:
            self._level = self._level if self._spans else 0
            return
        for span in reversed(self._spans):
            if self._wrap(span):
                span.href = None  # a link around several blocks goes to the first
        for span in self._spans:
            span.start = 0
        text = re.sub(r" ?\n ?", "\n", re.sub(" {2,}", " ", "".join(self._pieces))).strip(" \n")
        self._pieces = []
        level, self._level = self._level, 0
        if not text:
            self._level = level if self._spans else 0
            return
        if level:
            text = " ".join(text.split())
            self.first_heading = self.first_heading or text[:500]
            text = f"{'#' * level} {text}"
        self._put(re.sub(r"\n{2,}", "\n", text))

    def rule(self) -> None:
        self.end()
        self._put("---")

    def begin_verbatim(self, language: str) -> None:
        self.end()
        self._spans = []
        self._fenced, self.language = True, language

    def end_verbatim(self) -> None:
        if not self._fenced:
            return
        text = "".join(self._pieces).replace("\r\n", "\n").strip("\n").rstrip()
        self._pieces, self._fenced = [], False
        if text.strip():
            fence = _backticks(text, 3)
            self._put(f"{fence}{self.language}\n{text}\n{fence}")

    def begin_list(self, ordered: bool, start: str) -> None:
        number = int(start) if start.isascii() and start.isdigit() and len(start) < 10 else 1
        self._page.lists.append(_List(ordered, number))

    def end_list(self) -> None:
        if self._page.lists:
            self._page.lists.pop()

    def begin_item(self, kind: str) -> None:
        page = self._page
        if kind == "blockquote":
            container = _Container(None, "> ")
        elif kind == "dd" or not page.lists:
            container = _Container("- " if kind == "li" else ": ", "  ")
        else:
            entry = page.lists[-1]
            marker = f"{entry.number}. " if entry.ordered else "- "
            entry.number += 1
            container = _Container(marker, " " * len(marker))
        if len(page.containers) >= MAX_INDENT:
            container.first = None
        page.containers.append(container)

    def end_item(self) -> None:
        if self._page.containers:
            self._page.containers.pop()

    def begin_table(self) -> None:
        if self._tables:
            self._tables[-1].plain = True
        self._tables.append(_Table([]))

    def begin_row(self) -> None:
        if self._tables:
            self._tables[-1].rows.append([])

    def begin_cell(self, span: str) -> None:
        if not self._tables:
            return
        wide = int(span) if span.isascii() and span.isdigit() and len(span) < 4 else 1
        self._outer.append(self._page)
        self._page = _BlockList([], [], [], [], columns=min(max(1, wide), MAX_COLUMNS))

    def end_cell(self) -> None:
        if not self._outer or not self._tables:
            return
        cell, self._page = self._page, self._outer.pop()
        table = self._tables[-1]
        table.plain |= len(cell.blocks) > MAX_IN_CELL or any(map(_TOO_BIG_FOR_CELL.match, cell.blocks))
        if not table.rows:
            table.rows.append([])
        table.rows[-1] += [_join_blocks(cell.blocks, cell.tight), *[""] * (cell.columns - 1)]

    def end_table(self) -> None:
        if not self._tables:
            return
        table = self._tables.pop()
        rows = [row for row in table.rows if any(row)]
        if table.plain or self._tables or len(rows) < 2 or max(map(len, rows)) < 2:
            for cell in (cell for row in rows for cell in row if cell):
                self._put(cell)
        else:
            self._put("\n".join(_table_lines(rows)))

    def text(self, start: int, end: int) -> str:
        return _join_blocks(self._page.blocks[start:end], self._page.tight[start:end])

    def length(self, start: int, end: int) -> int:
        return sum(map(len, self._page.blocks[start:end]))

    def _wrap(self, span: _Span) -> bool:
        """Put the marks around the text since the span began; False when there is none."""
        if not span.mark:
            return False
        text = "".join(self._pieces[span.start :])
        if not text.strip():
            return False
        inner = text.strip()
        if span.mark == "a":
            if inner in _ANCHOR_SIGNS and span.href is None:
                whole = ""
            else:
                whole = f"[{inner}]({span.href})" if span.href and "](" not in inner else inner
        elif span.mark == "`":
            tick = _backticks(inner, 1)
            whole = f"{tick} {inner} {tick}" if len(tick) > 1 else f"`{inner}`"
        else:
            whole = f"{span.mark}{inner}{span.mark}"
        before = " " if text[0] in " \n" else ""
        after = " " if text[-1] in " \n" else ""
        self.size += len(whole) - len(text)
        self._pieces[span.start :] = [before + whole + after]
        return True

    def _put(self, text: str) -> None:
        page = self._page
        shown = page.containers[:MAX_INDENT]
        begins_item = any(container.first for container in shown)
        first = "".join(container.first or container.others for container in shown)
        others = "".join(container.others for container in shown)
        for container in shown:
            container.first = None
        lines = text.split("\n")
        block = "\n".join(
            [first + lines[0], *(others + line if line else others.rstrip() for line in lines[1:])]
        )
        page.tight.append(begins_item and page.after_item)
        page.after_item = any(container.others != "> " for container in shown)
        page.blocks.append(block)
        self.size += len(block) - len(text)


def _backticks(text: str, least: int) -> str:
    """Return more backticks than any run of them in the text."""
    return "`" * max(least, 1 + max(map(len, re.findall("`+", text)), default=0))


def _join_blocks(blocks: list[str], tight: list[bool]) -> str:
    pieces: list[str] = []
    for block, follows in zip(blocks, tight, strict=True):
        if pieces:
            pieces.append("\n" if follows else "\n\n")
        pieces.append(block)
    return "".join(pieces)


def _table_lines(rows: list[list[str]]) -> list[str]:
    lines = [
        "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in row) + " |" for row in rows
    ]
    return [lines[0], "|" + " --- |" * len(rows[0]), *lines[1:]]
