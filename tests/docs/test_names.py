"""The files, targets and commands that the pages name are there, and those that are there are named."""

from __future__ import annotations

import re

import pytest

from sidecar.cli.slash import HELP

from .conftest import Folder
from .pages import CHANGELOG, CONTRIBUTING, README, ROOT, code, headings, links, makes, sidecar_commands

TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
PAGES = {"README.md": README, "CONTRIBUTING.md": CONTRIBUTING, "CHANGELOG.md": CHANGELOG}
each_page = pytest.mark.parametrize("page", PAGES.values(), ids=PAGES.keys())


@each_page
def test_every_link_leads_to_a_file_and_a_heading(page: str) -> None:
    assert [target for target in links(page) if not _leads_somewhere(target)] == []


@each_page
def test_every_target_named_is_in_the_makefile(page: str) -> None:
    assert makes(page) <= TARGETS


def test_the_readme_names_the_first_commands_and_contributing_every_target() -> None:
    assert makes(README) >= {"chat", "test"}
    assert makes(CONTRIBUTING) == TARGETS
    assert {"test", "check", "chat"} <= TARGETS


def test_the_readme_names_exactly_the_commands_that_help_knows(folder: Folder) -> None:
    known = re.findall(r"^    ([a-z-]+)(?:  |$)", folder.run(".venv/bin/sidecar", "--help"), re.MULTILINE)

    assert sidecar_commands(README) == set(known)


def test_the_readme_names_exactly_the_slash_commands_of_the_chat() -> None:
    rows = re.findall(r"^\| `/([a-z]+)(?: ([^`]+))?` \|", README, re.MULTILINE)

    assert dict(rows) == {name: argument for name, (argument, _) in HELP.items()}


def test_every_module_named_in_contributing_is_there() -> None:
    modules = {name for line in code(CONTRIBUTING) for name in re.findall(r"python -m ([\w.]+)", line)}

    assert [name for name in modules if not (ROOT / name.replace(".", "/")).with_suffix(".py").exists()] == []
    assert modules


def test_every_folder_of_tests_is_on_the_page() -> None:
    folders = {path.parent.name for path in (ROOT / "tests").glob("*/__init__.py")}

    assert [name for name in sorted(folders) if f"(tests/{name})" not in CONTRIBUTING] == []


def test_the_figures_of_the_readme_are_those_last_measured() -> None:
    measured = {row[0]: row[1:] for row in _figures((ROOT / "benchmarks" / "README.md").read_text("utf-8"))}
    shown = _figures(README)

    assert [row for row in shown if row[1:] != measured[row[0]][: len(row) - 1]] == []
    assert shown


def _leads_somewhere(target: str) -> bool:
    path, _, anchor = target.partition("#")
    file = ROOT / path
    return file.exists() and (not anchor or anchor in headings(file.read_text("utf-8")))


def _figures(page: str) -> list[list[str]]:
    """The rows of a table whose second cell is a figure with its unit."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines()]
    return [row for row in rows if len(row) > 2 and re.fullmatch(r"[\d.,]+ (ms|MB|/s)", row[1])]
