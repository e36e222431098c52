"""The settings about the window, as a running sidecar goes by them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.blackbox.work.workbench import Workbench
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner

from .test_project_settings_cache import project_says, user_says

MENTION = "What does src/add.py do?"


@pytest.fixture
def bench(spawn: Spawner) -> Workbench:
    return Workbench(spawn)


def blocks(sidecar: Sidecar, text: str) -> dict[str, Any]:
    """What a prompt would send, by kind: how each block is included."""
    manifest = sidecar.call("chat/context", chatId="c", text=text)
    return {block["kind"]: block["included"] for block in manifest["blocks"]}


def test_a_chat_sets_single_values_and_keeps_the_settings_for_the_rest(bench: Workbench) -> None:
    user_says(bench, "compaction = {background = 0.5}\ncontext = {diffs = 9, gates = {patches = 'never'}}\n")
    project_says(bench, "compaction = {blocking = 0.6}\n")
    sidecar = bench.start()
    sidecar.call("project/trust", path=str(bench.project), trusted=True)

    said = {"compaction": {"enabled": False}, "gates": {"gitDiff": "always"}}
    config = sidecar.call("chat/configure", chatId="c", set=said)["config"]
    sidecar.call("settings/write", scope="user", set={"compaction.background": 0.55})
    later = sidecar.call("chat/open", chatId="c", projectPath=str(bench.project))["config"]
    sidecar.call("chat/configure", chatId="c", set={"compaction": None})
    last = sidecar.call("chat/open", chatId="c", projectPath=str(bench.project))["config"]

    assert config["compaction"] == {"enabled": False, "background": 0.5, "blocking": 0.6}
    assert config["gates"] == {
        "openFiles": "auto",
        "patches": "never",
        "gitDiff": "always",
        "retrieval": "auto",
    }
    assert config["budgets"]["diffs"] == 9
    assert later["compaction"] == {"enabled": False, "background": 0.55, "blocking": 0.6}
    assert last["compaction"] == {"enabled": True, "background": 0.55, "blocking": 0.6}


def test_a_gate_of_the_settings_holds_until_the_chat_says_otherwise(bench: Workbench) -> None:
    user_says(bench, "context.gates.open_files = 'never'\n")
    sidecar = bench.start()
    sidecar.call("files/open", chatId="c", path="src/add.py")

    closed = blocks(sidecar, MENTION)
    sidecar.call("chat/configure", chatId="c", set={"gates": {"openFiles": "auto"}})

    assert closed["openFiles"] == "dropped"
    assert blocks(sidecar, MENTION)["openFiles"] == "full"


def test_the_answer_is_kept_as_much_of_the_window_as_the_settings_say(bench: Workbench) -> None:
    sidecar = bench.start()
    sidecar.call("chat/configure", chatId="c", set={"window": 10_000})

    reserves = [sidecar.call("chat/context", chatId="c", text="x")["reserve"]]
    sidecar.call("settings/write", scope="user", set={"context.output_reserve": 700})
    reserves.append(sidecar.call("chat/context", chatId="c", text="x")["reserve"])

    assert reserves == [2500, 700]


def test_rules_that_are_switched_off_are_neither_sent_nor_listed(bench: Workbench) -> None:
    (bench.project / "AGENTS.md").write_text("Use tabs.\n")
    sidecar = bench.start()

    listed = [sidecar.call("rules/list", chatId="c")["items"]]
    sent = [blocks(sidecar, "hello").get("rules")]
    sidecar.call("settings/write", scope="user", set={"rules.enabled": False})
    listed.append(sidecar.call("rules/list", chatId="c")["items"])
    sent.append(blocks(sidecar, "hello").get("rules"))

    assert [[rule["rulePath"] for rule in rules] for rules in listed] == [["AGENTS.md"], []]
    assert sent == ["full", None]


def test_rules_take_no_more_tokens_than_the_settings_say(bench: Workbench) -> None:
    for name in ("AGENTS.md", "CLAUDE.md", "GEMINI.md"):
        (bench.project / name).write_text(f"{name} " + "word " * 1600)
    sidecar = bench.start()

    def tokens(most: int) -> int:
        sidecar.call("settings/write", scope="user", set={"context.rules": most})
        manifest = sidecar.call("chat/context", chatId="c", text="hello")
        return sum(block["tokens"] for block in manifest["blocks"] if block["kind"] == "rules")

    assert 0 < tokens(2500) <= 2500
    assert 4000 < tokens(8000) <= 8000


def test_files_and_folders_of_rules_that_the_user_names_hold(bench: Workbench) -> None:
    home = bench.spawn.folder / "home"
    user_says(bench, 'rules.paths = ["~/style.md", "team", "~/gone.md"]\n')
    (home / "style.md").write_text("Use tabs.\n")
    team = home / ".config" / "sidecar" / "team"
    team.mkdir()
    (team / "naming.md").write_text("Name things well.\n")
    sidecar = bench.start()

    listed = {
        rule["rulePath"]: rule.get("problem") for rule in sidecar.call("rules/list", chatId="c")["items"]
    }
    manifest = sidecar.call("chat/context", chatId="c", text="hello", includeText=True)
    text = next(block["text"] for block in manifest["blocks"] if block["kind"] == "rules")

    assert listed == {
        str(home / "style.md"): None,
        str(team / "naming.md"): None,
        str(home / "gone.md"): "there is no such file or folder",
    }
    assert "Use tabs." in text
    assert "Name things well." in text


def test_a_chat_that_is_postponed_keeps_the_settings_for_the_rest(bench: Workbench) -> None:
    sidecar = bench.start()
    sidecar.call("chat/compact", chatId="c", postponeTurns=3)

    sidecar.call("settings/write", scope="user", set={"compaction.background": 0.5})
    config = sidecar.call("chat/open", chatId="c", projectPath=str(bench.project))["config"]

    assert config["compaction"] == {
        "enabled": True,
        "background": 0.5,
        "blocking": 0.95,
        "postponedUntil": 3,
    }


def test_a_compaction_leaves_as_many_turns_as_the_settings_say(bench: Workbench) -> None:
    sidecar = bench.start(*[["done"]] * 6)
    for number in range(6):
        ended = sidecar.run(f"prompt {number}", chatId="c")
    turns = [turn["id"] for turn in sidecar.call("chat/history", chatId="c")["turns"]]

    def last_compacted(**changes: Any) -> str:
        sidecar.call("settings/write", scope="user", set=changes)
        sidecar.call("chat/compact", chatId="c")
        event = sidecar.events(ended["sessionId"], "compaction.ended")[-1]
        sidecar.call("chat/uncompact", chatId="c")
        return str(event["data"]["masked"])

    assert last_compacted() == turns[3]
    assert last_compacted(**{"compaction.keep_turns": 4}) == turns[1]


LONG = "word " * 300


@pytest.mark.sampled(1)
@pytest.mark.parametrize("key", ["background", "blocking"])
def test_compaction_begins_where_the_settings_say(bench: Workbench, key: str) -> None:
    other = "blocking" if key == "background" else "background"
    user_says(bench, f"compaction = {{{key} = 0.2, {other} = 1, target = 0.1, keep_turns = 1}}\n")
    sidecar = bench.start(*[[LONG]] * 4)
    sidecar.call("chat/configure", chatId="c", set={"window": 8000})

    for _ in range(4):
        ended = sidecar.run("go on", chatId="c")
    event = sidecar.wait_event(ended["sessionId"], "compaction.ended")

    assert event["data"]["trigger"] == key
    assert event["data"]["item"]["status"] == "completed"


def test_a_chat_is_not_compacted_by_itself_where_the_settings_forbid_it(bench: Workbench) -> None:
    user_says(bench, "compaction = {enabled = false, blocking = 0.2, target = 0.1, keep_turns = 1}\n")
    sidecar = bench.start(*[[LONG]] * 5)
    sidecar.call("chat/configure", chatId="c", set={"window": 8000})

    for _ in range(4):
        ended = sidecar.run("go on", chatId="c")
    before = sidecar.events(ended["sessionId"], "compaction.started")
    sidecar.call("chat/configure", chatId="c", set={"compaction": {"enabled": True}})
    sidecar.run("go on", chatId="c")

    assert before == []
    assert sidecar.events(ended["sessionId"], "compaction.started")[0]["data"]["trigger"] == "blocking"
