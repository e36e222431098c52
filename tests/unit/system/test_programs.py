"""Programs are found by PATH, and never in the project."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sidecar.system.programs import find_program


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the program `tool`, which is also the working directory."""
    program = tmp_path / "tool"
    program.write_text("#!/bin/sh\n", "utf-8")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_program_is_found_by_the_path_given(installed: Path) -> None:
    assert find_program("tool", f"/nowhere{os.pathsep}{installed}") == str(installed / "tool")


def test_a_program_is_found_by_the_path_of_the_process(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(installed))

    assert find_program("tool") == str(installed / "tool")


@pytest.mark.parametrize("relative", [".", "", "./", "../{name}", "{name}/.."])
def test_a_relative_entry_of_path_finds_nothing(installed: Path, relative: str) -> None:
    (installed / installed.name).mkdir()

    assert find_program("tool", relative.format(name=installed.name)) is None


@pytest.mark.parametrize("name", ["other", "./tool", "", "tool/", "no such program"])
def test_what_is_not_installed_is_none(installed: Path, name: str) -> None:
    assert find_program(name, str(installed)) is None


def test_a_file_that_cannot_be_run_is_no_program(installed: Path) -> None:
    (installed / "tool").chmod(0o644)

    assert find_program("tool", str(installed)) is None
