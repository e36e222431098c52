"""Draw an edited text after the mark of the prompt, and a menu below it; redraw it in place. Reads no keys."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from rich.cells import cell_len
from rich.console import Console

from .safe_text import visible_text

TAB = "    "

MIN_ROWS = 3
"""Rows of a long text that are drawn on however small a screen."""

_ERASE_BELOW = "\x1b[J"
_DIM, _PLAIN = "\x1b[2m", "\x1b[0m"


class Layout(msgspec.Struct, frozen=True):
    """Rows of the screen, and where the cursor is in them."""

    rows: list[str]
    row: int
    column: int


def lay_out(mark: str, text: str, position: int, width: int) -> Layout:
    """Wrap a text at words into rows of this width. Lines after the first are indented below the mark."""
    indent = " " * cell_len(mark)
    rows: list[str] = []
    cursor = (0, len(indent))
    start = 0
    for line in text.split("\n"):
        wrapped = _wrap(indent if rows else mark, line, width)
        if start <= position <= start + len(line):
            row, column = wrapped.cells[position - start]
            cursor = (len(rows) + row, column)
        rows += wrapped.rows
        start += len(line) + 1
    row, column = cursor
    if column >= width:
        # A cursor behind the last column is at the start of the next row.
        row, column = row + 1, 0
        if row == len(rows) or text[position : position + 1] == "\n":
            rows.insert(row, "")
    return Layout(rows, row, column)


class _Wrapped(msgspec.Struct, frozen=True):
    """One line as rows, and where each of its characters is, and its end."""

    rows: list[str]
    cells: list[tuple[int, int]]


def _wrap(indent: str, line: str, width: int) -> _Wrapped:
    rows, column = [indent], cell_len(indent)
    cells: list[tuple[int, int]] = []
    word = 0
    for number, character in enumerate(line):
        shown, size = _shown(character)
        if column + size > width and character == " ":
            size = width - column  # a blank at the end of a row is not seen
            shown = " " * size
        elif column + size > width:
            column = _break(rows, cells, line, word, number)
        cells.append((len(rows) - 1, column))
        rows[-1] += shown
        column += size
        if character in " \t":
            word = number + 1
    return _Wrapped(rows, [*cells, (len(rows) - 1, column)])


def _break(rows: list[str], cells: list[tuple[int, int]], line: str, word: int, number: int) -> int:
    """Begin a row with the last word, or within it if it began the row; return the column for what follows."""
    row = len(rows) - 1
    begins_row = word >= number or cells[word][0] != row or (word == 0 or cells[word - 1][0] != row)
    if begins_row:
        rows.append("")
        return 0
    moved = "".join(_shown(character)[0] for character in line[word:number])
    rows[-1] = rows[-1][: len(rows[-1]) - len(moved)]
    rows.append(moved)
    first = cells[word][1]
    for each in range(word, number):
        cells[each] = (row + 1, cells[each][1] - first)
    return cell_len(moved)


def crop(layout: Layout, most: int) -> Layout:
    """Return at most so many rows, those around the cursor."""
    if len(layout.rows) <= most:
        return layout
    top = min(max(0, layout.row - most // 2), len(layout.rows) - most)
    return Layout(layout.rows[top : top + most], layout.row - top, layout.column)


class PromptScreen:
    """The rows that one prompt occupies."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._drawn = Layout([""], 0, 0)
        self._menu = False

    @property
    def width(self) -> int:
        return max(4, self._console.width)

    def draw(self, mark: str, text: str, position: int, menu: Sequence[str] = ()) -> None:
        """Draw the text over its last state, with the cursor at `position`."""
        menu = list(menu)
        most = max(MIN_ROWS, self._console.height - 1 - len(menu))
        layout = crop(lay_out(mark, text, position, self.width), most)
        if not menu and self._append(layout):
            return
        below = [f"{_DIM}{line}{_PLAIN}" for line in menu]
        out = self._to_start() + _ERASE_BELOW + "\n".join([*layout.rows, *below])
        up = len(layout.rows) + len(menu) - 1 - layout.row
        out += (f"\x1b[{up}A" if up else "") + "\r" + (f"\x1b[{layout.column}C" if layout.column else "")
        self._write(out)
        self._drawn = layout
        self._menu = bool(menu)

    def finish(self, mark: str, text: str) -> None:
        """Draw the text for good; what follows is printed below it."""
        self.draw(mark, text, len(text))
        self._write("\n")
        self.forget()

    def forget(self) -> None:
        """Continue where the cursor is now."""
        self._drawn, self._menu = Layout([""], 0, 0), False

    def clear(self) -> None:
        """Clear the whole screen."""
        self._write("\x1b[H\x1b[2J")
        self.forget()

    def _append(self, layout: Layout) -> bool:
        """Write only what is new, if it was added at the end: typing does not flicker."""
        old = self._drawn
        start = old.rows[-1]
        at_end = old.row == len(old.rows) - 1 and old.column == cell_len(start)
        new_at_end = layout.row == len(layout.rows) - 1 and layout.column == cell_len(layout.rows[-1])
        same = layout.rows[:-1] == old.rows[:-1] and len(layout.rows) == len(old.rows)
        if self._menu or not (at_end and new_at_end and same and layout.rows[-1].startswith(start)):
            return False
        self._write(layout.rows[-1][len(start) :])
        self._drawn = layout
        return True

    def _to_start(self) -> str:
        """Return how to reach the first row from where the cursor is, even if the screen was made narrower."""
        old, width = self._drawn, self.width
        above = sum(max(1, -(-cell_len(row) // width)) for row in old.rows[: old.row])
        up = above + old.column // width
        return (f"\x1b[{up}A" if up else "") + "\r"

    def _write(self, text: str) -> None:
        self._console.file.write(text)
        self._console.file.flush()


def menu_rows(words: Sequence[str], width: int, most: int) -> list[str]:
    """Return words as rows of columns, at most so many; the last one counts what is missing."""
    if not words:
        return []
    column = min(width, max(cell_len(word) for word in words) + 2)
    per_row = max(1, (width - 1) // column)
    rows = [words[start : start + per_row] for start in range(0, len(words), per_row)]
    shown = rows if len(rows) <= most else rows[: most - 1]
    lines = ["".join(_fit(word, column) for word in row).rstrip()[: width - 1] for row in shown]
    if len(shown) < len(rows):
        lines.append(f"… and {len(words) - sum(map(len, shown))} more")
    return lines


def _fit(word: str, cells: int) -> str:
    return word + " " * max(1, cells - cell_len(word))


def _shown(character: str) -> tuple[str, int]:
    if character == "\t":
        return TAB, len(TAB)
    shown = visible_text(character)
    return shown, cell_len(shown)
