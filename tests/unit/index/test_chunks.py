"""Texts are divided on natural borders: everything is in some chunk, none is too large, each says what it is under."""

from __future__ import annotations

import random

import pytest

from sidecar.index.chunks import chunks
from sidecar.model.index import IndexChunk

PYTHON = '''"""Engines."""

import os


class Engine:
    """Runs."""

    def start(self) -> None:
        self.running = True

    def stop(self) -> None:
        self.running = False


def build() -> Engine:
    return Engine()
'''
MARKDOWN = "# Guide\n\nHello.\n\n## Install\n\nRun make.\n\n### Linux\n\nUse apt.\n\n## Use\n\nClick.\n"
GIT = "".join(
    f"commit {n:040x}\nAuthor: A <a@b.c>\nDate:   now\n\n    Change {n}\n\n file.py | 2 +-\n\n"
    for n in range(1, 4)
)
PYTEST = (
    "collected 2 items\n\n"
    + "=" * 20
    + " FAILURES "
    + "=" * 20
    + "\n"
    + "_" * 9
    + " test_a "
    + "_" * 9
    + "\nE boom\n"
)


def _titles(text: str, **more: str) -> list[str]:
    return [chunk.title for chunk in chunks(text, **more)]  # type: ignore[arg-type]


def test_code_is_divided_by_definition() -> None:
    titles = _titles(PYTHON, kind="file", path="engine.py")
    assert titles == ["", "Engine", "Engine › start", "Engine › stop", "build"]


def test_markdown_is_divided_by_heading() -> None:
    wanted = ["Guide", "Guide › Install", "Guide › Install › Linux", "Guide › Use"]
    assert _titles(MARKDOWN, kind="file", path="guide.md") == _titles(MARKDOWN, kind="page") == wanted


def test_the_log_of_git_is_divided_by_commit() -> None:
    assert _titles(GIT, kind="output") == [f"commit {n:040x}" for n in range(1, 4)]


def test_the_output_of_tests_is_divided_by_section() -> None:
    assert _titles(PYTEST, kind="output") == ["", "FAILURES", "FAILURES › test_a"]


def test_json_is_divided_by_key_path() -> None:
    items = ",".join(f'{{"name": "item {n}", "text": "{"x" * 900}"}}' for n in range(6))
    titles = _titles(f'{{"meta": {{"a": 1}}, "items": [{items}]}}', kind="output")
    assert titles[1:] == [
        "meta",
        *(["items"] if "items" in titles else []),
        *(f"items[{n}]" for n in range(6)),
    ]


def test_a_log_of_json_lines_is_a_log() -> None:
    assert set(_titles('{"level": "info", "message": "started"}\n' * 500, kind="output")) == {""}


@pytest.mark.parametrize("limit", [512, 4096])
def test_any_text_is_divided_whole_and_within_the_limit(limit: int) -> None:
    draw = random.Random(limit)
    pieces = [
        "\n",
        "\n\n",
        " ",
        "word",
        "x" * 700,
        "日本語の文",
        "🙂" * 90,
        "\t",
        "# head\n",
        "{",
        "[1,",
        '"',
        "\r\n",
        "\0",
    ]
    for path, kind in (
        (None, "output"),
        ("a.py", "file"),
        ("a.md", "file"),
        ("a.json", "file"),
        (None, "page"),
    ):
        for _ in range(25):
            text = "".join(draw.choices(pieces, k=draw.randrange(120)))
            divided = list(chunks(text, kind=kind, path=path, max_bytes=limit))  # type: ignore[arg-type]
            _check(text, divided, limit)


def _check(text: str, divided: list[IndexChunk], limit: int) -> None:
    assert "".join(text[chunk.start : chunk.end] for chunk in divided) == text
    assert all(len(text[chunk.start : chunk.end].encode()) <= limit for chunk in divided)
    for chunk in divided:
        first = text.count("\n", 0, chunk.start) + 1
        last = text.count("\n", 0, chunk.end - 1) + 1
        assert chunk.lines == (first, last)


def test_a_text_without_any_border_is_divided_all_the_same() -> None:
    _check("x" * 100_000, list(chunks("x" * 100_000)), 4096)
