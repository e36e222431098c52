"""What a terminal sends, decoded: the same whatever pieces it arrives in."""

from __future__ import annotations

import pytest

from sidecar.cli.terminal.edited_text import EditedText
from sidecar.cli.terminal.key_input import Input, KeyDecoder, KeyPress, Pasted, Typed
from sidecar.cli.terminal.pastes import Pastes


def joined(inputs: list[Input]) -> list[Input]:
    """Typed text in one piece."""
    found: list[Input] = []
    for each in inputs:
        if isinstance(each, Typed) and found and isinstance(found[-1], Typed):
            found[-1] = Typed(found[-1].text + each.text)
        else:
            found.append(each)
    return found


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
@pytest.mark.parametrize(
    ("sent", "inputs"),
    [
        ("höre 你好", [Typed("höre 你好")]),
        ("a\r", [Typed("a"), KeyPress("submit")]),
        ("\x1b[200~one\r\ntwo\rthree\x1b[201~x", [Pasted("one\ntwo\nthree"), Typed("x")]),
        ("\x1b[200~a\x03\x1b[31m\x1b[20\x1b[201~", [Pasted("a\x03\x1b[31m\x1b[20")]),
        ("\x1b[200~\x1b[201~", [Pasted("")]),
        (
            "\x1b[A\x1bOB\x1b[1;5C\x1b[3~",
            [KeyPress("up"), KeyPress("down"), KeyPress("word_right"), KeyPress("erase_right")],
        ),
        ("\x1b\r\x1b\x7f", [KeyPress("newline"), KeyPress("erase_word_left")]),
        ("\x1b[15~\x1b[<0;1;2M\x00ok", [Typed("ok")]),
        ("\x03\x04\t", [KeyPress("interrupt"), KeyPress("end_of_input"), KeyPress("complete")]),
    ],
)
def test_keys_and_pastes_are_decoded(sent: str, inputs: list[Input], size: int) -> None:
    data, decoder = sent.encode(), KeyDecoder()
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    assert joined([each for piece in pieces for each in decoder.decode(piece)]) == inputs
    assert not decoder.pending


def test_a_lone_escape_and_a_paste_without_an_end_are_given_up() -> None:
    decoder = KeyDecoder()
    assert (list(decoder.decode(b"\x1b")), decoder.pending) == ([], True)
    assert list(decoder.flush()) == [KeyPress("escape")]
    assert (list(decoder.decode(b"\x1b[200~half\x1b[2")), decoder.pasting) == ([], True)
    assert list(decoder.flush()) == [Pasted("half\x1b[2")]
    assert not decoder.pending


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert list(KeyDecoder().decode(b"a\xff\xc3(b")) == [Typed("a\ufffd\ufffd(b")]


@pytest.mark.parametrize(
    ("actions", "text"),
    [
        (["erase_word_left"], "one two |"),
        (["word_left", "erase_to_end"], "one two (|"),
        (["word_left", "word_left", "erase_word_right"], "one | (three"),
        (["home", "word_right", "erase_to_start", "end", "put_back"], " two (threeone|"),
        (["left", "erase_left", "erase_right", "right"], "one two (thr|"),
    ],
)
def test_a_line_is_edited(actions: list[str], text: str) -> None:
    line = EditedText("one two (three")
    for action in actions:
        getattr(line, action)()
    assert f"{line.before}|{line.after}" == text


def test_an_accent_and_an_emoji_are_one_character() -> None:
    line = EditedText("e\u0301👩\u200d💻")
    line.erase_left()
    assert line.text == "e\u0301"
    line.left()
    assert line.position == 0


def test_lines_are_gone_through_up_and_down() -> None:
    line = EditedText("long line\nab\nthird one")
    assert (line.line_up(), line.before) == (True, "long line\nab")
    assert (line.line_up(), line.before) == (True, "lo")
    assert not line.line_up()
    assert (line.line_down(), line.line_down(), line.line_down()) == (True, True, False)
    assert line.before == "long line\nab\nth"


def test_a_long_paste_is_one_character_and_comes_back_whole() -> None:
    pastes, text = Pastes(), "line\n" * 50
    assert pastes.hold("short\npaste") == "short\npaste"
    held = pastes.hold(text)
    assert (len(held), pastes.with_notes(f"a{held}b"), pastes.whole(f"a{held}b")) == (
        1,
        "a[pasted 50 lines]b",
        f"a{text}b",
    )
    assert pastes.whole(pastes.hold(held)) == held
