"""What a command plants for other programs to run is found, and repositories within the project are protected."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from sidecar.policy.protected import is_watched
from sidecar.system import survey as surveys
from sidecar.system.sandbox import SandboxView
from sidecar.system.survey import compare, survey
from tests.support.patience import PATIENCE_S
from tests.unit.system.sandboxes import ORDINARY, PATH, as_ordinary, folder_of, run_boxed

ENVIRON = {"PATH": PATH, "HOME": "/nonexistent"}
IDENTITY = "-c user.name=t -c user.email=t@t"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project/sub").mkdir(parents=True)
    return tmp_path / "project"


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, timeout=PATIENCE_S)


def planted(script: str, project: Path) -> tuple[list[str], list[str]]:
    """What a script in the sandbox created and changed."""
    before = survey(str(project), is_watched)
    run_boxed(
        script, project, ENVIRON, view=SandboxView(repositories=before.repositories, sockets=before.sockets)
    )
    return compare(before, survey(str(project), is_watched))


CREATED = {
    "touch .envrc": [".envrc"],
    "mkdir -p .vscode && echo {} > .vscode/tasks.json": [".vscode"],
    "echo /x > .git/commondir": [".git/commondir"],
    "git init -q sub/repo": ["sub/repo/.git", "sub/repo/.git/config", "sub/repo/.git/hooks"],
    "mkdir sub/x && echo 'gitdir: /evil' > sub/x/.git": ["sub/x/.git"],
    "mkdir -p sub/a/b/.idea/runConfigurations": ["sub/a/b/.idea"],
    "mkdir .devcontainer .husky; echo x > .husky/pre-commit": [".devcontainer", ".husky"],
    "echo x > sub/AGENTS.md; echo x > .pre-commit-config.yaml": [".pre-commit-config.yaml", "sub/AGENTS.md"],
    "ln -s /evil .zed; ln -s /evil sub/.envrc": [".zed", "sub/.envrc"],
    "touch .nvim.lua sub/.exrc x.py": [".nvim.lua", "sub/.exrc"],
    "mkdir -p sub/.sidecar && echo {} > sub/.sidecar/hooks.json": ["sub/.sidecar"],
}


@pytest.mark.parametrize("script", CREATED)
def test_what_appears_is_found(project: Path, script: str) -> None:
    git(project, "init", "-q")
    assert planted(script, project) == (CREATED[script], [])


CHANGED = {
    "echo x >> .vscode/tasks.json": [".vscode"],
    "echo x > .vscode/new.json": [".vscode"],
    "cp -p .envrc y; echo z > .envrc; touch -r y .envrc": [".envrc"],
    "mv sub/new .envrc": [".envrc"],
    "rm -r .vscode; ln -s sub .vscode": [".vscode"],
    "chmod +x .envrc": [".envrc"],
}


@pytest.mark.parametrize("script", CHANGED)
def test_what_is_changed_is_found_also_when_size_and_time_are_put_back(project: Path, script: str) -> None:
    (project / ".vscode").mkdir()
    (project / ".vscode/tasks.json").write_text("{}")
    (project / ".envrc").write_text("x\n")
    (project / "sub/new").write_text("y\n")
    assert planted(script, project) == ([], CHANGED[script])


def test_ordinary_work_is_no_finding(project: Path) -> None:
    git(project, "init", "-q")
    (project / ".vscode").mkdir()
    script = (
        f"mkdir x; echo a > x/a; git add .; git {IDENTITY} commit -qm one; cat .vscode/* ; touch Makefile"
    )
    assert planted(script, project) == ([], [])


@pytest.mark.parametrize("deep", ["sub/repo", "a/b/c/repo"])
@pytest.mark.parametrize(
    "script",
    [
        "echo evil > .git/hooks/pre-commit",
        "git config core.fsmonitor evil",
        "mv .git away; mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit",
        "rm .git/config; echo evil > .git/config",
        "rm -rf .git/hooks; ln -s /tmp .git/hooks",
    ],
)
def test_nested_repositories_keep_their_hooks_and_settings(project: Path, deep: str, script: str) -> None:
    repository = project / deep
    repository.mkdir(parents=True)
    git(repository, "init", "-q")
    for sample in (repository / ".git/hooks").iterdir():
        sample.unlink()
    before = (repository / ".git/config").read_bytes()
    created, changed = planted(f"cd {deep}; {script}", project)
    assert ((repository / ".git/config").read_bytes(), os.listdir(repository / ".git/hooks")) == (before, [])
    assert (created, changed) == ([], [])


def test_an_ordinary_user_cannot_plant_hooks_either() -> None:
    with folder_of(ORDINARY) as folder:
        project = folder / "project"

        def work() -> str:
            git(project, "init", "-q", "inner")
            script = "echo x > inner/.git/hooks/pre-push; mkdir .vscode"
            return str((planted(script, project), (project / "inner/.git/hooks/pre-push").exists()))

        assert as_ordinary(work) == "((['.vscode'], []), False)"


def test_a_large_project_is_looked_at_near_its_top(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surveys, "MAX_ENTRIES", 50)
    for number in range(100):
        (project / f"sub/{number}").mkdir()
    (project / ".envrc").touch()
    assert list(survey(str(project), is_watched).watched) == [".envrc"]


def test_a_folder_that_cannot_be_listed_is_passed_over(project: Path) -> None:
    (project / "gone").symlink_to("nowhere")
    (project / "loop").symlink_to(".")
    assert survey(str(project), is_watched).watched == {}
    assert survey(str(project / "missing"), is_watched).watched == {}
