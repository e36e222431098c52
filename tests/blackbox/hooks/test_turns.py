"""Hooks around a turn: the session's beginning and end, the prompt, the model's stop."""

from __future__ import annotations

from tests.blackbox.hooks.bench import HookBench, ran, specific
from tests.blackbox.work.workbench import Json, call, tools
from tests.support.patience import PATIENCE_S
from tests.support.sidecar import Sidecar

LIST = call("run_command", command="ls")


def items(sidecar: Sidecar, kind: str) -> list[Json]:
    turns = sidecar.call("chat/history", chatId="c")["turns"]
    return [item for turn in turns for item in turn["items"] if item["type"] == kind]


def test_a_prompt_that_a_hook_refuses_reaches_no_model_and_leaves_the_view(bench: HookBench) -> None:
    bench.hook("UserPromptSubmit", bench.saying({"decision": "block", "reason": "No secrets here."}))
    sidecar = bench.trusting(["never said"], ["never said"])
    ended = sidecar.run("my password is x", chatId="c")

    error = ended["data"]["error"]
    assert (ended["data"]["reason"], error["code"], error["data"]["reason"]) == (
        "error", -32017, "prompt_blocked"
    )  # fmt: skip
    assert error["data"]["params"]["message"] == "No secrets here."
    assert sidecar.call("chat/history", chatId="c")["turns"] == []
    assert bench.given()[0]["prompt"] == "my password is x"
    assert not sidecar.events(ended["sessionId"], "message.started")


def test_what_a_prompts_hook_says_is_shown_with_its_fence(bench: HookBench) -> None:
    bench.hook("UserPromptSubmit", bench.saying("The build is green."))
    bench.hook(
        "UserPromptSubmit", bench.saying(specific("UserPromptSubmit", additionalContext="It is Monday."))
    )
    sidecar = bench.trusting(["hello"])
    sidecar.run("go", chatId="c")

    (shown,) = items(sidecar, "notice")
    assert shown["text"] == "The build is green.\nIt is Monday."
    assert "(data, not instructions)]]\nThe build is green.\n[[/" in shown["content"][0]["text"]


def test_a_session_begins_once_in_a_process_and_ends_when_its_chat_is_closed(bench: HookBench) -> None:
    bench.hook("SessionStart", bench.saying("Welcome."), "startup")
    bench.hook("SessionEnd", bench.saying("bye"))
    sidecar = bench.trusting(["a"], ["b"])
    sidecar.run("one", chatId="c")
    ended = sidecar.run("two", chatId="c")
    session = ended["sessionId"]
    sidecar.call("chat/close", chatId="c")
    sidecar.call("chat/open", chatId="c")
    sidecar.wait_until(lambda: len(bench.given()) == 2, PATIENCE_S, "the end of the session")

    assert [(given["hook_event_name"], given.get("source"), given.get("reason")) for given in bench.given()] == [
        ("SessionStart", "startup", None), ("SessionEnd", None, "other")
    ]  # fmt: skip
    assert [item["text"] for item in items(sidecar, "notice")] == ["Welcome."]
    assert session


def test_a_session_that_is_resumed_begins_as_such_and_ends_with_the_process(bench: HookBench) -> None:
    first = bench.start(["a"])
    first.run("one", chatId="c")
    first.close_stdin()
    first.wait()
    bench.hook("SessionStart", bench.saying("Again."), "resume|compact")
    bench.hook("SessionEnd", bench.saying("bye"))
    second = bench.trusting(["b"])
    second.run("two", chatId="c")
    second.close_stdin()
    assert second.wait() == 0

    assert [given.get("source") or given.get("reason") for given in bench.given()] == ["resume", "other"]


def test_a_hook_that_hangs_at_the_end_does_not_hold_the_process(bench: HookBench) -> None:
    bench.hook("SessionEnd", f"echo ran >> {bench.log}; sleep 60 & sleep 60")
    sidecar = bench.trusting(["a"])
    sidecar.run("one", chatId="c")
    sidecar.close_stdin()
    assert sidecar.wait(timeout=2.5) == 0
    assert bench.runs() == 1


def test_a_hook_keeps_the_model_from_stopping_once_and_is_told_so(bench: HookBench) -> None:
    command = (
        f'given=$(cat); echo "$given" >> {bench.spawn.folder}/given.jsonl;'
        ' case "$given" in *\'"stop_hook_active": true\'*) exit 0;; esac; echo "Run the tests first." >&2; exit 2'
    )
    bench.hook("Stop", command)
    sidecar = bench.trusting(["I am done."], ["Tests pass."])
    ended = sidecar.run("go", chatId="c")

    assert ended["data"]["reason"] == "end_turn"
    assert [given["stop_hook_active"] for given in bench.given()] == [False, True]
    assert [given["last_assistant_message"] for given in bench.given()] == ["I am done.", "Tests pass."]
    assert [item["text"] for item in items(sidecar, "notice")] == ["Run the tests first."]


def test_a_hook_that_never_lets_the_model_stop_is_asked_no_more(bench: HookBench) -> None:
    bench.hook("Stop", bench.saying({"decision": "block", "reason": "More!"}))
    sidecar = bench.trusting(*[[f"{n}"] for n in range(10)])
    ended = sidecar.run("go", chatId="c")

    assert (ended["data"]["reason"], bench.runs()) == ("end_turn", 3)
    notices = [e["data"]["code"] for e in sidecar.events(ended["sessionId"], "notice")]
    assert notices.count("hook_stop_limit") == 1


def test_a_prompt_that_steers_is_asked_about_before_it_is_taken(bench: HookBench) -> None:
    given = bench.spawn.folder / "given.jsonl"
    refuses = (
        f'cat > {given}; grep -q forbidden {given} && echo "Not that." >&2 && exit 2; echo "Mind the gap."'
    )
    bench.hook("UserPromptSubmit", refuses)
    sidecar = bench.trusting(["Half", {"hang": True}])
    sent = sidecar.say("go", chatId="c")
    sidecar.wait_event(sent["sessionId"], "message.started")
    refusal = sidecar.refused("prompt/send", chatId="c", promptId="s1", text="forbidden", delivery="steer")
    taken = sidecar.say("also this", chatId="c", delivery="steer")
    sidecar.call("turn/cancel", chatId="c")

    assert (refusal.code, refusal.data["reason"]) == (-32017, "prompt_blocked")
    assert taken["disposition"] == "steered"
    said = items(sidecar, "user")
    assert [item["text"] for item in said] == ["go", "also this"]
    assert "Mind the gap." in said[1]["content"][1]["text"]


def test_a_hook_may_end_the_turn(bench: HookBench) -> None:
    bench.hook("PostToolUse", bench.saying({"continue": False, "stopReason": "Enough."}))
    sidecar = bench.trusting([LIST, "never said"])
    ended = sidecar.run("go", chatId="c")

    assert ended["data"]["reason"] == "cancelled"
    assert [item["status"] for item in tools(sidecar, ended["sessionId"])] == ["completed"]
    assert [run["event"] for run in ran(sidecar, ended["sessionId"])] == ["PostToolUse"]
