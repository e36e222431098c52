"""Excerpts of texts that are too long: what is shown of them, and that it fits."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.context.excerpts import excerpt
from sidecar.context.excerpts.fitting import MAX_COUNTS

MARKER = re.compile(r"… (\d+) lines? …")
UNICODE = st.characters(exclude_characters="…\r\n")
LINES = st.lists(st.text(UNICODE, max_size=40), min_size=1, max_size=60)
NAMES = ["a.py", "a.ts", "A.java", "a.cpp", "a.rb", "a.md", "a.yaml", "notes.txt", ""]


def tokens(text: str) -> int:
    return (len(text.encode(errors="replace")) + 2) // 3


def shown(text: str, part: str) -> list[int]:
    """The numbers of the lines that an excerpt shows, from 1; it is checked line by line against the text."""
    lines = re.split(r"\r\n|\r|\n", text)
    if not lines[-1]:
        lines.pop()
    if part == text:
        return list(range(1, len(lines) + 1))
    at = 0
    numbers = []
    for line in part.split("\n") if part else []:
        if marker := MARKER.fullmatch(line):
            assert int(marker[1]) > 0, "a marker for nothing"
            at += int(marker[1])
            continue
        assert at < len(lines), "more lines than the text has"
        assert line == lines[at], f"line {at + 1} differs"
        at += 1
        numbers.append(at)
    assert at == len(lines) or not part, "lines are missing without a marker"
    return numbers


def program(classes: int = 12, methods: int = 6) -> str:
    """Classes with methods of six lines; line 1 imports, and every name is there once."""
    lines = ["import os", ""]
    for number in range(classes):
        lines += [f"class Kind{number}:", f'    """Of number {number}."""', ""]
        for method in range(methods):
            lines += [
                f"    def step_{number}_{method}(self) -> int:",
                f"        first = {number}",
                f"        second = {method}",
                "        third = first + second",
                "        return third",
                "",
            ]
    return "\n".join(lines) + "\n"


PROGRAM = program()
LINE = {line.strip(): number for number, line in enumerate(PROGRAM.split("\n"), 1)}
"""Where each line stands; the last place of those that are repeated."""


def method_lines(number: int, method: int) -> set[int]:
    head = LINE[f"def step_{number}_{method}(self) -> int:"]
    return set(range(head, head + 5))


def test_a_text_that_fits_is_returned_as_it_is() -> None:
    assert excerpt("a\r\nb\n", "", 10, tokens) == "a\r\nb\n"


@pytest.mark.parametrize("room", [0, -5])
def test_nothing_is_shown_without_room(room: int) -> None:
    assert excerpt(PROGRAM, "", room, tokens) == ""


@pytest.mark.parametrize(
    "hint",
    [
        "see line 100",
        "see lines 98-102",
        "Lines 98 to 102, please",
        "in L100",
        "kinds.py:100",
        "src/kinds.py:100:7: error",
        "/home/me/src/kinds.py#L98-L102",
        "kinds.py(100,7): error",
        'File "/home/me/src/kinds.py", line 100, in step',
        "Zeile 100",
        "línea 100",
        "ligne 100",
        "第100行",
        "100行目",
        "@@ -90,3 +98,5 @@",
    ],
)
def test_a_line_is_shown_however_its_number_is_named(hint: str) -> None:
    part = excerpt(PROGRAM, hint, 120, tokens, path="src/kinds.py")
    assert 100 in shown(PROGRAM, part)


@pytest.mark.parametrize(
    "hint", ["other.py:300", 'File "lib/kinds.py", line 300', "localhost:300", "at 12:300"]
)
def test_a_number_beside_another_name_points_nowhere(hint: str) -> None:
    assert excerpt(PROGRAM, hint, 120, tokens, path="src/kinds.py") == excerpt(
        PROGRAM, "", 120, tokens, path="src/kinds.py"
    )


def test_the_whole_method_around_a_line_is_shown_with_the_heads_that_enclose_it() -> None:
    lines = set(
        shown(
            PROGRAM,
            excerpt(PROGRAM, f"line {LINE['def step_7_3(self) -> int:'] + 3}", 150, tokens, path="a.py"),
        )
    )
    assert method_lines(7, 3) | {LINE["class Kind7:"]} <= lines


def test_a_method_of_a_nested_class_is_shown_with_both_classes() -> None:
    filler = "\n".join(f"x{number} = {number}" for number in range(300))
    inner = "class Outer:\n    class Inner:\n        def deep(self):\n            one()\n            two()\n"
    text = f"{filler}\n{inner}{filler}\n"
    part = excerpt(text, "what does deep() do?", 60, tokens, path="a.py")
    assert set(range(301, 306)) <= set(shown(text, part))


def test_the_definition_of_a_name_is_shown_whole() -> None:
    part = excerpt(PROGRAM, "why does step_9_2 fail?", 150, tokens, path="a.py")
    assert method_lines(9, 2) <= set(shown(PROGRAM, part))


@pytest.mark.parametrize("hint", ["line 510", "what is long_one for?", "`x30 = 30`"])
def test_a_long_definition_is_shown_whole_when_it_fits(hint: str) -> None:
    long = "def long_one():\n" + "".join(f"    x{number} = {number}\n" for number in range(40))
    text = PROGRAM + long + PROGRAM
    head = PROGRAM.count("\n") + 1
    part = excerpt(text, hint, 300, tokens, path="a.py")
    assert set(range(head, head + 41)) <= set(shown(text, part))


def test_of_two_methods_of_one_name_the_named_owner_decides() -> None:
    text = PROGRAM.replace("step_3_1", "go").replace("step_8_1", "go")
    part = excerpt(text, "look at Kind8.go", 90, tokens, path="a.py")
    lines = set(shown(text, part))
    assert method_lines(8, 1) <= lines
    assert not method_lines(3, 1) & lines


def test_a_quoted_fragment_is_shown_in_its_definition() -> None:
    text = PROGRAM.replace(
        "        first = 5\n        second = 4\n", "        x = 5\n        raise ValueError('no such box')\n"
    )
    part = excerpt(text, 'I get "no such box"', 150, tokens, path="a.py")
    assert method_lines(5, 4) <= set(shown(text, part))


def test_of_a_definition_that_does_not_fit_head_and_surroundings_are_shown() -> None:
    body = "\n".join(f"    value_{number} = {number}" for number in range(2000))
    text = f"import os\n\n\ndef giant():\n{body}\n"
    part = excerpt(text, "value_1500", 200, tokens, path="a.py")
    assert {4, *range(1501, 1510)} <= set(shown(text, part))


def test_without_a_hint_the_outline_is_shown_before_bodies() -> None:
    part = excerpt(PROGRAM, "explain this file", 300, tokens, path="a.py")
    assert "import os" in part
    assert [f"class Kind{number}:" in part for number in range(12)] == [True] * 12


def test_without_a_language_head_and_tail_are_shown() -> None:
    lines = shown(PROGRAM, excerpt(PROGRAM, "", 300, tokens))
    assert lines[:10] == list(range(1, 11))
    assert lines[-5:] == list(range(LINE["return third"] - 3, LINE["return third"] + 2))


def test_broken_code_is_shown_by_what_is_left_of_its_layout() -> None:
    text = '}}} ((( "\n' + PROGRAM.replace("(self)", "(self").replace("return", "retrun")
    part = excerpt(text, "step_9_2", 150, tokens, path="a.py")
    head = text.split("\n").index("    def step_9_2(self -> int:") + 1
    assert set(range(head, head + 5)) <= set(shown(text, part))


def test_line_ends_of_any_kind_are_line_ends() -> None:
    parts = [
        excerpt(PROGRAM.replace("\n", end), "step_9_2", 200, tokens, path="a.py")
        for end in ("\n", "\r\n", "\r")
    ]
    assert parts[0] == parts[1] == parts[2]


def test_a_line_that_alone_is_too_long_is_cut_around_what_is_named() -> None:
    text = "a;" * 40_000 + "var needle_here=1;" + "b;" * 40_000
    part = excerpt(text, "where is needle_here set?", 100, tokens, path="a.min.js")
    assert "var needle_here=1;" in part
    assert part.startswith("…")
    assert part.endswith("…")
    assert 90 <= tokens(part) <= 100


def test_a_long_line_without_a_hint_is_shown_from_both_ends() -> None:
    text = "start" + "é" * 500_000 + "end"
    part = excerpt(text, "", 100, tokens)
    assert re.fullmatch("starté+…é+end", part)
    assert 90 <= tokens(part) <= 100


@pytest.mark.parametrize("size", [310, 450, 600, 900])
def test_a_line_a_little_longer_than_the_room_fills_it(size: int) -> None:
    assert 90 <= tokens(excerpt("x" * size, "", 100, tokens)) <= 100


def test_lines_beside_a_long_one_are_shown_too() -> None:
    text = "/* licence */\n" + "x" * 100_000 + "\nlast()\n"
    part = excerpt(text, "", 100, tokens)
    assert re.fullmatch(r"/\* licence \*/\nx+…x+\nlast\(\)", part)


@given(LINES, st.text(max_size=60), st.integers(1, 400), st.sampled_from(NAMES))
def test_no_excerpt_is_larger_than_its_room_nor_counted_often(
    lines: list[str], hint: str, room: int, path: str
) -> None:
    counts = 0

    def count(text: str) -> int:
        nonlocal counts
        counts += 1
        return tokens(text)

    part = excerpt("\n".join(lines), hint, room, count, path=path)
    assert tokens(part) <= room
    assert counts <= MAX_COUNTS


def test_a_tokenizer_that_jumps_is_not_asked_for_ever() -> None:
    asked = []

    def count(text: str) -> int:
        asked.append(text)
        return 1 if len(text) < 200 else 10**9

    excerpt("x\n" * 500_000, "", 100_000, count)
    assert len(asked) <= MAX_COUNTS


@given(LINES, st.text(max_size=60), st.integers(80, 400), st.sampled_from(NAMES))
def test_lines_stay_whole_and_in_order_and_markers_count_the_others(
    lines: list[str], hint: str, room: int, path: str
) -> None:
    """A line has at most 40 characters of four bytes here, so that each of them fits with two markers."""
    text = "\n".join(lines)
    shown(text, excerpt(text, hint, room, tokens, path=path))


@given(
    st.integers(100, 3000),
    st.sampled_from(["", "step_3_3", "line 40", "Kind11 step_1_1 `third`"]),
    st.sampled_from(NAMES),
)
def test_the_room_is_used(room: int, hint: str, path: str) -> None:
    part = excerpt(PROGRAM, hint, room, tokens, path=path)
    assert tokens(part) >= 0.9 * min(room, tokens(PROGRAM))


POINTED = {
    "why does step_9_2 fail?": method_lines(9, 2) | {LINE["class Kind9:"]},
    "see lines 200-260": set(range(200, 261)),
    "Kind4 and Kind5": {LINE["class Kind4:"], LINE["class Kind5:"]},
    "step_1_1, step_2_2 and step_3_3": {LINE[f"def step_{at}_{at}(self) -> int:"] for at in (1, 2, 3)},
}


@given(st.integers(40, 1500), st.integers(0, 300), st.sampled_from(list(POINTED)))
def test_more_room_shows_no_less_of_what_is_pointed_at(room: int, more: int, hint: str) -> None:
    less, wider = (excerpt(PROGRAM, hint, size, tokens, path="kinds.py") for size in (room, room + more))
    assert len(POINTED[hint] & set(shown(PROGRAM, less))) <= len(POINTED[hint] & set(shown(PROGRAM, wider)))


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("… 2 lines …", "… 3 lines …"),
        ("… 2 lines …\n", ""),
        ("a\n", "b\n"),
        ("a\n… 2 lines …", "… 2 lines …\na"),
    ],
)
def test_the_check_of_these_tests_sees_a_wrong_excerpt(right: str, wrong: str) -> None:
    text, part = "a\nx\ny\nd\n", "a\n… 2 lines …\nd"
    assert shown(text, part) == [1, 4]
    with pytest.raises(AssertionError):
        shown(text, part.replace(right, wrong))
