"""Further folders of a chat count like the project: their links and hard links give files names by which they are
protected, denied or secret.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.blackbox.work.test_permissions import answer
from tests.blackbox.work.workbench import ALL, Json, Workbench, call, statuses


@pytest.fixture
def extra(bench: Workbench) -> Path:
    folder = bench.spawn.folder / "extra"
    for name in ("store/config", "kept/a.txt", "real/k.txt", "editor/tasks.json", "plain.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("old\n")
    (folder / ".git").symlink_to("store")
    (folder / ".vscode").symlink_to("editor")
    (folder / "vault").symlink_to("real")
    (folder / ".env").symlink_to("plain.txt")
    (folder / "to-project").symlink_to(bench.project / "src")
    os.link(folder / "kept/a.txt", bench.project / "twin.txt")
    os.link(bench.project / "notes.txt", folder / "notes-twin.txt")
    return folder


def ended(
    bench: Workbench, extra: Path, mode: str, rules: list[str], steps: list[Json]
) -> tuple[list[str], list[str]]:
    """The statuses of the calls, where the user permits nothing, and the reasons of what was asked."""
    sidecar = bench.spawn(model=bench.script([*steps, "done"]), capabilities=ALL)
    config = {"mode": mode, "extraFolders": [str(extra)]}
    sidecar.call("chat/open", chatId="c", projectPath=str(bench.project), config=config)
    for text in rules:
        sidecar.call("permissionRules/set", chatId="c", scope="project", effect="deny", rule=text)
    answer(sidecar, "deny_once")
    session = sidecar.run("go", chatId="c")["sessionId"]
    return statuses(sidecar, session), [asked["params"]["reason"] for asked in sidecar.asked]


@pytest.mark.parametrize("mode", ["accept-edits", "auto"])
def test_a_protected_link_there_protects_what_it_leads_to(bench: Workbench, extra: Path, mode: str) -> None:
    steps = [
        call("write_file", path=str(extra / name), content="x") for name in ("store/hooks/a", "editor/b.json")
    ]
    found, reasons = ended(bench, extra, mode, [], steps)
    assert found == ["denied"] * 2
    assert ["/.git/hooks/a" in reasons[0], "/.vscode/b.json" in reasons[1]] == [True, True]


def test_a_rule_holds_for_each_name(bench: Workbench, extra: Path) -> None:
    rules = [
        f"read({extra}/kept/**)",
        f"read({extra}/vault/**)",
        "read(notes.txt)",
        f"read({extra}/to-project/**)",
    ]
    paths = ["twin.txt", str(extra / "real/k.txt"), str(extra / "notes-twin.txt"), "src/add.py"]
    found, _ = ended(bench, extra, "auto", rules, [call("read_file", path=path) for path in paths])
    assert found == ["denied"] * 4


def test_a_secret_name_there_is_a_secret(bench: Workbench, extra: Path) -> None:
    found, reasons = ended(bench, extra, "ask", [], [call("read_file", path=str(extra / "plain.txt"))])
    assert found == ["denied"]
    assert ".env asks: it holds keys or passwords" in reasons[0]


def test_other_files_of_it_ask_nothing(bench: Workbench, extra: Path) -> None:
    steps = [
        call("read_file", path=str(extra / "real/k.txt")),
        call("write_file", path=str(extra / "n"), content="x"),
    ]
    assert ended(bench, extra, "accept-edits", ["read(src/none)"], steps) == (["completed"] * 2, [])
