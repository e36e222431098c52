"""The loop of a turn: steps, limits, loops, cancels, and outputs that are too long to send."""

from __future__ import annotations

import base64

from tests.blackbox.work.workbench import Workbench, call, outputs, statuses, tools
from tests.support import processes


def test_reads_run_side_by_side_and_changes_one_after_another(bench: Workbench) -> None:
    edits = [
        call("edit_file", path="notes.txt", old_string="first", new_string="1st"),
        call("edit_file", path="notes.txt", old_string="second", new_string="2nd"),
        call("read_file", path="notes.txt"),
    ]
    reads = [call("read_file", path="notes.txt"), call("list_dir"), call("read_file", path="src/add.py")]
    sidecar = bench.start([reads, edits, "done"])
    ended = sidecar.run("go", chatId="c")

    assert statuses(sidecar, ended["sessionId"]) == ["completed"] * 6
    assert outputs(sidecar, ended["sessionId"])[-1].startswith("1\t1st\n2\t2nd")
    kinds = [event["type"] for event in sidecar.events(ended["sessionId"], "tool.started", "tool.ended")]
    assert kinds[:3] == ["tool.started"] * 3
    assert kinds[6:] == ["tool.started", "tool.ended"] * 3


def test_a_loop_of_identical_calls_is_stopped_with_a_word_to_the_model(bench: Workbench) -> None:
    sidecar = bench.start([*[call("list_dir")] * 5, "done"])
    ended = sidecar.run("go", chatId="c")

    assert statuses(sidecar, ended["sessionId"]) == ["completed"] * 3 + ["failed"] * 2
    assert "3 times with the same result" in outputs(sidecar, ended["sessionId"])[-1]


def test_the_same_call_after_a_change_is_no_loop(bench: Workbench) -> None:
    write = [call("write_file", path=f"n{n}", content="x") for n in range(5)]
    steps = [step for n in range(5) for step in (call("grep", pattern="zzz"), write[n])]
    sidecar = bench.start([*steps, "done"])
    ended = sidecar.run("go", chatId="c")
    assert set(statuses(sidecar, ended["sessionId"])) == {"completed"}


def test_a_turn_ends_after_so_many_steps(bench: Workbench) -> None:
    sidecar = bench.start([call("list_dir"), call("list_dir", path="src"), "never said"])
    sidecar.call("chat/configure", chatId="c", set={"maxSteps": 2})
    ended = sidecar.run("go", chatId="c")

    assert ended["data"]["reason"] == "max_steps"
    notice = sidecar.events(ended["sessionId"], "notice")[-1]["data"]
    assert notice == {"code": "limit_reached", "params": {"limit": "steps"}}


def test_a_cancel_reaches_a_running_command_at_once(bench: Workbench) -> None:
    sidecar = bench.start([call("run_command", command="echo begun; sleep 987654 & sleep 987654"), "done"])
    sent = sidecar.say("go", chatId="c")
    sidecar.wait_event(
        sent["sessionId"], lambda e: e["type"] == "tool.output" and "begun" in e["data"]["text"]
    )
    cancelled = sidecar.call("turn/cancel", chatId="c")

    assert cancelled["outcome"] == "cancelled"
    assert statuses(sidecar, sent["sessionId"]) == ["cancelled"]
    assert processes.pids_with_arguments("sleep", "987654") == []


def test_output_streams_while_a_command_runs(bench: Workbench) -> None:
    gate = bench.project / "gate"
    sidecar = bench.start(
        [call("run_command", command="echo one; while [ ! -e gate ]; do sleep 0.01; done; echo two"), "done"]
    )
    sent = sidecar.say("go", chatId="c")
    sidecar.wait_event(sent["sessionId"], lambda e: e["type"] == "tool.output" and "one" in e["data"]["text"])
    gate.touch()
    sidecar.wait_turn(sent["sessionId"], sent["turnId"])

    (item,) = tools(sidecar, sent["sessionId"])
    assert (item["exitCode"], "one\ntwo\n" in item["output"]["text"]) == (0, True)


def test_a_long_output_is_kept_whole_and_sent_in_part(bench: Workbench) -> None:
    sidecar = bench.start([call("run_command", command="seq 1 40000"), "done"])
    ended = sidecar.run("go", chatId="c")
    (item,) = tools(sidecar, ended["sessionId"])

    assert item["output"]["truncated"] is True
    assert len(item["output"]["text"]) < 40_000
    assert "\n1\n2\n" in item["output"]["text"]
    assert "40000" in item["output"]["text"]
    whole = sidecar.call("blob/read", ref=item["output"]["ref"])
    assert b"\n20000\n" in base64.b64decode(whole["data"])


def test_a_failing_tool_never_ends_the_turn(bench: Workbench) -> None:
    wrong = [
        call("no_such_tool"),
        call("read_file"),
        call("read_file", path="/etc/passwd"),
        call("run_command", command="exit 3"),
    ]
    sidecar = bench.start([*wrong, "done"])
    ended = sidecar.run("go", chatId="c")

    assert ended["data"]["reason"] == "end_turn"
    assert statuses(sidecar, ended["sessionId"]) == ["failed"] * 4
    assert tools(sidecar, ended["sessionId"])[-1]["exitCode"] == 3


def test_the_process_leaves_with_its_commands(bench: Workbench) -> None:
    """The spawner's account at the end finds nobody left behind; here also none that a command started."""
    sidecar = bench.start(
        [call("run_command", command="echo begun; setsid sleep 876543 & sleep 876543"), "done"]
    )
    sent = sidecar.say("go", chatId="c")
    sidecar.wait_event(sent["sessionId"], "tool.output")
    sidecar.close_stdin()
    assert sidecar.wait(2.5) == 0
    assert processes.pids_with_arguments("sleep", "876543") == []
