"""Links of a project are found whatever its size, or else what may have such a link asks."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from sidecar.policy.decide import Subject, decide
from sidecar.policy.rules import PermissionKind
from sidecar.workspace import link_scan, names
from sidecar.workspace.names import RealNames
from sidecar.workspace.paths import Workspace
from tests.unit.policy.test_decide import rule

PAST_NS = 60 * 10**9


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("editor/tasks.json", "src/a.py", "deep/er/b.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    return tmp_path


def aliases(project: Path, path: str = "editor/tasks.json") -> tuple[str, ...]:
    return RealNames(Workspace(str(project))).aliases(path)


def settle(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all that was done so far be long ago."""
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + PAST_NS)


def test_a_link_among_many_entries_is_found(project: Path) -> None:
    for at in range(60):
        folder = project / f"zz{at:02}"
        folder.mkdir()
        for name in range(100):
            (folder / f"{name}.txt").touch()
    (project / "zz59" / ".vscode").symlink_to(project / "editor")
    assert aliases(project) == ("zz59/.vscode/tasks.json",)


@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("where", [".vscode", "deep/.vscode", "deep/er/.vscode", "new/.vscode"])
def test_a_link_that_is_made_after_a_scan_is_found(
    project: Path, where: str, settled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if settled:
        settle(project, monkeypatch)
    assert aliases(project) == ()
    (project / where).parent.mkdir(exist_ok=True)
    (project / where).symlink_to(project / "editor")
    assert aliases(project) == (f"{where}/tasks.json",)
    (project / where).unlink()
    assert aliases(project) == ()


def test_a_link_that_leads_elsewhere_later_is_followed_again(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "deep/middle").symlink_to(project / "src")
    (project / ".vscode").symlink_to("deep/middle")
    settle(project, monkeypatch)
    assert aliases(project) == ()
    (project / "deep/middle").unlink()
    (project / "deep/middle").symlink_to(project / "editor")
    assert sorted(aliases(project)) == [".vscode/tasks.json", "deep/middle/tasks.json"]


def test_an_unchanged_project_is_not_listed_again(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settle(project, monkeypatch)
    (project / ".vscode").symlink_to("editor")
    link_scan.scan(str(project))

    def refuse(folder: Any) -> Any:
        raise AssertionError(f"{folder} is listed")

    monkeypatch.setattr(os, "scandir", refuse)
    assert link_scan.scan(str(project)).links == [str(project / ".vscode")]


def test_a_change_within_the_tick_of_the_clock_is_seen(project: Path) -> None:
    """The listing is made and the link created within one tick: the folder's time does not show it."""
    before = project.stat()
    assert aliases(project) == ()
    (project / ".vscode").symlink_to("editor")
    os.utime(project, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert aliases(project) == (".vscode/tasks.json",)


def test_few_projects_are_cached(tmp_path: Path) -> None:
    for at in range(link_scan.MAX_PROJECTS + 3):
        (tmp_path / str(at)).mkdir()
        link_scan.scan(str(tmp_path / str(at)))
    assert len(link_scan._known) == link_scan.MAX_PROJECTS


CALLS: list[tuple[PermissionKind, str, str]] = [
    ("read", "src/a.py", "ask"),
    ("edit", "src/a.py", "accept-edits"),
    ("edit", "src/new.py", "auto"),
    ("run", "touch src/a.py", "auto"),
    ("run", "sh build.sh", "auto"),
]


@pytest.mark.parametrize(("kind", "text", "mode"), CALLS)
def test_beyond_the_limit_a_call_asks_unless_a_rule_allows_it(
    project: Path, kind: PermissionKind, text: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def effect(*rules: str) -> str:
        subject = Subject(kind, text, real=RealNames(Workspace(str(project))))
        return decide(subject, mode, [rule("allow", each) for each in rules]).effect

    assert effect() == "allow"
    monkeypatch.setattr(link_scan, "MAX_SCANNED", 3)
    assert effect() == "ask"
    assert effect(f"{kind}(**)" if kind != "run" else f"run({text})") == "allow"


def test_beyond_the_limit_a_file_with_other_hard_links_asks(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.link(project / "src/a.py", project / "deep/er/c.py")
    monkeypatch.setattr(names, "MAX_FILES_WALKED", 2)

    def effect(path: str) -> str:
        subject = Subject("edit", path, real=RealNames(Workspace(str(project))))
        return decide(subject, "accept-edits", []).effect

    assert (effect("src/a.py"), effect("editor/tasks.json")) == ("ask", "allow")
