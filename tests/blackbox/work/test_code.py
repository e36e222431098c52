"""Code and batches through the pipe: what the model gets, what a person is asked, what is left when all is killed."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from sidecar.system.supervisor import process_table, send_signal
from sidecar.tools.shell.transcript import MAX_KEPT_BYTES
from tests.blackbox.work.workbench import ALL, Json, Workbench, call, outputs, statuses, tools
from tests.support.patience import PATIENCE_S
from tests.support.processes import poll_until
from tests.support.sidecar import Sidecar
from tests.unit.system.shapes import clear, mentions, new_token

pytestmark = pytest.mark.slow

LOG = """
for n in range(5000):
    print(f"2026-11-18 10:{n % 60:02} worker {n % 7} finished batch {n}")
    if n == 3210:
        print("2026-11-18 11:02 FATAL worker 3 lost its lease on shard-42")
print("all done")
"""


def code(text: str, language: str = "python", **more: object) -> Json:
    return call("run_code", language=language, code=text, **more)


def batch(*commands: tuple[str, str], **more: object) -> Json:
    listed = [{"label": label, "command": command} for label, command in commands]
    return call("run_batch", commands=listed, **more)


def ran(bench: Workbench, *steps: Json, mode: str = "auto") -> tuple[Sidecar, list[Json]]:
    """The finished calls of one turn."""
    sidecar = bench.start([*steps, "done"], mode=mode)
    ended = sidecar.run("go", chatId="c")
    return sidecar, tools(sidecar, ended["sessionId"])


def test_an_intent_brings_the_line_out_of_a_large_log_and_not_the_log(bench: Workbench) -> None:
    sidecar, (item,) = ran(bench, code(LOG, intent="which worker lost its lease"))
    text = item["output"]["text"]

    assert "FATAL worker 3 lost its lease on shard-42" in text
    assert len(text) < 6000
    assert (item["status"], item["exitCode"]) == ("completed", 0)
    assert text.splitlines()[-1].startswith("[exit code 0; ")
    whole = sidecar.call("index/get", chatId="c", id=item["output"]["source"])
    assert whole["text"].splitlines()[-1] == "all done"
    (source,) = sidecar.call("index/list", chatId="c", kind="code")["items"]
    assert (source["id"], source["toolName"]) == (item["output"]["source"], "run_code")


def test_queries_are_answered_each(bench: Workbench) -> None:
    _, (item,) = ran(bench, code(LOG, queries=["FATAL lease", "all done", "zebra crossing"]))
    text = item["output"]["text"]

    assert "## FATAL lease" in text
    assert "lost its lease on shard-42" in text
    assert "\nall done" in text.partition("## all done")[2]
    assert "Nothing holds these words: zebra crossing" in text


@pytest.mark.parametrize("intent", [None, "zebra crossing"])
def test_without_a_hit_there_is_a_preview_with_the_reference(bench: Workbench, intent: str | None) -> None:
    _, (item,) = ran(bench, code(LOG, **({"intent": intent} if intent else {})))
    text = item["output"]["text"]

    assert item["output"]["source"] in text
    assert "worker 0 finished batch 0" in text
    assert len(text) < 2500


def test_a_short_output_comes_whole(bench: Workbench) -> None:
    _, (item,) = ran(bench, code("print('x' * 1500)", intent="nothing of it"))
    assert item["output"]["text"].splitlines()[0] == "x" * 1500


def test_without_the_index_a_large_output_comes_by_its_edges(bench: Workbench) -> None:
    config = bench.spawn.folder / "plain.toml"
    config.write_text("[index]\nenabled = false\n")
    steps = [
        code(LOG * 3, intent="lease"),
        batch(("log", "seq 20000"), ("one", "echo 1"), queries=["7"]),
        "done",
    ]
    sidecar = bench.spawn("--config", str(config), model=bench.script(steps), capabilities=ALL)
    bench.open(sidecar, "auto")
    ended = sidecar.run("go", chatId="c")

    printed, batched = tools(sidecar, ended["sessionId"])
    assert printed["output"]["text"].startswith("2026-11-18 10:00 worker 0 finished batch 0\n")
    assert "all done\n[exit code 0" in printed["output"]["text"]
    assert printed["output"]["ref"]
    assert "## log: exit code 0; 108894 bytes\n" in batched["output"]["text"]
    assert "\n20000\n## one: exit code 0; 2 bytes\n1\n" in batched["output"]["text"]


def answer(sidecar: Sidecar, decision: str) -> None:
    sidecar.answering["permission/request"] = lambda params: {"decision": decision}


def test_a_person_is_shown_the_whole_code(bench: Workbench) -> None:
    text = "print('first')\n" + "# more\n" * 400 + "print('last')\n"
    sidecar = bench.start([code(text), "done"], mode="ask")
    answer(sidecar, "allow_once")
    ended = sidecar.run("go", chatId="c")

    asked = sidecar.wait_asked("permission/request")["params"]
    assert (asked["kind"], asked["language"], asked["folder"]) == ("run", "python", ".")
    assert asked["subject"] == f"run_code:python\n{text}"
    assert outputs(sidecar, ended["sessionId"])[0].startswith("first\nlast\n")


MODES = [
    ("read-only", "denied", 0),
    ("ask", "denied", 1),
    ("accept-edits", "denied", 1),
    ("auto", "completed", 0),
]


@pytest.mark.parametrize(("mode", "status", "asked"), MODES)
def test_the_mode_decides_what_runs_unasked(bench: Workbench, mode: str, status: str, asked: int) -> None:
    sidecar = bench.start([code("print(1)"), batch(("a", "echo 1")), "done"], mode=mode)
    answer(sidecar, "deny_once")
    ended = sidecar.run("go", chatId="c")
    assert (statuses(sidecar, ended["sessionId"]), len(sidecar.asked)) == ([status] * 2, 2 * asked)


def test_a_rule_for_the_language_allows_code_and_one_for_the_program_does_not(bench: Workbench) -> None:
    sidecar = bench.start([code("print(1)"), "a"], [code("print(2)"), "b"], mode="ask")
    answer(sidecar, "deny_once")
    for rule in ("run(python *)", "run(python3 *)", "run(*)"):
        sidecar.call("permissionRules/set", chatId="c", scope="chat", effect="allow", rule=rule)
    sidecar.run("go", chatId="c")
    sidecar.call("permissionRules/set", chatId="c", scope="chat", effect="allow", rule="run(run_code:python)")
    ended = sidecar.run("again", chatId="c")

    assert statuses(sidecar, ended["sessionId"]) == ["denied", "completed"]
    assert len(sidecar.asked) == 1


def test_a_batch_tells_each_command_and_finds_in_all_of_them(bench: Workbench) -> None:
    step = batch(
        ("numbers", "seq 3000; echo 'ERROR loom 7: the red thread broke'"),
        ("words", "for n in $(seq 900); do echo word $n; done; exit 3"),
        ("quiet", "true"),
        queries=["red thread"],
    )
    sidecar, (item,) = ran(bench, step)
    text = item["output"]["text"]
    sources = {
        source["source"]: source["id"]
        for source in sidecar.call("index/list", chatId="c", kind="code")["items"]
    }

    assert sorted(sources) == ["numbers", "words"]
    assert f"## numbers: exit code 0; 13928 bytes, 3001 lines kept as {sources['numbers']}" in text
    assert f"## words: exit code 3; 7992 bytes, 900 lines kept as {sources['words']}" in text
    assert "## quiet: exit code 0; 0 bytes" in text
    assert "ERROR loom 7: the red thread broke" in text
    assert (item["status"], len(text) < 6000) == ("failed", True)


def test_a_batch_asks_once_for_all_that_must_be_asked(bench: Workbench) -> None:
    step = batch(("list", "ls"), ("make", "echo made > made.txt"), ("push", "git push"), ("say", "echo said"))
    sidecar = bench.start([step, "done"], mode="ask")
    answer(sidecar, "allow_chat")
    sidecar.call("permissionRules/set", chatId="c", scope="chat", effect="allow", rule="run(ls)")
    sidecar.call("permissionRules/set", chatId="c", scope="chat", effect="deny", rule="run(git push *)")
    ended = sidecar.run("go", chatId="c")

    (asked,) = [request["params"] for request in sidecar.asked]
    assert asked["subject"] == "# make\necho made > made.txt\n# say\necho said"
    (text,) = outputs(sidecar, ended["sessionId"])
    assert "## list: exit code 0" in text
    assert "## push: Denied: a rule denies run(git push *)" in text
    assert "## say: exit code 0; 5 bytes" in text
    assert bench.read("made.txt") == "made\n"
    kept = {rule["rule"] for rule in sidecar.call("permissionRules/list", chatId="c")["items"]}
    assert kept >= {"run(=echo made > made.txt)", "run(=echo said)"}
    resolved = [e["data"]["decision"] for e in sidecar.events(ended["sessionId"], "permission.resolved")]
    assert sorted(resolved) == ["allow_chat", "allow_once", "deny_once"]


def test_what_a_person_denies_does_not_run_and_what_a_rule_allows_does(bench: Workbench) -> None:
    sidecar = bench.start([batch(("list", "ls"), ("make", "echo made > made.txt")), "done"], mode="ask")
    answer(sidecar, "deny_once")
    sidecar.call("permissionRules/set", chatId="c", scope="chat", effect="allow", rule="run(ls)")
    ended = sidecar.run("go", chatId="c")

    (text,) = outputs(sidecar, ended["sessionId"])
    assert "notes.txt" in text
    assert "## make: The user denied this." in text
    assert not (bench.project / "made.txt").exists()


def test_a_denial_that_stops_the_turn_runs_nothing_of_the_batch(bench: Workbench) -> None:
    sidecar = bench.start([batch(("list", "ls"), ("a", "touch a")), "never said"], mode="ask")
    sidecar.answering["permission/request"] = lambda params: {"decision": "deny_once", "then": "stop"}
    sidecar.call("permissionRules/set", chatId="c", scope="chat", effect="allow", rule="run(ls)")
    ended = sidecar.run("go", chatId="c")

    assert ended["data"]["reason"] == "cancelled"
    assert statuses(sidecar, ended["sessionId"]) == ["denied"]
    assert not sidecar.events(ended["sessionId"], "tool.output")


def test_a_batch_that_is_denied_altogether_runs_nothing(bench: Workbench) -> None:
    sidecar = bench.start([batch(("a", "touch a"), ("b", "touch b")), "done"], mode="ask")
    answer(sidecar, "deny_once")
    ended = sidecar.run("go", chatId="c")

    assert statuses(sidecar, ended["sessionId"]) == ["denied"]
    assert not list(bench.project.glob("[ab]"))


DEAF = "import os, signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('TOKEN', flush=True)\n"


def test_a_cancel_reaches_code_that_is_deaf_and_leaves_nothing(bench: Workbench) -> None:
    token = new_token()
    sidecar, temporary = _with_temporary(
        bench, [code(f"{DEAF}os.execv('/bin/sleep', ['sleep', 'TOKEN'])".replace("TOKEN", token)), "never"]
    )
    try:
        sent = sidecar.say("go", chatId="c")
        sidecar.wait_event(sent["sessionId"], "tool.output")
        sidecar.call("turn/cancel", chatId="c")
        ended = sidecar.wait_turn(sent["sessionId"], sent["turnId"])
        assert ended["data"]["reason"] == "cancelled"
        assert (mentions(token), list(temporary.iterdir())) == (set(), [])
    finally:
        clear(token)


@pytest.mark.parametrize("keepers", ["alive", "killed"])
def test_after_a_kill_neither_process_nor_file_is_left(bench: Workbench, keepers: str) -> None:
    token = new_token()
    steps = [code(f"echo {token}; exec sleep {token}", "shell"), "never"]
    sidecar, temporary = _with_temporary(bench, steps)
    try:
        sent = sidecar.say("go", chatId="c")
        sidecar.wait_event(sent["sessionId"], "tool.output")
        (folder,) = temporary.iterdir()
        assert token in (folder / "main.sh").read_text()
        if keepers == "killed":
            sidecar.signal(signal.SIGSTOP)
            send_signal(
                [pid for pid, row in process_table().items() if row.parent == sidecar.pid], signal.SIGKILL
            )
        sidecar.kill()
        if keepers == "killed":  # nobody is left to do it but who opens the chat next
            _with_temporary(bench, ["again"])
        assert poll_until(lambda: not mentions(token) and not list(temporary.iterdir()), PATIENCE_S)
    finally:
        clear(token)


def test_a_flood_of_200_mb_is_read_to_its_end_in_bounded_memory(bench: Workbench) -> None:
    flood = "yes 0123456789abcdef0123456789abcdef0123456789abcde | head -c 200000000; echo; echo the end"
    sidecar = bench.start(["hi"], [code(flood, "shell", intent="the end"), "done"])
    sidecar.run("warm up", chatId="c")
    before = _peak(sidecar.pid)
    sent = sidecar.say("go", chatId="c")
    sidecar.wait_turn(sent["sessionId"], sent["turnId"], 90)

    (item,) = tools(sidecar, sent["sessionId"])
    assert "the end" in item["output"]["text"]
    assert len(item["output"]["text"]) < 8000
    shown = sum(len(e["data"]["text"]) for e in sidecar.events(sent["sessionId"], "tool.output"))
    assert MAX_KEPT_BYTES - 4 < shown <= MAX_KEPT_BYTES
    assert _peak(sidecar.pid) - before < 20 * MAX_KEPT_BYTES


def _with_temporary(bench: Workbench, *replies: list[Any]) -> tuple[Sidecar, Path]:
    """A sidecar that has a folder of its own for temporary files."""
    temporary = bench.spawn.folder / "temporary"
    temporary.mkdir(exist_ok=True)
    env = {"TMPDIR": str(temporary)}
    sidecar = bench.spawn(model=bench.script(*replies), capabilities=ALL, env=env)
    bench.open(sidecar)
    return sidecar, temporary


def _peak(pid: int) -> int:
    """The most memory that a process ever had, in bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024
