"""Which folders are one project: links and spellings are, work trees, submodules and other folders are not."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from sidecar.chat.journal.project_identity import project_at
from sidecar.system.path_case import canonical_path
from tests.support.patience import PATIENCE_S
from tests.support.spawner import Spawner

from .database_files import ended, folder, sql


def git(cwd: Path, *words: str) -> None:
    settings = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *settings, *words], cwd=cwd, check=True, capture_output=True, timeout=PATIENCE_S)


def test_a_link_and_dots_lead_to_the_same_project(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "link").symlink_to("project")
    spellings = ["project", "link", "project/../project", "./project/"]
    assert len({project_at(os.path.join(tmp_path, spelled)).ids for spelled in spellings}) == 1


def test_work_trees_and_submodules_are_projects_of_their_own(tmp_path: Path) -> None:
    library, main = tmp_path / "library", tmp_path / "main"
    for repository in (library, main):
        repository.mkdir()
        git(repository, "init", "-q")
        git(repository, "commit", "-q", "--allow-empty", "-m", "start")
    git(main, "worktree", "add", "-q", str(tmp_path / "tree"))
    git(main, "submodule", "add", "-q", str(library), "sub")
    places = [main, tmp_path / "tree", main / "sub", library]
    assert len({project_at(str(place)).ids[0] for place in places}) == 4


def test_names_are_folded_where_their_folder_folds_them_and_nowhere_else(tmp_path: Path) -> None:
    place = tmp_path / "Disk" / "Ada" / "Weberei"
    place.mkdir(parents=True)
    folding = str(tmp_path / "Disk")

    def same(left: str, right: str) -> bool:
        """A disk that finds names in any letters is mounted at `Disk`."""
        return left.startswith(folding + os.sep) and left.casefold() == right.casefold()

    spelled = canonical_path(str(place), same)
    assert spelled == os.path.join(folding, "ada", "weberei")
    assert canonical_path(os.path.join(folding, "Ada", "GONE"), same) == os.path.join(folding, "ada", "gone")
    assert canonical_path(str(place)) == str(place)


def test_a_link_in_other_letters_does_not_make_a_folder_fold(tmp_path: Path) -> None:
    (tmp_path / "engine").mkdir()
    (tmp_path / "ENGINE").symlink_to("engine")
    assert canonical_path(str(tmp_path / "engine")) == str(tmp_path / "engine")


@pytest.mark.skipif(os.path.exists(__file__.upper()), reason="this file system folds letters")
def test_folders_that_differ_in_letters_alone_are_kept_apart(spawn: Spawner) -> None:
    sidecar = spawn()
    for name in ("engine", "Engine"):
        sidecar.run("hello", chatId=name, projectPath=str(folder(spawn, name)))
    sidecar.call("data/purge", scope="project", projectPath=str(spawn.folder / "engine"), confirm=True)
    assert [item["chatId"] for item in sidecar.call("chat/list")["items"]] == ["Engine"]


def test_the_id_that_is_kept_has_its_version_and_survives_the_folder(spawn: Spawner) -> None:
    sidecar, project = spawn(), folder(spawn, "project")
    expected = project_at(str(project)).ids[0]
    sidecar.run("hello", chatId="c", projectPath=str(project))
    sidecar.call("project/trust", path=str(project), trusted=True)
    project.rmdir()
    assert len(sidecar.call("chat/list", projectPath=str(project))["items"]) == 1
    ended(sidecar)
    assert expected.startswith("v1:")
    assert sql(spawn, "SELECT hash FROM projects") == [(expected,)]
    assert (
        spawn().call("data/purge", scope="project", projectPath=str(project), confirm=True)["removed"][
            "chats"
        ]
        == 1
    )
