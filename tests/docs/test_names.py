"""The files, targets and commands that the pages name are there, and those that are there are named."""

from __future__ import annotations

import re

import pytest

from sidecar.cli.terminal.slash import HELP

from .conftest import Folder
from .pages import (
    CONTRIBUTING,
    FIGURES,
    FIRST,
    LINKED,
    PLAIN,
    PROVIDERS,
    README,
    ROOT,
    TERMINAL,
    code,
    headings,
    links,
    makes,
    read_page,
    sidecar_commands,
)

TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
each_page = pytest.mark.parametrize("name", LINKED)


@each_page
def test_every_link_leads_to_a_file_and_a_heading(name: str) -> None:
    assert [target for target in links(read_page(name)) if not _leads_somewhere(name, target)] == []


@each_page
def test_every_target_named_is_in_the_makefile(name: str) -> None:
    assert makes(read_page(name)) <= TARGETS


def test_the_readme_names_the_first_commands_and_contributing_every_target() -> None:
    assert makes(README) >= {"chat", "test"}
    assert makes(CONTRIBUTING) == TARGETS
    assert {"test", "check", "chat"} <= TARGETS


def test_the_terminal_page_names_exactly_the_commands_that_help_knows(folder: Folder) -> None:
    known = re.findall(r"^    ([a-z-]+)(?:  |$)", folder.run(".venv/bin/sidecar", "--help"), re.MULTILINE)

    assert sidecar_commands(TERMINAL) == set(known)
    assert sidecar_commands(README) | sidecar_commands(PROVIDERS) <= set(known)


def test_the_terminal_page_names_exactly_the_slash_commands_of_the_chat() -> None:
    rows = re.findall(r"^\| `/([a-z]+)(?: ([^`]+))?` \|", TERMINAL, re.MULTILINE)

    assert dict(rows) == {name: argument for name, (argument, _) in HELP.items()}


def test_every_module_named_in_contributing_is_there() -> None:
    modules = {name for line in code(CONTRIBUTING) for name in re.findall(r"python -m ([\w.]+)", line)}

    assert [name for name in modules if not (ROOT / name.replace(".", "/")).with_suffix(".py").exists()] == []
    assert modules


def test_every_folder_of_tests_is_on_the_page() -> None:
    tests = ROOT / "tests"
    found = [
        *tests.glob("*/__init__.py"),
        *tests.glob("blackbox/*/__init__.py"),
        *tests.glob("unit/*/__init__.py"),
    ]
    folders = {str(path.parent.relative_to(tests)) for path in found}

    assert [name for name in sorted(folders) if f"(tests/{name})" not in CONTRIBUTING] == []


def test_the_figures_shown_are_those_last_measured() -> None:
    measured = {row[0]: row[1:] for row in _figures(read_page("benchmarks/README.md"))}
    shown = _figures(FIGURES)

    assert [row for row in shown if row[1:] != measured[row[0]][: len(row) - 1]] == []
    assert shown


@pytest.mark.parametrize("name", FIRST)
def test_the_readme_links_to_the_first_pages(name: str) -> None:
    assert name == "README.md" or name in links(README)


def test_every_page_is_reached_from_the_readme() -> None:
    assert [name for name in PLAIN if name not in _reached("README.md")] == []


def _reached(start: str) -> set[str]:
    """The pages that a reader gets to by links, from `start` on."""
    found = {start}
    pending = [start]
    while pending:
        page = pending.pop()
        folder = (ROOT / page).parent
        targets = {target.partition("#")[0] for target in links(read_page(page))}
        paths = {(folder / target).resolve() for target in targets if target.endswith(".md")}
        new = {str(path.relative_to(ROOT)) for path in paths} - found
        found |= new
        pending += new
    return found


def _leads_somewhere(page: str, target: str) -> bool:
    path, _, anchor = target.partition("#")
    file = (ROOT / page).parent / path if path else ROOT / page
    return file.exists() and (not anchor or anchor in headings(file.read_text("utf-8")))


def _figures(page: str) -> list[list[str]]:
    """The rows of a table whose second cell is a figure with its unit."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines()]
    return [row for row in rows if len(row) > 2 and re.fullmatch(r"[\d.,]+ (ms|MB|/s)", row[1])]
