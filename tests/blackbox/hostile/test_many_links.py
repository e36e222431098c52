"""A link that is hidden behind thousands of files still protects, and withholds, what it leads to."""

from __future__ import annotations

import pytest

from tests.blackbox.work.test_permissions import answer
from tests.blackbox.work.workbench import Workbench, call, outputs, statuses

FOLDERS, FILES = 70, 100
"""More entries than the limit of the scan once was."""


@pytest.fixture
def crowded(bench: Workbench) -> Workbench:
    for at in range(FOLDERS):
        folder = bench.project / f"many{at:03}"
        folder.mkdir()
        for name in range(FILES):
            (folder / f"{name}.txt").touch()
    (bench.project / "editor").mkdir()
    (bench.project / "editor/tasks.json").write_text("old\n")
    return bench


LINKS = [".vscode", ".husky", ".cursor", ".claude", ".idea"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", LINKS)
def test_the_target_of_a_hidden_protected_link_asks(crowded: Workbench, name: str) -> None:
    deep = crowded.project / f"many{FOLDERS - 1:03}" / "deep"
    deep.mkdir()
    (deep / name).symlink_to(crowded.project / "editor")
    write = call("write_file", path="editor/tasks.json", content="planted")
    sidecar = crowded.start([call("read_file", path="editor/tasks.json"), write, "done"], mode="accept-edits")
    answer(sidecar, "deny_once")
    session = sidecar.run("go", chatId="c")["sessionId"]
    assert statuses(sidecar, session)[-1] == "denied"
    assert crowded.read("editor/tasks.json") == "old\n"


def test_a_link_that_a_command_makes_meanwhile_counts_at_once(crowded: Workbench) -> None:
    write = call("write_file", path="editor/tasks.json", content="planted")
    (crowded.project / "build.sh").write_text(f"ln -s ../editor many{FOLDERS - 1:03}/.husky\n")
    link = call("run_command", command="sh build.sh")
    read = call("read_file", path="editor/tasks.json")
    sidecar = crowded.start([read, link, write, "done"], mode="auto")
    answer(sidecar, "deny_once")
    session = sidecar.run("go", chatId="c")["sessionId"]
    assert (statuses(sidecar, session)[-1], crowded.read("editor/tasks.json")) == ("denied", "old\n")


def test_a_rule_for_a_hidden_link_holds(crowded: Workbench) -> None:
    (crowded.project / f"many{FOLDERS - 1:03}" / "secrets").symlink_to(crowded.project / "editor")
    sidecar = crowded.start(
        [call("read_file", path="editor/tasks.json"), call("grep", pattern="old", path="editor"), "done"]
    )
    sidecar.call("permissionRules/set", chatId="c", scope="user", effect="deny", rule="read(**/secrets/**)")
    answer(sidecar, "deny_once")
    session = sidecar.run("go", chatId="c")["sessionId"]
    assert [text for text in outputs(sidecar, session) if "old" in text.replace("'old'", "")] == []
