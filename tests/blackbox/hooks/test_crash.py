"""A hook is asked once about a call, also when the sidecar is killed in between and the turn goes on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.blackbox.hooks.bench import HookBench, ran
from tests.blackbox.work.workbench import call, statuses, tools
from tests.support.patience import PATIENCE_S
from tests.support.sidecar import Sidecar

WRITE = call("write_file", path="new.txt", content="hello\n")


def going_on(bench: HookBench, *replies: list[Any]) -> tuple[Sidecar, dict[str, Any]]:
    """Another sidecar, in which the interrupted turn goes on."""
    second = bench.start(*replies, mode="ask")
    second.answering["permission/request"] = lambda params: {"decision": "allow_once"}
    again = second.call("turn/retry", chatId="c", promptId="again", **{"from": "here"})
    second.wait_turn(again["sessionId"], again["turnId"])
    return second, again


def test_a_hook_that_had_answered_is_not_asked_again(bench: HookBench) -> None:
    bench.hook("PreToolUse", bench.saying(""), "Write")
    bench.hook("UserPromptSubmit", bench.saying("Some context."))
    first = bench.trusting([WRITE, "done"], mode="ask")
    first.say("go", chatId="c")
    first.wait_asked("permission/request")
    assert bench.runs() == 2
    first.kill()
    second, again = going_on(bench, [WRITE, WRITE, "done"])

    assert bench.read("new.txt") == "hello\n"
    runs = [run for run in ran(second, again["sessionId"]) if run["event"] == "PreToolUse"]
    assert [run.get("again", False) for run in runs] == [True, False]  # the second call is another one
    assert bench.runs() == 3


@pytest.mark.slow
def test_a_hooks_no_stands_after_a_crash(bench: HookBench) -> None:
    slow = bench.spawn.folder / "slow"
    bench.hook("PreToolUse", bench.saying("No.", code=2), "Write")
    bench.hook("PreToolUse", f"touch {slow}; sleep 60", "Write", timeout=60)
    first = bench.trusting([WRITE, "done"], mode="auto")
    sent = first.say("go", chatId="c")
    first.wait_event(sent["sessionId"], "hook.started")
    first.wait_until(lambda: bench.runs() == 1 and slow.exists(), PATIENCE_S, "both hooks")
    first.kill()
    second, again = going_on(bench, [WRITE, "done"])

    # Neither was journalled as ended: nobody knows what they would have said, so a person is asked.
    assert bench.runs() == 1
    assert [run["problem"] for run in ran(second, again["sessionId"])] == [
        "the sidecar ended before it did"
    ] * 2
    assert statuses(second, again["sessionId"]) == ["completed"]
    assert len(second.asked) == 1


def test_a_refused_prompt_stays_refused_after_a_crash(bench: HookBench) -> None:
    bench.hook("UserPromptSubmit", f"echo ran >> {bench.log}; sleep 60")
    first = bench.trusting(["never"], mode="auto")
    sent = first.say("go", chatId="c")
    first.wait_event(sent["sessionId"], "hook.started")
    first.kill()
    second = bench.start(["hello"], mode="auto")
    again = second.call("turn/retry", chatId="c", promptId="again", **{"from": "here"})
    ended = second.wait_turn(again["sessionId"], again["turnId"])

    assert ended["data"]["reason"] == "end_turn"
    assert bench.runs() <= 1
    assert tools(second, again["sessionId"]) == []
