"""Programs are found by PATH, and never in the project."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sidecar.system import programs
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


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with folders on PATH, one of them in a virtual environment; each has the program `tool`."""
    monkeypatch.setattr(programs, "_writable", set())
    monkeypatch.setattr(programs, "_not_plain", set())
    root = tmp_path / "project"
    folders = [root / "env/bin", root / "node_modules/.bin", tmp_path / "system"]
    for folder in folders:
        folder.mkdir(parents=True)
        program = folder / "tool"
        program.write_text("#!/bin/sh\n", "utf-8")
        program.chmod(0o755)
    (root / "env/pyvenv.cfg").write_text("", "utf-8")
    (root / "linked").symlink_to("env/bin")
    (tmp_path / "shortcut").symlink_to(root / "env/bin")
    entries = [
        *map(str, folders[:2]),
        f"{root}/linked",
        f"{root}/missing",
        str(root),
        f"{tmp_path}/shortcut",
        ".",
    ]
    monkeypatch.setenv("PATH", os.pathsep.join([*entries, str(folders[2])]))
    return root


def test_no_program_of_a_folder_that_commands_write_to_is_found(project: Path, tmp_path: Path) -> None:
    assert programs.find_program("tool") == str(project / "env/bin/tool")
    programs.note_writable([str(project)])
    assert programs.find_program("tool") == str(tmp_path / "system/tool")


def test_a_link_to_such_a_program_is_not_found_either(project: Path, tmp_path: Path) -> None:
    (tmp_path / "system/other").symlink_to(project / "env/bin/tool")
    programs.note_writable([str(project)])
    assert programs.find_program("other") is None


def test_a_folder_with_the_programs_of_the_system_hides_none(project: Path) -> None:
    programs.note_writable(["/", "/usr"])
    assert programs.find_program("sh", "/usr/bin:/bin") in ("/usr/bin/sh", "/bin/sh")


def test_what_runs_outside_searches_no_folder_that_a_command_could_make(
    project: Path, tmp_path: Path
) -> None:
    programs.note_writable([str(project)])
    (project / "missing").mkdir()
    kept = [str(project / "env/bin"), str(project / "node_modules/.bin"), str(tmp_path / "system")]
    assert programs.outside_path(os.environ["PATH"]).split(os.pathsep) == kept


def test_folders_of_path_are_known_with_their_virtual_environment(project: Path, tmp_path: Path) -> None:
    found = [project / "env", project / "node_modules/.bin"]
    assert programs.path_folders([str(project)]) == [*map(str, found), str(project / "env/bin")]
    assert programs.path_folders([str(tmp_path / "elsewhere")]) == []


def test_a_program_behind_a_link_in_path_is_known(project: Path) -> None:
    script = project / "node_modules/lint/cli.js"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\n", "utf-8")
    script.chmod(0o755)
    (project / "node_modules/.bin/lint").symlink_to("../lint/cli.js")
    programs.note_writable([str(project)])
    assert programs.writable_programs(["lint", "sh", "no such", "./lint"]) == [str(script)]
