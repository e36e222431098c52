"""A protected or denied name that is itself a link: what it leads to is judged by that name too."""

from __future__ import annotations

from pathlib import Path

import pytest

from sidecar.policy.decide import Subject, decide
from sidecar.workspace.names import RealNames
from sidecar.workspace.paths import Workspace
from tests.blackbox.work.test_permissions import answer
from tests.blackbox.work.workbench import Workbench, call, outputs, statuses, tools
from tests.unit.policy.test_decide import rule

SECRET = "walnut-4711"

LINKS = {
    ".vscode": ("editor", "tasks.json"),
    ".husky": ("scripts/hooks", "pre-commit"),
    ".envrc": ("env.sh", ""),
    "sub/.cursor": ("agents", "rules/a.mdc"),
    ".github/workflows": ("ci", "build.yml"),
    "AGENTS.md": ("README.md", ""),
    ".tool-versions": ("conf/versions", ""),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("link", LINKS)
def test_the_target_of_a_protected_link_asks(bench: Workbench, link: str) -> None:
    target, name = LINKS[link]
    place, file = bench.project / link, bench.project / target / name if name else bench.project / target
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("old\n")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to((bench.project / target).resolve())
    path = str(file.relative_to(bench.project))
    sidecar = bench.start(
        [call("read_file", path=path), call("write_file", path=path, content="planted"), "done"]
    )
    sidecar.call("chat/configure", chatId="c", set={"mode": "accept-edits"})
    answer(sidecar, "deny_once")
    session = sidecar.run("go", chatId="c")["sessionId"]

    assert tools(sidecar, session)[-1]["status"] == "denied"
    assert any("always asks" in asked["params"]["reason"] for asked in sidecar.asked)
    assert file.read_text() == "old\n"


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "line", ["cp notes.txt editor/tasks.json", "rm editor/tasks.json", "echo x > editor/tasks.json"]
)
def test_a_command_is_judged_so_too(bench: Workbench, line: str) -> None:
    (bench.project / "editor").mkdir()
    (bench.project / "editor/tasks.json").write_text("old\n")
    (bench.project / ".vscode").symlink_to("editor")
    sidecar = bench.start([call("run_command", command=line), "done"], mode="auto")
    answer(sidecar, "deny_once")
    session = sidecar.run("go", chatId="c")["sessionId"]
    assert statuses(sidecar, session) == ["denied"]


def test_a_git_file_leads_to_its_repository(bench: Workbench) -> None:
    bench.git("init", "-q", "--separate-git-dir=meta")
    before = bench.read("meta/config")
    steps = [
        call("read_file", path="meta/config"),
        call("write_file", path="meta/config", content="[core]\n"),
    ]
    sidecar = bench.start([*steps, "done"], mode="accept-edits")
    answer(sidecar, "deny_once")
    session = sidecar.run("go", chatId="c")["sessionId"]

    assert statuses(sidecar, session)[-1] == "denied"
    assert bench.read("meta/config") == before


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "reader",
    [
        call("read_file", path="data/key.txt"),
        call("read_file", path="data/deep/key.txt"),
        call("grep", pattern="password"),
        call("grep", pattern="password", path="data"),
        call("index_path", path="data"),
        call("run_command", command="cat data/key.txt"),
        call("run_command", command="cd data && cat key.txt"),
        call("run_code", language="python", code="print(open('data/key.txt').read())"),
    ],
    ids=lambda reader: str(reader["input"]),
)
@pytest.mark.parametrize("how", ["link", "absolute"])
def test_a_rule_for_a_link_or_an_absolute_path_holds(
    bench: Workbench, reader: dict[str, object], how: str
) -> None:
    for path in ("data/key.txt", "data/deep/key.txt"):
        (bench.project / path).parent.mkdir(parents=True, exist_ok=True)
        (bench.project / path).write_text(f"password = {SECRET}\n")
    (bench.project / "secrets").symlink_to("data")
    pattern = "secrets/**" if how == "link" else f"{bench.project}/data/**"
    search = call("search_context", queries=[SECRET[:6]], scope="project")
    sidecar = bench.start([reader, search, "done"], mode="auto")
    sidecar.call("permissionRules/set", chatId="c", scope="user", effect="deny", rule=f"read({pattern})")
    answer(sidecar, "deny_once")
    session = sidecar.run("go", chatId="c")["sessionId"]
    assert SECRET not in "\n".join(outputs(sidecar, session))


def test_a_rule_that_allows_need_not_name_the_links_to_a_file(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text("")
    (tmp_path / "latest").symlink_to("docs")
    subject = Subject("edit", "docs/a.md", real=RealNames(Workspace(str(tmp_path))))
    assert decide(subject, "ask", [rule("allow", "edit(docs/**)")]).effect == "allow"
    assert decide(subject, "ask", [rule("deny", "edit(latest/**)")]).effect == "deny"


def test_folders_above_the_project_say_nothing_of_its_files(tmp_path: Path) -> None:
    project = tmp_path / ".cursor" / "secrets"
    project.mkdir(parents=True)
    (project / "a.txt").write_text("")
    subject = Subject("edit", "a.txt", real=RealNames(Workspace(str(project))))
    assert decide(subject, "auto", [rule("deny", "edit(secrets)")]).effect == "allow"
