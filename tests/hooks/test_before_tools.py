"""PreToolUse: a hook denies, asks, allows or changes a call before its tool runs."""

from __future__ import annotations

from tests.hooks.bench import HookBench, ran
from tests.work.workbench import call, tools

LIST = call("run_command", command="ls")


def test_a_hook_that_exits_with_2_denies_the_call_and_its_words_are_the_reason(bench: HookBench) -> None:
    bench.hook("PreToolUse", bench.saying("No listing today.", code=2), "Bash")
    sidecar = bench.trusting([LIST, "done"])
    ended = sidecar.run("go", chatId="c")

    (item,) = tools(sidecar, ended["sessionId"])
    assert item["status"] == "denied"
    assert "No listing today." in item["output"]["text"]
    assert (item["notRun"]["code"], item["notRun"]["message"]) == ("hook_denied", "No listing today.")
    (run,) = ran(sidecar, ended["sessionId"])
    assert (run["event"], run["decision"], run["exit"], run["itemId"]) == (
        "PreToolUse",
        "deny",
        2,
        item["id"],
    )
    assert bench.runs() == 1


def test_the_hooks_of_a_project_that_is_not_trusted_do_not_run(bench: HookBench) -> None:
    bench.hook("PreToolUse", bench.saying("No.", code=2))
    sidecar = bench.start([LIST, "done"])
    ended = sidecar.run("go", chatId="c")

    assert [item["status"] for item in tools(sidecar, ended["sessionId"])] == ["completed"]
    assert (bench.runs(), ran(sidecar, ended["sessionId"])) == (0, [])
