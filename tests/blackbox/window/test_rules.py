"""Instruction rules: which files hold for a prompt, how fresh they are, and what may run for them."""

from __future__ import annotations

import os
import time
from pathlib import Path

from tests.blackbox.window.room import Json, Room, block, included, messages, text_of

NEUTRAL = "Tell me something nice about the weather. [[say=Sunny]]"


def _listed(room: Room) -> dict[str, Json]:
    items = room.sidecar.call("rules/list", chatId="c")["items"]
    return {item["rulePath"]: item for item in items}


def _rules(room: Room, prompt: str = NEUTRAL) -> str:
    """The rules that would be sent with a prompt."""
    blocks = room.preview(prompt, includeText=True)["blocks"]
    return "\n".join(found["text"] for found in blocks if found["kind"] == "rules")


def test_the_files_that_other_tools_know_hold_here_too(room: Room) -> None:
    room.write("AGENTS.md", "Use tabs.\n")
    room.write("CLAUDE.md", "Be brief.\n")
    room.write("GEMINI.md", "Say please.\n")
    room.write(".github/copilot-instructions.md", "Prefer tests.\n")
    sent = room.ask(NEUTRAL)

    system = text_of(messages(room.asked[-1])[0])
    for words in ("Use tabs.", "Be brief.", "Say please.", "Prefer tests."):
        assert words in system
    found = block(room.assembled(sent), "rules")
    assert (found["gate"], found["included"]) == ("always", "full")
    assert "AGENTS.md" in found["label"]
    assert "CLAUDE.md" in found["label"]


def test_rules_of_our_own_hold_by_glob_and_by_word(room: Room) -> None:
    room.write(".sidecar/rules/python.md", "---\nglobs: ['*.py', 'src/**/*.py']\n---\nType everything.\n")
    room.write(".sidecar/rules/deep/release.yaml", "words: [release]\ninstruction: Tag it first.\n")
    room.write(".sidecar/rules/first.json", '{"instruction": "Above all, be kind.", "priority": 9}')
    assert "be kind" in _rules(room)
    assert "Type everything." not in _rules(room)
    assert "Tag it first." not in _rules(room)

    assert "Tag it first." in _rules(room, "How do I make a release?")
    room.show("src/add.py")
    both = _rules(room, "How do I make a release?")
    assert both.index("be kind") < both.index("Tag it first.")
    assert "Type everything." in both


def test_rules_of_a_folder_hold_for_the_files_beneath_it(room: Room) -> None:
    room.write("src/AGENTS.md", "Only beneath src.\n")
    assert "Only beneath src." not in _rules(room)
    room.show("src/add.py")
    assert "Only beneath src." in _rules(room)


def test_the_list_tells_how_fresh_a_rule_is(room: Room) -> None:
    room.write("AGENTS.md", "Use tabs.\n")
    room.write(".sidecar/rules/release.md", "---\nwords: [release]\npriority: 3\n---\nTag it first.\n")
    fresh = _listed(room)
    assert {path: item["loadCount"] for path, item in fresh.items()} == {
        "AGENTS.md": 0,
        ".sidecar/rules/release.md": 0,
    }
    assert (
        fresh[".sidecar/rules/release.md"]["applies"],
        fresh[".sidecar/rules/release.md"]["priority"],
    ) == (
        "word",
        3,
    )
    room.ask(NEUTRAL)
    room.ask(NEUTRAL)
    used = _listed(room)["AGENTS.md"]
    assert used["loadCount"] == 2
    assert used["lastSeen"] >= used["lastChanged"] > 0
    assert used["tokens"] > 0
    assert _listed(room)[".sidecar/rules/release.md"]["loadCount"] == 0

    room.write("AGENTS.md", f"{'Use tabs, always and everywhere. ' * 5}\n")
    room.ask(NEUTRAL)
    changed = _listed(room)["AGENTS.md"]
    assert changed["loadCount"] == 3
    assert changed["lastChanged"] == changed["lastSeen"] >= used["lastSeen"]
    assert changed["tokens"] > used["tokens"]
    room.restart()
    assert _listed(room)["AGENTS.md"] == changed


def test_a_rule_that_cannot_be_understood_is_named_and_the_others_hold(room: Room) -> None:
    room.write("AGENTS.md", "Use tabs.\n")
    room.write(".sidecar/rules/broken.json", '{"instruction": ')
    room.write(".sidecar/rules/wrong.yaml", "globs: ['src/[']\ninstruction: Never.\nnonsense: 1\n")
    room.ask(NEUTRAL)

    listed = _listed(room)
    assert listed[".sidecar/rules/broken.json"]["problem"]
    assert listed[".sidecar/rules/broken.json"]["problemCode"] == "malformed"
    assert listed[".sidecar/rules/broken.json"]["tokens"] is None
    assert "nonsense" in listed[".sidecar/rules/wrong.yaml"]["problem"]
    assert "problem" not in listed["AGENTS.md"]
    assert "Use tabs." in text_of(messages(room.asked[-1])[0])
    assert "Never." not in text_of(messages(room.asked[-1])[0])


def test_a_handler_runs_only_where_the_project_is_trusted(room: Room) -> None:
    trace = Path(room.spawn.folder) / "handled"
    handler = f"echo ran >> {trace}; echo The answer of the handler"
    room.write(".sidecar/rules/asks.yaml", f"instruction: Listen.\nhandler: {handler}\n")
    room.write(".sidecar/rules/fails.yaml", "instruction: Still here.\nhandler: exit 3\n")
    assert "Listen." in _rules(room)
    room.ask(NEUTRAL)
    assert not trace.exists()

    room.sidecar.call("project/trust", path=str(room.project), trusted=True)
    room.ask(NEUTRAL)
    system = text_of(messages(room.asked[-1])[0])
    assert trace.exists()
    assert "The answer of the handler" in system
    assert "Still here." in system, "a handler that fails is skipped"


def test_rules_that_find_no_room_are_named(room: Room) -> None:
    for number in range(12):
        room.write(f".sidecar/rules/rule{number:02}.md", f"Rule {number}. {'Be careful. ' * 80}\n")
    manifest = room.preview(NEUTRAL, includeText=True)
    found = block(manifest, "rules")
    assert "left out" in found["label"]
    assert "left out" in found["text"]
    assert found["tokens"] <= 0.2 * manifest["budget"]
    assert sum(each["tokens"] for each in included(manifest)) <= manifest["budget"]


def test_the_command_shows_the_rules(room: Room) -> None:
    room.write("AGENTS.md", "Use tabs.\n")
    room.sidecar.say("/rules", chatId="c")
    result = room.sidecar.wait_event(room.session, "command.result")["data"]
    assert "AGENTS.md" in result["markdown"]


def test_the_rules_of_a_folder_are_listed_when_they_are_sent(room: Room) -> None:
    room.write("src/AGENTS.md", "Only beneath src.\n")
    room.write("src/deep/.sidecar/rules/deep.md", "Only in the depth.\n")
    assert "src/AGENTS.md" not in _listed(room)
    room.show("src/deep/add.py", "x = 1\n")
    assert _listed(room)["src/AGENTS.md"]["loadCount"] == 0
    room.ask(NEUTRAL)
    room.sidecar.call("files/clear", chatId="c")
    listed = _listed(room)
    for path in ("src/AGENTS.md", "src/deep/.sidecar/rules/deep.md"):
        assert (listed[path]["loadCount"], listed[path]["lastSeen"] > 0) == (1, True)
    of_the_project = room.sidecar.call("rules/list", projectPath=str(room.project))["items"]
    assert "src/AGENTS.md" in [item["rulePath"] for item in of_the_project]


def test_a_rule_without_a_use_is_stale(room: Room) -> None:
    old = time.time() - 31 * 24 * 3600
    for name in ("old", "new", "nothing", "some"):
        globs = {"nothing": "globs: ['gone/*.rs']\n", "some": "globs: ['src/**']\n"}.get(
            name, "words: [never]\n"
        )
        room.write(f".sidecar/rules/{name}.md", f"---\n{globs}---\nBe {name}.\n")
    room.write("src/add.py", "x = 1\n")
    os.utime(room.project / ".sidecar/rules/old.md", (old, old))
    room.write(".sidecar/rules/broken.json", '{"instruktion": "x"}')
    listed = _listed(room)
    stale = {path.rpartition("/")[2]: item.get("stale") for path, item in listed.items()}
    assert stale == {
        "old.md": "unused",
        "new.md": None,
        "nothing.md": "no_match",
        "some.md": None,
        "broken.json": None,
    }
    assert "did you mean `instruction`?" in listed[".sidecar/rules/broken.json"]["problem"]


def test_the_command_lists_the_most_used_rule_first(room: Room) -> None:
    room.write("AGENTS.md", "Use tabs.\n")
    room.write(".sidecar/rules/a.md", "---\nwords: [sunshine]\n---\nA.\n")
    room.write(".sidecar/rules/nothing.md", "---\nglobs: ['gone/*']\n---\nB.\n")
    room.ask(NEUTRAL)
    room.ask(NEUTRAL)
    room.ask(f"sunshine {NEUTRAL}")
    sent = room.sidecar.say("/rules", chatId="c")
    event = room.sidecar.wait_event(sent["sessionId"], "command.result")
    head, _, *rows = [line for line in event["data"]["markdown"].splitlines() if line.startswith("|")]
    assert head == "| rule | applies | tokens | loads | used | state |"
    assert [row.split("|")[1].strip() for row in rows] == [
        "AGENTS.md",
        ".sidecar/rules/a.md",
        ".sidecar/rules/nothing.md",
    ]
    assert [[cell.strip() for cell in row.split("|")[1:-1]][3:5] for row in rows] == [
        ["3", "today"],
        ["1", "today"],
        ["0", "never"],
    ]
    assert "its globs match no file" in rows[2]
    assert event["data"]["markdown"].startswith("Most loaded: AGENTS")
