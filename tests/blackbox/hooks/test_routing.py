"""Calls that are shown a better way, through the pipe: once, in words, and never changed."""

from __future__ import annotations

from tests.blackbox.hooks.bench import HookBench, ran
from tests.blackbox.work.workbench import call, tools


def test_a_big_read_is_shown_the_index_once_and_then_runs(bench: HookBench) -> None:
    (bench.project / "big.log").write_text("line\n" * 20_000)
    read = call("read_file", path="big.log")
    bench.hook("PreToolUse", bench.saying(""), "Read")
    sidecar = bench.trusting([read, read, "done"])
    ended = sidecar.run("go", chatId="c")

    shown, done = tools(sidecar, ended["sessionId"])
    assert (shown["status"], shown["notRun"]["code"]) == ("completed", "route_big_read")
    assert shown["notRun"]["instead"] == "index_path"
    assert shown["output"]["text"].startswith("big.log has 100000 bytes")
    assert (done["status"], done.get("notRun"), done["input"]) == ("completed", None, {"path": "big.log"})
    assert len(ran(sidecar, ended["sessionId"])) == 1


def test_rules_are_switched_off_by_the_settings_and_with_the_index(bench: HookBench) -> None:
    (bench.project / "big.log").write_text("line\n" * 20_000)
    read = call("read_file", path="big.log")
    sidecar = bench.start([read, "a"], [read, "b"])
    sidecar.call("settings/write", scope="user", set={"routing.big_reads": "off"})
    ended = sidecar.run("go", chatId="c")
    sidecar.call("settings/write", scope="user", set={"routing.big_reads": "on", "index.enabled": False})
    sidecar.run("go", chatId="c")

    assert [item.get("notRun") for item in tools(sidecar, ended["sessionId"])] == [None, None]
