"""Rows in columns. On a terminal the wide column is cut to the width; in a pipe nothing is cut."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from .markdown_blocks import printable

GAP = 2
MIN_WIDE = 10
"""The minimum width of the cut column, or a narrow terminal would show nothing of it."""


def print_columns(head: Sequence[str], rows: Sequence[Sequence[str]], wide: int) -> None:
    """Print `rows` in columns; `wide` is the number of the column that may be cut."""
    console = Console(highlight=False)
    table = [[_one_line(cell) for cell in row] for row in (head, *rows)]
    widths = [max(cell_len(row[column]) for row in table) for column in range(len(head))]
    if console.is_terminal:
        widths[wide] = min(widths[wide], _space(console.width, widths, wide))
    for number, row in enumerate(table):
        cells = (_fit(cell, width) for cell, width in zip(row, widths, strict=True))
        line = (" " * GAP).join(cells).rstrip()
        console.print(Text(line, style="bold" if number == 0 else ""), soft_wrap=True)


def _space(width: int, widths: Sequence[int], wide: int) -> int:
    others = sum(widths) - widths[wide] + GAP * (len(widths) - 1)
    return max(MIN_WIDE, width - others)


def _fit(cell: str, width: int) -> str:
    """Return the cell at exactly this width."""
    if cell_len(cell) <= width:
        return set_cell_size(cell, width)
    return set_cell_size(cell, width - 1) + "…"


def _one_line(cell: str) -> str:
    return printable(" ".join(cell.split()))
