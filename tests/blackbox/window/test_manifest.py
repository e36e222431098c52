"""The manifest: `chat/context` tells what the next prompt sends, each block by a named gate, all within one budget."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from sidecar.fake_provider import FakeProvider
from tests.blackbox.window.room import (
    Json,
    Room,
    block,
    included,
    messages,
    plain,
    say_tool,
    sent_text,
    text_of,
)
from tests.blackbox.work.workbench import Workbench, call

pytestmark = pytest.mark.slow

ALPHA = "def alpha(value):\n    return value + 1\n"
BETA = "def beta(value):\n    return value - 1\n"
NEUTRAL = "Tell me something nice about the weather. [[say=Sunny]]"
"""A prompt that no gate has a reason to open for."""

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def _nothing(room: Room) -> str:
    return NEUTRAL


def _mentioned(room: Room) -> str:
    room.show("src/alpha.py", ALPHA)
    return "What does src/alpha.py do? [[say=It adds]]"


def _pinned(room: Room) -> str:
    room.show("src/alpha.py", ALPHA, pin=True)
    return NEUTRAL


def _edited(room: Room) -> str:
    room.edit("src/alpha.py", ALPHA)
    return "What did you change so far? [[say=A file]]"


def _dirty(room: Room) -> str:
    room.write("notes.txt", "first\nsecond\nanother\n")
    return "Show me the git diff [[say=Here]]"


def _ruled(room: Room) -> str:
    room.write("AGENTS.md", "Use tabs.\n")
    return NEUTRAL


def _long(room: Room) -> str:
    for number in range(12):
        room.ask(
            f"Remember the code word of day {number}: {'fig ' * 300} plum{number}. [[say=Noted {number}]]"
        )
    return "What did I say earlier about plum3? [[say=Day 3]]"


def _compacted(room: Room) -> str:
    _long(room)
    assert room.sidecar.call("chat/compact", chatId="c")["compactionId"]
    return "What did I say earlier about plum3? [[say=Day 3]]"


@pytest.mark.parametrize(
    "prepare", [_nothing, _mentioned, _pinned, _edited, _dirty, _ruled, _long, _compacted]
)
def test_a_preview_is_what_is_then_sent(room: Room, prepare: Callable[[Room], str]) -> None:
    prompt = prepare(room)
    told = room.preview(prompt, includeText=True)
    sent = room.ask(prompt)

    assembled = room.assembled(sent)
    assert plain(assembled) == plain(told)
    figures = ("model", "window", "reserve", "budget", "used", "exact")
    assert [assembled[name] for name in figures] == [told[name] for name in figures]
    body = sent_text(room.asked[-1])
    for found in included(told):
        if found["kind"] not in ("tools", "history"):
            assert found["text"] in body, found["id"]
    assert not room.refused


def test_the_blocks_that_are_sent_sum_up_to_what_is_used_and_never_exceed_the_budget(room: Room) -> None:
    for number in range(14):
        room.show(f"src/part{number % 5}.py", f"# {'word ' * 200}\n{ALPHA}")
        room.ask(f"Explain src/part{number % 5}.py {'please ' * 100} [[say={'yes ' * 60}]]")
    told = room.sidecar.events(room.session, "context.assembled")
    previews = [room.preview("Explain src/part1.py", budget=budget) for budget in (2000, 2500, 3000, 50_000)]

    for manifest in [event["data"] for event in told] + previews:
        assert sum(found["tokens"] for found in included(manifest)) == manifest["used"]
        assert 0 < manifest["used"] <= manifest["budget"] <= manifest["window"] - manifest["reserve"]
    assert not room.refused


def test_a_chat_that_does_not_fit_fills_its_budget(bench: Workbench, fake: FakeProvider) -> None:
    room = Room(bench, fake, compaction={"enabled": False})
    prompt = _long(room)
    for budget in (1500, 2000, 3000, 4500):
        for text in (prompt, NEUTRAL, "And what belongs to plum2, tell me"):
            told = room.preview(text, budget=budget)
            assert block(told, "history")["included"] == "truncated"
            assert 0.97 * told["budget"] <= told["used"] <= told["budget"], (budget, text)


def test_a_budget_of_the_callers_own_bounds_all_but_the_prompt(large: Room) -> None:
    large.show("big.txt", "".join(f"line {number} of many\n" for number in range(3000)), pin=True)
    whole = large.preview("Explain big.txt")
    small = large.preview("Explain big.txt", budget=2500)

    assert small["used"] <= small["budget"] <= 2500 + block(small, "prompt")["tokens"] + 8
    assert whole["used"] > small["used"]
    assert large.sidecar.refused("chat/context", chatId="c", text="x", budget=0).code == -32602


def test_text_comes_only_when_it_is_asked_for(room: Room) -> None:
    _mentioned(room)
    assert all("text" not in found for found in room.preview("Explain src/alpha.py")["blocks"])
    told = room.preview("Explain src/alpha.py", includeText=True)
    assert ALPHA in block(told, "file:src/alpha.py")["text"]


@pytest.mark.parametrize(
    ("prompt", "gate", "includes"),
    [
        ("What is in src/alpha.py?", "mention", "full"),
        (
            'Why does it crash?\nTraceback (most recent call last):\n  File "x.py", line 3\n',
            "code-intent",
            "full",
        ),
        ("Use the current context", "explicit", "full"),
        (NEUTRAL, "no-gate", "dropped"),
    ],
)
def test_open_files_come_by_the_gate_that_the_prompt_opens(
    room: Room, prompt: str, gate: str, includes: str
) -> None:
    room.show("src/alpha.py", ALPHA)
    manifest = room.preview(prompt)

    found = block(manifest, "file:src/alpha.py")
    assert (found["gate"], found["included"]) == (gate, includes)
    if includes == "dropped":
        listed = block(manifest, "files")
        assert (listed["gate"], listed["included"]) == ("list", "summary")


def test_a_tool_that_touched_a_file_keeps_open_files_in_for_three_turns(room: Room) -> None:
    room.ask(say_tool("read_file", path="notes.txt"))
    gates: list[str] = []
    for _ in range(5):
        room.write("notes.txt", f"{len(gates)}\n")
        gates.append(block(room.preview("Continue"), "file:notes.txt")["gate"])
        room.ask("Continue [[say=I do]]", context={"openFiles": "never"})
    assert gates == ["recent-activity"] * 3 + ["no-gate"] * 2


def test_a_pinned_file_is_always_sent_and_never_is_never(room: Room) -> None:
    room.show("src/alpha.py", ALPHA, pin=True)
    room.show("src/beta.py", BETA)
    manifest = room.preview(NEUTRAL)

    assert block(manifest, "file:src/alpha.py")["gate"] == "pinned"
    assert block(manifest, "file:src/beta.py")["included"] == "dropped"


def test_a_prompts_switches_go_before_its_gates(room: Room) -> None:
    room.show("src/alpha.py", ALPHA)
    always = room.preview(NEUTRAL, context={"openFiles": "always"})
    never = room.preview("Explain src/alpha.py", context={"openFiles": "never"})
    excluded = room.preview("Explain src/alpha.py", context={"exclude": ["file:src/alpha.py"]})
    by_label = room.preview("Explain src/alpha.py", context={"exclude": ["src/alpha.py"]})
    let_in = room.preview(NEUTRAL, context={"include": ["src/alpha.py"]})

    found = [block(each, "file:src/alpha.py") for each in (always, never, excluded, by_label, let_in)]
    assert [(each["gate"], each["included"]) for each in found] == [
        ("always", "full"),
        ("never", "dropped"),
        ("excluded", "dropped"),
        ("excluded", "dropped"),
        ("included", "full"),
    ]


def test_a_chats_switches_hold_until_a_prompt_says_otherwise(room: Room) -> None:
    room.show("src/alpha.py", ALPHA)
    room.sidecar.call("chat/configure", chatId="c", set={"gates": {"openFiles": "never"}})
    assert block(room.preview("Explain src/alpha.py"), "file:src/alpha.py")["gate"] == "never"
    switched = room.preview("Explain src/alpha.py", context={"openFiles": "always"})
    assert block(switched, "file:src/alpha.py")["gate"] == "always"

    room.sidecar.call("chat/configure", chatId="c", set={"gates": None, "exclude": ["src/alpha.py"]})
    assert block(room.preview("Explain src/alpha.py"), "file:src/alpha.py")["gate"] == "excluded"


def test_a_switch_that_a_prompt_brings_holds_for_that_prompt_alone(room: Room) -> None:
    room.show("src/alpha.py", ALPHA)
    first = room.ask("Explain src/alpha.py [[say=No]]", context={"openFiles": "never"})
    second = room.ask("Explain src/alpha.py [[say=Yes]]")

    assert block(room.assembled(first), "file:src/alpha.py")["gate"] == "never"
    assert ALPHA not in sent_text(room.asked[0])
    assert block(room.assembled(second), "file:src/alpha.py")["gate"] == "mention"
    assert ALPHA in sent_text(room.asked[1])


def test_a_file_is_sent_once_stays_where_it_was_and_comes_again_when_it_changed(room: Room) -> None:
    room.show("src/alpha.py", ALPHA)
    for number in range(3):
        room.ask(f"Explain src/alpha.py {number} [[say=It adds]]")
    changed = ALPHA.replace("+ 1", "+ 2000")
    room.write("src/alpha.py", changed)
    last = room.ask("Explain src/alpha.py once more [[say=Again]]")

    bodies = [sent_text(request) for request in room.asked]
    assert [body.count(ALPHA) for body in bodies[:3]] == [1, 1, 1]
    assert block(room.assembled(last), "file:src/alpha.py")["gate"] == "mention"
    assert "+ 2000" in text_of(messages(room.asked[-1])[-1])


def test_changes_by_tools_are_named_always_and_shown_when_they_are_asked_about(room: Room) -> None:
    room.edit("src/alpha.py", ALPHA)
    about = room.preview("What did you change?", includeText=True)
    other = room.preview(NEUTRAL, includeText=True)

    assert block(about, "patches")["gate"] == block(other, "patches")["gate"] == "ledger"
    diffs = [found for found in included(about) if found["id"].startswith("patch:")]
    assert [found["gate"] for found in diffs] == ["asks-about-changes"]
    assert "+def alpha(value):" in diffs[0]["text"]
    assert not [found for found in included(other) if found["id"].startswith("patch:")]
    off = room.preview("What did you change?", context={"patches": "never"})
    assert not [found for found in included(off) if found["id"].startswith("patch:")]


def test_an_order_to_edit_a_patched_file_brings_its_diff(room: Room) -> None:
    room.edit("src/alpha.py", ALPHA)
    manifest = room.preview("Rename value to number in src/alpha.py, please edit it")
    gates = {found["gate"] for found in included(manifest) if found["id"].startswith("patch:")}
    assert gates == {"edit-intent"}


def _counting_git(folder: Path) -> tuple[dict[str, str], Callable[[], int]]:
    """An environment whose git writes a line each time it runs, and how many it wrote."""
    real = shutil.which("git")
    assert real
    trace = folder / "git-ran"
    tools = folder / "tools"
    tools.mkdir()
    wrapper = tools / "git"
    wrapper.write_text(f'#!/bin/sh\necho "$@" >> {trace}\nexec {real} "$@"\n')
    wrapper.chmod(0o755)

    def count() -> int:
        return len(trace.read_text().splitlines()) if trace.exists() else 0

    return {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}, count


def test_git_runs_only_when_a_gate_asks_for_it(bench: Workbench, fake: FakeProvider) -> None:
    env, count = _counting_git(bench.spawn.folder)
    room = Room(bench, fake, env=env)
    room.write("notes.txt", "first\nsecond\nanother\n")
    room.show("notes.txt")
    for prompt in (NEUTRAL, "Explain notes.txt", "Fix the bug in src/add.py", "Use the open files"):
        room.preview(prompt)
    room.ask(NEUTRAL)
    room.preview("Show me the git diff", context={"gitDiff": "never"})
    assert count() == 0

    manifest = room.preview("Show me the git diff", includeText=True)
    assert count() > 0
    found = block(manifest, "gitDiff")
    assert found["gate"] == "ledger-empty-my-changes"
    assert "+another" in found["text"]
    room.edit("src/alpha.py", ALPHA)
    assert block(room.preview("Show me the git diff"), "gitDiff")["gate"] == "explicit"


def test_a_huge_changed_file_does_not_hide_the_others_from_the_model(room: Room) -> None:
    for name in ("a.lock", "src/alpha.py", "z.txt"):
        room.write(name, "old\n")
    room.bench.git("add", ".")
    room.bench.git("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "more")
    room.write("a.lock", "".join(f"package-{n} 1.0.{n}\n" for n in range(20_000)))
    room.write("src/alpha.py", "new alpha\n")
    room.write("z.txt", "new z\n")
    found = block(room.preview("Show me the git diff", includeText=True), "gitDiff")

    assert found["included"] == "truncated"
    assert found["tokens"] <= 3000
    for text in (
        "| 20001 ",
        "3 files changed",
        "+package-0 ",
        "+new alpha",
        "+new z",
        "lines of 1 hunk hidden",
    ):
        assert text in found["text"]


@pytest.mark.parametrize("window", [60_000, 66_000, 72_000, 128_000])
def test_a_large_write_leaves_room_for_the_summary_of_the_patches(bench: Workbench, window: int) -> None:
    lines = "".join(f"line {n}\n" for n in range(10_000))
    sidecar = bench.spawn(model=bench.script([call("write_file", path="long.txt", content=lines), "done"]))
    sidecar.call(
        "chat/open", chatId="c", projectPath=str(bench.project), config={"mode": "auto", "window": window}
    )
    sidecar.run("Write it", chatId="c")
    for prompt in ("And now?", "word " * 2000):
        manifest = sidecar.call("chat/context", chatId="c", text=prompt, includeText=True)
        assert "long.txt: New file: 10000 lines" in block(manifest, "patches")["text"]


def test_my_changes_are_gits_as_long_as_no_tool_made_any(room: Room) -> None:
    room.write("notes.txt", "first\nsecond\nanother\n")
    assert block(room.preview("What did I change?"), "gitDiff")["gate"] == "ledger-empty-my-changes"
    room.edit("src/alpha.py", ALPHA)
    manifest = room.preview("What did I change?")
    assert not [found for found in manifest["blocks"] if found["id"] == "gitDiff"]


def test_a_failed_command_after_a_change_from_outside_asks_git(room: Room) -> None:
    room.edit("src/alpha.py", ALPHA)
    room.write("src/alpha.py", BETA)
    room.ask(say_tool("run_command", command="exit 3"))
    assert block(room.preview("And now?"), "gitDiff")["gate"] == "failure-after-drift"


def test_what_is_no_longer_sent_comes_back_when_the_prompt_points_at_it(room: Room) -> None:
    prompt = _long(room)
    found = block(room.preview(prompt, includeText=True), "retrieval")
    assert (found["gate"], found["included"]) == ("points-back", "full")
    assert "plum3" in found["text"]
    uncovered = block(room.preview("And what belongs to plum2, tell me", includeText=True), "retrieval")
    assert uncovered["gate"] in ("uncovered-terms", "points-back")
    assert "plum2" in uncovered["text"]
    never = room.preview(prompt, context={"retrieval": "never"})
    assert not [each for each in included(never) if each["kind"] == "retrieval"]


def test_a_prompt_that_cannot_fit_is_refused_with_what_it_needs(room: Room) -> None:
    far_too_long = "word " * 20_000
    refusal = room.sidecar.refused("chat/context", chatId="c", text=far_too_long)
    assert refusal.code == -32014
    assert refusal.detail("needed") > refusal.detail("available") > 0

    sent = room.sidecar.say(far_too_long, chatId="c")
    ended = room.sidecar.wait_turn(sent["sessionId"], sent["turnId"])["data"]
    assert ended["reason"] == "error"
    assert ended["error"]["code"] == -32014
    assert not room.posted, "nothing is cut in silence, and nothing is sent"
    room.ask("And a short one? [[say=Fits]]")


def _told_tools(room: Room) -> set[str]:
    return {tool["function"]["name"] for tool in room.asked[-1].json.get("tools", [])}


def test_the_least_needed_tools_leave_a_window_that_is_too_small_and_are_named(
    bench: Workbench, fake: FakeProvider
) -> None:
    room = Room(bench, fake, window=2048)
    sent = room.ask("Explain something [[say=Well]]")

    manifest = room.assembled(sent)
    kept = _told_tools(room)
    listed = room.sidecar.call("tools/list", chatId="c")["items"]
    whole = {tool["name"] for tool in listed if tool["enabled"]}
    assert {"read_file", "list_dir"} <= kept < whole
    assert {"ask_user", "run_command"} <= whole - kept
    assert block(manifest, "tools")["included"] == "truncated"
    assert block(manifest, "tools")["label"] == f"tools: {', '.join(sorted(kept))}"
    out = block(manifest, "tools:left-out")
    assert (out["included"], out["gate"]) == ("dropped", "no-room")
    assert out["label"] == f"left out: {', '.join(sorted(whole - kept))}"
    room.ask("Explain something else, in many more words than before, please [[say=Well]]")
    assert _told_tools(room) == kept, "the same with every prompt, as a cache wants it"


def test_a_tool_that_is_left_out_runs_all_the_same_and_is_told_from_then_on(
    bench: Workbench, fake: FakeProvider
) -> None:
    room = Room(bench, fake, window=2048)
    room.ask("Hello [[say=Well]]")
    assert "update_plan" not in _told_tools(room)
    room.ask(say_tool("update_plan", plan=[{"step": "Look", "status": "pending"}]))
    [ended] = [event["data"]["item"] for event in room.sidecar.events(room.session, "tool.ended")]
    assert ended["status"] == "completed"
    room.ask("Go on [[say=Well]]")
    assert "update_plan" in _told_tools(room)
    assert not room.refused


def test_what_is_attached_is_a_block_of_its_own(large: Room) -> None:
    text = "def attached():\n    return 'only here'\n"
    content = [
        {"type": "text", "text": "Explain this [[say=Well]]"},
        {"type": "resource", "uri": "file:///a.py", "text": text, "name": "a.py"},
        {"type": "image", "data": PIXEL, "mimeType": "image/png", "name": "pixel.png"},
    ]
    bare = large.preview("Explain this [[say=Well]]")
    told = large.sidecar.call("chat/context", chatId="c", content=content, includeText=True)
    found = block(told, "attachments")

    assert not [one for one in bare["blocks"] if one["kind"] == "attachments"]
    assert (found["kind"], found["gate"], found["included"]) == ("attachments", "attached", "full")
    assert found["label"] == "a.py, pixel.png"
    assert text in found["text"]
    assert found["tokens"] > 1000, "an image costs, too"
    assert block(told, "prompt")["tokens"] == block(bare, "prompt")["tokens"]
    assert told["used"] == sum(one["tokens"] for one in included(told))
    small = large.sidecar.call("chat/context", chatId="c", content=content, budget=500)
    assert block(small, "attachments")["tokens"] == found["tokens"], "a budget is for all but the prompt"


def _state(room: Room) -> list[Json]:
    """All that a preview could have changed: the journal, the rules' figures, and the blobs on disk."""
    figures = room.sidecar.call("rules/list", chatId="c")["items"]
    return [*room.sidecar.journal(room.session), *figures]


def test_a_preview_changes_nothing(room: Room) -> None:
    room.write("AGENTS.md", "Use tabs.\n")
    room.show("src/alpha.py", ALPHA)
    room.edit("src/beta.py", BETA)
    before = _state(room)
    sent = len(room.posted)
    for prompt in ("Explain src/alpha.py", "What did you change?", "Show me the git diff", NEUTRAL):
        room.preview(prompt, includeText=True)
    room.sidecar.call("chat/compact", chatId="c", dryRun=True)

    assert _state(room) == before
    assert len(room.posted) == sent
