"""A repository whose links lead to protected files: whoever edits or runs through them is asked about the real file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sidecar.model.failures import Refused
from sidecar.policy.decide import Subject, decide
from sidecar.workspace.names import RealNames
from sidecar.workspace.paths import Workspace
from sidecar.workspace.writing import digest, replace
from tests.blackbox.work.workbench import Json, Workbench, call, outputs, statuses
from tests.support.sidecar import Sidecar

PATCH = "--- /dev/null\n+++ b/{}\n@@ -0,0 +1 @@\n+x\n"
TWO = "--- /dev/null\n+++ b/plain.txt\n@@ -0,0 +1 @@\n+x\n" + PATCH


def link(bench: Workbench, name: str, target: str) -> None:
    path = bench.project / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


def run(bench: Workbench, *calls: Json, mode: str = "accept-edits") -> tuple[Sidecar, str]:
    """Play the calls; every question is answered by no."""
    sidecar = bench.start([*calls, "done"], mode=mode)
    sidecar.answering["permission/request"] = lambda params: {"decision": "deny_once"}
    return sidecar, sidecar.run("go", chatId="c")["sessionId"]


WRITES = [
    ("cfg", ".git", call("write_file", path="cfg/planted", content="x\n"), ".git/planted"),
    ("hk", ".git/hooks", call("write_file", path="hk/pre-push", content="x\n"), ".git/hooks/pre-push"),
    ("sc", ".sidecar", call("write_file", path="sc/hooks.json", content="x\n"), ".sidecar/hooks.json"),
    ("ed", ".vscode", call("patch_file", patch=PATCH.format("ed/tasks.json")), ".vscode/tasks.json"),
    ("ci", ".github", call("patch_file", patch=TWO.format("ci/workflows/x.yml")), ".github/workflows/x.yml"),
    ("a/b", "../c", call("write_file", path="a/b/settings.json", content="x\n"), ".claude/settings.json"),
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("name", "target", "write", "real"), WRITES)
def test_a_new_file_behind_a_link_is_asked_for_by_its_real_path(
    bench: Workbench, name: str, target: str, write: Json, real: str
) -> None:
    link(bench, name, target)
    link(bench, "c", ".claude")
    for folder in (".sidecar", ".vscode", ".github/workflows", ".claude"):
        (bench.project / folder).mkdir(parents=True)
    sidecar, session = run(bench, write)

    assert statuses(sidecar, session) == ["denied"]
    (asked,) = [one["params"] for one in sidecar.asked]
    assert real in asked["reason"]
    assert real in (asked["subject"], *asked["reason"].split())
    assert not (bench.project / real).exists()


EDITED = [
    ("notes.ini", ".git/config"),
    ("docs/deep/notes.md", "../../AGENTS.md"),
    ("run.sh", ".envrc"),
    ("one", "two"),
    ("setup.txt", "./src/../.npmrc"),
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("name", "target"), EDITED)
def test_an_edit_through_a_link_asks_about_the_file_at_its_end(
    bench: Workbench, name: str, target: str
) -> None:
    for file in ("AGENTS.md", ".envrc", ".npmrc"):
        (bench.project / file).write_text("[core]\n")
    (bench.project / "two").symlink_to(".git/config")
    link(bench, name, target)
    real = os.path.relpath(os.path.realpath(bench.project / name), os.path.realpath(bench.project))
    before = bench.read(real)
    # The reading may be asked for, too (.npmrc holds keys): it is allowed, and the edit is what counts.
    edit = call("edit_file", path=name, old_string="[core]", new_string="[core]\n\tfsmonitor = ./x")
    sidecar = bench.start([call("read_file", path=name), edit, "done"], mode="accept-edits")
    sidecar.answering["permission/request"] = lambda params: {
        "decision": "allow_once" if params["kind"] == "read" else "deny_once"
    }
    session = sidecar.run("go", chatId="c")["sessionId"]

    assert statuses(sidecar, session) == ["completed", "denied"]
    asked = [one["params"] for one in sidecar.asked if one["params"]["kind"] == "edit"]
    assert [one["subject"] for one in asked] == [real]
    assert real in asked[0]["title"]
    assert not any("allow" in option["decision"] and "rule" in option for option in asked[0]["options"])
    assert bench.read(real) == before


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "command",
    [
        "echo x > notes.ini",
        "echo x >> sub/up/hooks/pre-commit",
        "cp evil hk/pre-commit",
        "cd hk && cp ../evil post-merge",
        "sed -i s/a/b/ notes.ini",
        "tee hard.ini",
    ],
)
def test_a_command_that_writes_through_a_link_is_asked_for_in_auto(bench: Workbench, command: str) -> None:
    link(bench, "notes.ini", ".git/config")
    link(bench, "hk", ".git/hooks")
    link(bench, "sub/up", "../.git")
    os.link(bench.project / ".git/config", bench.project / "hard.ini")
    sidecar, session = run(bench, call("run_command", command=command), mode="auto")

    assert statuses(sidecar, session) == ["denied"]
    assert ".git" in sidecar.asked[0]["params"]["reason"]


def test_a_command_in_a_folder_that_is_a_link_is_judged_by_the_real_folder(bench: Workbench) -> None:
    link(bench, "hk", ".git/hooks")
    sidecar, session = run(bench, call("run_command", command="echo x > pre-commit", cwd="hk"), mode="auto")
    assert statuses(sidecar, session) == ["denied"]
    assert not (bench.project / ".git/hooks/pre-commit").exists()


def test_a_link_to_an_ordinary_file_is_edited_without_a_question(bench: Workbench) -> None:
    link(bench, "alias.txt", "notes.txt")
    edit = call("edit_file", path="alias.txt", old_string="first", new_string="1st")
    sidecar, session = run(bench, call("read_file", path="alias.txt"), edit)
    assert statuses(sidecar, session) == ["completed", "completed"]
    assert not sidecar.asked
    assert bench.read("notes.txt").startswith("1st")


def test_a_link_that_is_exchanged_while_a_person_decides_is_not_written_through(bench: Workbench) -> None:
    (bench.project / "plain").mkdir()
    link(bench, "way", "plain")
    sidecar = bench.start([call("write_file", path="way/pre-push", content="x\n"), "done"], mode="ask")

    def swap(params: Json) -> Json:
        (bench.project / "way").unlink()
        (bench.project / "way").symlink_to(".git/hooks")
        return {"decision": "allow_once"}

    sidecar.answering["permission/request"] = swap
    session = sidecar.run("go", chatId="c")["sessionId"]
    assert statuses(sidecar, session) == ["failed"]
    assert not (bench.project / ".git/hooks/pre-push").exists()


def test_a_link_that_is_exchanged_while_a_person_decides_is_not_read_through(bench: Workbench) -> None:
    (bench.project / "a.pem").write_text("harmless\n")
    (bench.project / "b.pem").write_text("walnut\n")
    link(bench, "way", "a.pem")
    sidecar = bench.start([call("read_file", path="way"), "done"], mode="ask")

    def swap(params: Json) -> Json:
        (bench.project / "way").unlink()
        (bench.project / "way").symlink_to("b.pem")
        return {"decision": "allow_once"}

    sidecar.answering["permission/request"] = swap
    session = sidecar.run("go", chatId="c")["sessionId"]
    assert statuses(sidecar, session) == ["failed"]
    assert "walnut" not in outputs(sidecar, session)[0]


def test_replace_refuses_a_path_that_leads_elsewhere_than_was_judged(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("same")
    (tmp_path / "way").symlink_to("b")
    workspace = Workspace(str(tmp_path))
    with pytest.raises(Refused) as refused:
        replace(workspace, "way", digest(b"same"), b"new", token="0" * 16, real=str(tmp_path / "a"))
    assert refused.value.reason == "changed"
    replace(workspace, "way", digest(b"same"), b"new", token="0" * 16, real=str(tmp_path / "b"))
    assert (tmp_path / "b").read_text() == "new"


@pytest.mark.parametrize(
    ("path", "others"),
    [
        ("plain", ()),
        ("link", ("plain",)),
        ("folder/x", (".git/x",)),
        ("chain", ("plain",)),
        ("gone", (".git/hooks/new",)),
        ("hard", ("twin",)),
        ("../outside", ()),
        ("nul\0", ()),
    ],
)
def test_all_names_of_a_path(tmp_path: Path, path: str, others: tuple[str, ...]) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "plain").write_text("")
    (tmp_path / "hard").write_text("")
    os.link(tmp_path / "hard", tmp_path / "twin")
    for name, target in {
        "link": "plain", "folder": ".git", "chain": "link", "gone": ".git/hooks/new"
    }.items():  # fmt: skip
        (tmp_path / name).symlink_to(target)
    assert RealNames(Workspace(str(tmp_path)))(path) == others


def test_leave_for_one_name_is_no_leave_for_where_it_leads(tmp_path: Path) -> None:
    from tests.unit.policy.test_decide import rule

    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "x").symlink_to("../src.py")
    (tmp_path / "src.py").write_text("")
    subject = Subject("edit", "docs/x", real=RealNames(Workspace(str(tmp_path))))
    assert decide(subject, "ask", [rule("allow", "edit(docs/**)")]).effect == "ask"
    both = [rule("allow", "edit(docs/**)"), rule("allow", "edit(src.py)")]
    assert decide(subject, "ask", both).effect == "allow"
