"""The pages and the help of the command line are short and use the words of the glossary."""

from __future__ import annotations

import re
from argparse import ArgumentParser, _SubParsersAction
from collections.abc import Iterator

import pytest

from sidecar.cli.parser import build_parser

from .pages import DETAILS, GLOSSARY, PLAIN, README, read_page

MAX_LINE = 100
MAX_README_LINES = 150

AVOIDED = re.compile(
    r"\b(?:leave|house|room|desk|clerk|shelf|door|anew|mend(?:s|ed)?|gives? way|is told|who can answer)\b",
    re.IGNORECASE,
)
"""Words of the glossary's second table that have no plain use here."""


def prose(page: str) -> str:
    """The page without its requests, each of which is one line of JSON."""
    return re.sub(r"^```json\n.*?^```$", "", page, flags=re.DOTALL | re.MULTILINE)


def helps(parser: ArgumentParser) -> Iterator[tuple[str, str]]:
    """The name and the help of every command."""
    yield parser.prog, parser.format_help()
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            for each in action.choices.values():
                yield from helps(each)


HELPS = dict(helps(build_parser()))


@pytest.mark.parametrize("name", PLAIN)
def test_a_line_has_at_most_100_characters(name: str) -> None:
    wide = [line for line in prose(read_page(name)).splitlines() if len(line) > MAX_LINE]

    assert [line for line in wide if not (name in DETAILS and line.startswith("|"))] == []


@pytest.mark.parametrize(
    "name", ["protocol/README.md", "protocol/transcripts/README.md", "tests/support/README.md"]
)
def test_a_reference_has_short_lines_beside_its_tables_and_code(name: str) -> None:
    page = re.sub(r"^```.*?^```$", "", read_page(name), flags=re.DOTALL | re.MULTILINE)
    wide = [line for line in page.splitlines() if len(line) > MAX_LINE and not line.startswith("|")]

    assert wide == []


def test_the_readme_is_read_to_the_end() -> None:
    assert len(README.splitlines()) <= MAX_README_LINES


@pytest.mark.parametrize("name", [name for name in PLAIN if name != "GLOSSARY.md"])
def test_a_page_uses_the_words_of_the_glossary(name: str) -> None:
    words = re.sub(r"`[^`\n]+`", "", prose(read_page(name)))  # names on the wire keep their words

    assert AVOIDED.findall(words) == []


@pytest.mark.parametrize("command", HELPS)
def test_the_help_of_a_command_uses_the_words_of_the_glossary(command: str) -> None:
    assert AVOIDED.findall(HELPS[command]) == []


@pytest.mark.parametrize("command", HELPS)
def test_the_examples_in_a_help_fit_a_terminal(command: str) -> None:
    assert [line for line in HELPS[command].splitlines() if len(line) > MAX_LINE] == []


def test_the_glossary_defines_every_word_once_and_in_order() -> None:
    words = re.findall(r"^\| ([a-z ]+) \|", GLOSSARY.partition("## Words we avoid")[0], re.MULTILINE)
    defined = [word for word in words if word != "word"]

    assert defined == sorted(set(defined))
    assert {
        "chat",
        "session",
        "turn",
        "item",
        "event",
        "patch",
        "block",
        "gate",
        "engine",
        "provider",
    } <= set(defined)
