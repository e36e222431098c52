"""Foreign text on a screen of limited size."""

from __future__ import annotations

import pytest
from rich.text import Text

from sidecar.cli.terminal.safe_text import MAX_LINE, Tail, first_lines, one_line, visible_text


def test_no_control_character_is_left_but_newline_and_tab() -> None:
    everything = "".join(map(chr, [*range(0xA1), 0x202E, 0x2066]))
    left = [each for each in visible_text(everything) if ord(each) < 0x20 or 0x7F <= ord(each) < 0xA0]
    assert left == ["\t", "\n"]
    assert len(visible_text(everything)) == len(everything)
    assert not set(visible_text(everything)) & {"\u202e", "\u2066"}


def test_one_line_has_no_line_end_and_is_cut_to_its_room() -> None:
    assert one_line("a\nb\tc\r") == "a␊b c␍"
    assert one_line("abcdef", 4) == "abc…"
    assert one_line("abcd", 4) == "abcd"


@pytest.mark.parametrize(
    ("lines", "rows", "shown", "note"),
    [
        (["a", "b"], 2, ["a", "b"], ""),
        (["a", "b", "c"], 2, ["a", "b"], "… 1 more line not shown"),
        (["a", "b", "c", "d"], 2, ["a", "b"], "… 2 more lines not shown"),
        (["x" * 25, "b"], 3, ["x" * 25], "… 1 more line not shown"),
        (["x" * 35, "b"], 3, ["x" * 30], "… 5 characters of this line and 1 more line not shown"),
        (["a", "x" * 35], 3, ["a"], "… 1 more line not shown"),
        (["語" * 10], 2, ["語" * 10], ""),
        (["語" * 11], 2, ["語" * 10], "… 1 characters of this line not shown"),
        ([], 2, [], ""),
    ],
)
def test_a_beginning_fills_the_rows_and_counts_what_is_left_out(
    lines: list[str], rows: int, shown: list[str], note: str
) -> None:
    excerpt = first_lines([Text(line) for line in lines], rows, 10)
    assert ([line.plain for line in excerpt.lines], excerpt.note) == (shown, note)


def test_the_end_of_an_output_and_a_count_of_what_came_before() -> None:
    tail = Tail(3)
    for piece in ("one\ntw", "o\nthree\n", "four\n", "fi"):
        tail.add(piece)
    assert (tail.lines, tail.above) == (["three", "four", "fi"], 2)
    tail.add("ve\n")
    assert (tail.lines, tail.above) == (["three", "four", "five"], 2)


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
def test_an_output_is_the_same_in_whatever_pieces_it_comes(size: int) -> None:
    text = "".join(f"line \x1b[3{number % 8}m{number}\x1b[0m\r\n" for number in range(50)) + "10%\r20%\r30%"
    tail = Tail(4)
    for start in range(0, len(text), size):
        tail.add(text[start : start + size])
    assert (tail.lines, tail.above) == (["line 47", "line 48", "line 49", "30%"], 47)


def test_an_output_without_line_ends_is_bounded() -> None:
    tail = Tail(2)
    for _ in range(100):
        tail.add("x" * 1000)
    assert [len(line) for line in tail.lines] == [MAX_LINE]
