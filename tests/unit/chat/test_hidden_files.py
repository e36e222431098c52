"""Which files are hidden from a command, by rules, links and other names; and when they cannot be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sidecar.chat.tool_calls import hidden_files
from sidecar.chat.tool_calls.hidden_files import HiddenFiles, find_hidden
from sidecar.policy.code import code_subject
from sidecar.policy.decide import Subject, decide
from sidecar.policy.withheld_files import path_stops
from sidecar.workspace.paths import Workspace
from tests.unit.policy.test_decide import rule

FILES = (
    "a.txt",
    ".env",
    "conf/.ENV",
    "vault/a.pem",
    "vault/deep/b.txt",
    "docs/a/x.md",
    "docs/x.md",
    "store/real.txt",
    "node_modules/m/.env",
    ".git/config",
    "Caf\u00e9/x",
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    for path in FILES:
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text("x")
    return project


def hidden(project: Path, *rules: str, effect: str = "deny", extra: tuple[str, ...] = ()) -> set[str]:
    found = find_hidden([rule(effect, text) for text in rules], Workspace(str(project), extra))
    assert found.problem is None
    return {os.path.relpath(path, project) for path in found.paths}


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        (".env", {".env", "conf/.ENV"}),
        ("./.env", {".env"}),
        ("=.env", {".env"}),
        ("conf/", {"conf/.ENV"}),
        ("vault", {"vault/a.pem", "vault/deep/b.txt"}),
        ("vault/**", {"vault/a.pem", "vault/deep/b.txt"}),
        ("VAULT/*", {"vault/a.pem", "vault/deep/b.txt"}),
        ("*.pem", {"vault/a.pem"}),
        ("**/x.md", {"docs/x.md", "docs/a/x.md"}),
        ("docs/*/x.md", {"docs/a/x.md"}),
        ("d?cs/x.md", {"docs/x.md"}),
        ("deep/b.txt", set()),
        ("cafe\u0301/x", {"Caf\u00e9/x"}),
        ("node_modules/**", {"node_modules/m/.env"}),
        (".git/**", set()),
        ("nothing", set()),
    ],
)
def test_what_a_rule_withholds_is_found(project: Path, pattern: str, found: set[str]) -> None:
    for effect in ("deny", "ask"):
        assert hidden(project, f"read({pattern})", effect=effect) == found
    assert hidden(project, f"read({pattern})", effect="allow") == set()
    assert hidden(project, f"edit({pattern})") == set()
    assert found <= {path for path in FILES if path_stops(rule("deny", f"read({pattern})"), path)}


def test_a_file_is_found_by_its_other_names(project: Path) -> None:
    (project / "later").symlink_to("store")
    (project / "b.cfg").symlink_to("store/real.txt")
    os.link(project / "a.txt", project / "node_modules/m/twin")
    assert hidden(project, "read(later/real.txt)") == {"store/real.txt"}
    assert hidden(project, "read(*.cfg)") == {"store/real.txt"}
    assert hidden(project, "read(a.txt)") == {"a.txt", "node_modules/m/twin"}


def test_further_folders_and_absolute_rules_count(project: Path, tmp_path: Path) -> None:
    for path in ("more/.env", "more/a.txt", "far/x", "far/y"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("x")
    (project / "out").symlink_to(tmp_path / "far")
    extra = (str(tmp_path / "more"),)
    assert hidden(project, "read(.env)", extra=extra) == {".env", "conf/.ENV", "../more/.env"}
    assert hidden(project, f"read({tmp_path}/more/**)", extra=extra) == {"../more/.env", "../more/a.txt"}
    assert hidden(project, f"read({project}/docs/x.md)") == {"docs/x.md"}
    assert hidden(project, f"read({tmp_path}/far/**)") == {"../far"}
    assert hidden(project, "read(out/x)") == {"../far/x"}
    assert hidden(project, "read(/usr/**)") == set()


def test_links_in_a_circle_end(project: Path) -> None:
    (project / "docs/up").symlink_to("..")
    (project / "docs/self").symlink_to("self")
    assert hidden(project, "read(.env)") == {".env", "conf/.ENV"}


@pytest.mark.parametrize(
    ("name", "most", "problem"),
    [
        ("MAX_HIDDEN", 1, "rules withhold 2 files, too many to hide"),
        ("MAX_SCANNED", 3, "the project has over 3 entries"),
        ("MAX_FOLLOWED", 0, "the project has over 0 links to folders"),
    ],
)
def test_what_is_too_much_is_said(
    project: Path, monkeypatch: pytest.MonkeyPatch, name: str, most: int, problem: str
) -> None:
    (project / "later").symlink_to("store")
    monkeypatch.setattr(hidden_files, name, most)
    assert find_hidden([rule("deny", "read(.env)")], Workspace(str(project))) == HiddenFiles(problem=problem)


def test_a_rule_for_every_file_hides_none_and_asks(project: Path) -> None:
    found = find_hidden([rule("deny", "read(*)")], Workspace(str(project)))
    assert found == HiddenFiles(problem="a rule withholds every file")


def test_what_is_not_hidden_asks_unless_the_words_determine_what_runs() -> None:
    rules = [rule("deny", "read(.env)")]
    for line, effect in (
        ("make test", "ask"),
        ("cat $x", "ask"),
        ("cat a", "allow"),
        ("git status", "allow"),
    ):
        assert decide(Subject("run", line, unhidden="x"), "auto", rules).effect == effect
        assert decide(Subject("run", line), "auto", rules).effect == "allow"
        assert decide(Subject("run", line, unhidden="x"), "auto", []).effect == "allow"
    assert decide(Subject("run", "make", unhidden="there is no sandbox"), "auto", rules).reason == (
        "it may read what a rule keeps back, read(.env): make may run other programs, and there is no sandbox"
    )


@pytest.mark.parametrize(
    ("line", "effect"),
    [
        ("git show", "ask"),
        ("git --no-pager show HEAD~2", "ask"),
        ("git log -p -n 1", "ask"),
        ("git log --patch-with-stat", "ask"),
        ("git log -Spassword", "ask"),
        ("git diff main..x", "ask"),
        ("git diff --stat -p", "ask"),
        ("git diff -- :/", "ask"),
        ("git diff -- .", "ask"),
        ("git diff -- conf", "ask"),
        ("git diff -- 'src/*.py'", "ask"),
        ("git -C . show", "ask"),
        ("git -c alias.x=show x", "ask"),
        ("git show $(true)", "ask"),
        ("x=1; git log $x -p", "ask"),
        ("env git show", "ask"),
        ("timeout 5 git show HEAD", "ask"),
        ("sh -c 'cd src; git show'", "ask"),
        ("for i in 1; do git cat-file -p $i; done", "ask"),
        ("(/usr/bin/git diff main)", "ask"),
        ("make; (git status; git log --oneline)", "allow"),
        ("git grep x HEAD", "ask"),
        ("git cat-file -p 0e51dc8", "ask"),
        ("git stash show -p", "ask"),
        ("git bundle create - HEAD", "ask"),
        ("git log --oneline", "allow"),
        ("git log --stat", "allow"),
        ("git diff --name-only main", "allow"),
        ("git diff main -- src/a.py", "allow"),
        ("git show HEAD:src/a.py", "allow"),
        ("git cat-file -t 0e51dc8", "allow"),
        ("git stash list", "allow"),
        ("git status", "allow"),
    ],
)
def test_git_asks_where_it_shows_files_of_commits(line: str, effect: str) -> None:
    assert decide(Subject("run", line, folder="src"), "auto", [rule("deny", "read(.env)")]).effect == effect
    assert decide(Subject("run", line), "auto", []).effect == "allow"


def test_code_that_starts_such_a_git_asks() -> None:
    for text, effect in (("run(['git', 'show'])", "ask"), ("run(['git', 'status'])", "allow")):
        subject = Subject("run", code_subject("python", text), language="python")
        assert decide(subject, "auto", [rule("deny", "read(.env)")]).effect == effect
        assert decide(subject, "auto", []).effect == "allow"
