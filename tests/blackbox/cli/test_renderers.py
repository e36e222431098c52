"""How an answer appears while it streams."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console
from sidecar_client import Event

from sidecar.cli.terminal import renderers
from sidecar.cli.terminal.markdown_blocks import MAX_BLOCK_CHARACTERS
from sidecar.cli.terminal.renderers import MarkdownRenderer, PlainRenderer, Renderer, split_finished

FENCE = "```python\nfor x in y:\n\n    pass\n```\n"


def event(type: str, **data: object) -> Event:
    return Event(session_id="s", chat_id=None, epoch="e", seq=1, ts=0, type=type, data=dict(data))


def change(path: str, added: int, removed: int) -> dict[str, object]:
    return {"path": path, "kind": "modify", "added": added, "removed": removed}


def paint(painter: Renderer, *texts: str) -> None:
    with painter:
        painter.take(event("message.started", item=None))
        for text in texts:
            painter.take(event("message.delta", text=text))


@pytest.mark.parametrize(
    ("texts", "printed"),
    [
        (["Hello ", "**you**"], "Hello **you**\n"),
        (["ends already\n"], "ends already\n"),
        (["\n\n  spaces \t"], "\n\n  spaces \t\n"),
        ([], ""),
    ],
)
def test_plain_text_is_exact_with_a_newline_at_its_end(texts: list[str], printed: str) -> None:
    out = io.StringIO()
    paint(PlainRenderer(out), *texts)
    assert out.getvalue() == printed


@pytest.mark.parametrize(
    ("text", "finished"),
    [
        ("one paragraph that goes on", ""),
        ("first\n\nsecond", "first\n\n"),
        ("# Title\ntext", "# Title\n"),
        ("- a\n\n- b\n\n  more of b", ""),
        ("- a\n- b\n\nafter", "- a\n- b\n\n"),
        (FENCE[:-4], ""),
        (FENCE + "after", FENCE),
        ("| a |\n|---|\n| 1 |\n", ""),
        ("", ""),
    ],
)
def test_a_block_is_finished_when_another_has_begun(text: str, finished: str) -> None:
    assert split_finished(text) == (finished, text[len(finished) :])


def test_nothing_is_lost_however_the_text_is_cut() -> None:
    text = "# T\n\npara\n\n" + FENCE + "\n1. a\n2. b\n\n> q\n\nend"
    for size in (1, 3, 7):
        done, pending = "", ""
        for start in range(0, len(text), size):
            finished, pending = split_finished(pending + text[start : start + size])
            done += finished
        assert done + pending == text


@pytest.mark.parametrize("pause", [0.0, 1.0])
def test_markdown_is_printed_once_and_whole(pause: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renderers, "SETTLE_SECONDS", pause)
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=60, height=10, legacy_windows=False)
    words = [f"word{number}" for number in range(300)]
    texts = [f"{word} " + "\n\n" * word.endswith("9") for word in words]
    paint(MarkdownRenderer(console), *texts)
    screen = _settled(out.getvalue())
    assert re.findall(r"word\d+", screen) == words


def test_a_block_longer_than_the_screen_shows_its_end() -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=60, height=10, legacy_windows=False)
    painter = MarkdownRenderer(console)
    painter._pending = "x\n" * MAX_BLOCK_CHARACTERS + "the end"
    with console.capture() as capture:
        console.print(painter)
    lines = capture.get().splitlines()
    assert (len(lines), lines[-1].strip()) == (8, "the end")


def test_control_sequences_in_an_answer_do_not_reach_the_terminal() -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=60, height=10, legacy_windows=False)
    paint(MarkdownRenderer(console), "a\x1b]0;owned\x07b\x1b[2Jc\x9b3Jd")
    assert re.findall(r"\x1b\]0;|\x1b\[2J|\x07|\x9b", out.getvalue()) == []
    assert "owned" in out.getvalue()


def test_a_cell_that_is_too_long_for_its_table_is_not_cut() -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=30, height=20, legacy_windows=False)
    paint(MarkdownRenderer(console), f"| file | state |\n|---|---|\n| {'/long' * 12}/end.py | ok |\n")
    assert "/end.py" in re.sub(r"\s", "", _settled(out.getvalue()).replace("ok", ""))


def test_nothing_is_drawn_while_it_is_paused_and_nothing_is_lost() -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=60, height=10, legacy_windows=False)
    painter = MarkdownRenderer(console)
    with painter:
        painter.take(event("message.delta", text="before"))
        painter.pause()
        assert "before" in _settled(out.getvalue())
        drawn = out.getvalue()
        painter.take(event("tool.started", item=tool("running")))
        painter.take(event("message.delta", text="meanwhile"))
        painter.take(event("tool.ended", item=tool("completed")))
        assert out.getvalue() == drawn
        painter.resume()
    lines = [line.strip() for line in _settled(out.getvalue()).splitlines() if line.strip()]
    assert lines == ["before", "● Read a.txt ✓", "meanwhile"]


def test_a_turn_that_ends_while_it_is_paused_is_shown_after_that() -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=60, height=10, legacy_windows=False)
    painter = MarkdownRenderer(console)
    with painter:
        painter.pause()
        painter.take(event("message.delta", text="meanwhile"))
    assert "meanwhile" not in out.getvalue()
    painter.resume()
    assert "meanwhile" in _settled(out.getvalue())
    assert painter._live is None


@pytest.mark.parametrize(
    ("more", "shown"),
    [
        ({"status": "completed"}, "● Read a.txt ✓"),
        ({"status": "failed", "output": {"text": "no\nmore"}}, "● Read a.txt ✗\n  no"),
        ({"status": "failed", "kind": "execute", "exitCode": 2}, "● Read a.txt ✗ exit code 2"),
        ({"status": "completed", "kind": "execute", "exitCode": 0}, "● Read a.txt ✓ exit code 0"),
        ({"status": "cancelled"}, "● Read a.txt – cancelled"),
        ({"status": "completed", "title": "two\nlines\x1b[2J"}, "● two␊lines␛[2J ✓"),
        (
            {"status": "completed", "changes": [change("a", 3, 1), change("b", 4, 0)]},
            "● Read a.txt ✓ +7 -1 in 2 files",
        ),
    ],
)
def test_a_call_tells_how_it_ended(more: dict[str, object], shown: str) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=60, height=10, legacy_windows=False)
    with MarkdownRenderer(console) as painter:
        painter.take(event("tool.started", item=tool("running")))
        painter.take(event("tool.ended", item={**tool("completed"), **more}))
    assert _settled(out.getvalue()).strip() == shown


def test_a_call_that_was_denied_without_asking_tells_why() -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=60, height=10, legacy_windows=False)
    with MarkdownRenderer(console) as painter:
        painter.take(event("tool.started", item=tool("running")))
        resolved = {"decision": "deny_once", "by": "rule", "itemId": "i-1", "reason": "a rule denies it"}
        painter.take(event("permission.resolved", **resolved))
        painter.take(event("tool.ended", item=tool("denied")))
    assert _settled(out.getvalue()).strip() == "● Read a.txt ✗ denied\n  a rule denies it"


def tool(status: str) -> dict[str, object]:
    about = {"id": "i-1", "turnId": "t", "type": "tool", "startedAt": 0, "name": "read_file", "kind": "read"}
    return {**about, "title": "Read a.txt", "status": status}


def _settled(raw: str) -> str:
    """What stays on a terminal: a small model of cursor-up and erase-line, enough for what `rich` sends."""
    rows, row = [""], 0
    for part in re.findall(r"\x1b\[\d*[A-Za-z]|\x1b\[[0-9;?]*[A-Za-z]|\r|\n|[^\x1b\r\n]+", raw):
        if part == "\x1b[1A":
            row = max(0, row - 1)
        elif part == "\x1b[2K":
            rows[row] = ""
        elif part == "\n":
            row += 1
            rows += [""] * (row + 1 - len(rows))
        elif not part.startswith(("\x1b", "\r")):
            rows[row] += part
    return "\n".join(rows)
