"""How a prompt that is being edited is laid out on a screen, and what the screen shows after each redraw."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from sidecar.cli.terminal.prompt_screen import PromptScreen, lay_out, menu_rows


@pytest.mark.parametrize(
    ("text", "position", "rows", "cursor"),
    [
        ("", 0, ["> "], (0, 2)),
        ("abc", 1, ["> abc"], (0, 3)),
        ("one two three", 13, ["> one two ", "three"], (1, 5)),
        ("one two three", 8, ["> one two ", "three"], (1, 0)),
        ("a\nb", 3, ["> a", "  b"], (1, 3)),
        ("a\n\n", 3, ["> a", "  ", "  "], (2, 2)),
        ("abcdefgh", 8, ["> abcdefgh", ""], (1, 0)),
        ("abcdefgh\nx", 8, ["> abcdefgh", "", "  x"], (1, 0)),
        ("abcdefghijk", 11, ["> abcdefgh", "ijk"], (1, 3)),
        ("你好世界你", 5, ["> 你好世界", "你"], (1, 2)),
        ("a你好世界", 5, ["> a你好世", "界"], (1, 2)),
        ("abcdefgh ij", 11, ["> abcdefgh", "ij"], (1, 2)),
        ("a\tb", 3, ["> a    b"], (0, 8)),
        ("a\x1b[2Jb", 6, ["> a␛[2Jb"], (0, 8)),
    ],
)
def test_a_prompt_is_wrapped_at_words(
    text: str, position: int, rows: list[str], cursor: tuple[int, int]
) -> None:
    found = lay_out("> ", text, position, 10)
    assert (found.rows, (found.row, found.column)) == (rows, cursor)


@pytest.mark.parametrize("width", [4, 7, 20, 40])
def test_no_character_is_lost_and_no_row_is_too_wide(width: int) -> None:
    text = "some words, 世界世界世界 and averylongwordwithoutanyblank\nnext  line with   blanks"
    found = lay_out("> ", text, len(text), width)
    console = Console(width=200)
    assert max(console.measure(row).maximum for row in found.rows) <= width
    assert re.sub(r"\s", "", "".join(found.rows)) == ">" + re.sub(r"\s", "", text)


def test_typing_at_the_end_writes_only_what_was_typed() -> None:
    out = io.StringIO()
    screen = PromptScreen(Console(file=out, force_terminal=True, width=40, height=10))
    for end in range(len("hello") + 1):
        screen.draw("> ", "hello"[:end], end)
    assert out.getvalue() == "> hello"


def test_a_text_that_is_taller_than_the_screen_shows_the_rows_around_the_cursor() -> None:
    out = io.StringIO()
    screen = PromptScreen(Console(file=out, force_terminal=True, width=40, height=10))
    text = "\n".join(f"line {number}" for number in range(100))
    screen.draw("> ", text, text.index("line 50"))
    shown = re.findall(r"line (\d+)", out.getvalue())
    assert len(shown) == 9
    assert "50" in shown


@pytest.mark.parametrize(
    ("words", "rows"),
    [
        ([], []),
        (["a", "bb", "ccc"], ["a    bb   ccc"]),
        ([f"name{number}" for number in range(9)], ["name0  name1", "… and 7 more"]),
    ],
)
def test_a_menu_has_few_rows_and_counts_the_rest(words: list[str], rows: list[str]) -> None:
    assert menu_rows(words, 20, 2) == rows
