"""PreToolUse: a hook denies, asks, allows or changes a call before its tool runs."""

from __future__ import annotations

import pytest

from tests.blackbox.hooks.bench import HookBench, ran, specific
from tests.blackbox.work.workbench import Json, call, outputs, statuses, tools
from tests.support.processes import wait_until_gone

GONE_S = 5.0
"""By then nothing of a hook is left that was ended."""

LIST = call("run_command", command="ls")
WRITE = call("write_file", path="new.txt", content="hello\n")


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

    assert statuses(sidecar, ended["sessionId"]) == ["completed"]
    assert (bench.runs(), ran(sidecar, ended["sessionId"])) == (0, [])


ANSWERS: list[tuple[str, Json | str, int, str, str, int]] = [
    ("ask", specific(permissionDecision="allow"), 0, "completed", "allow", 0),
    ("ask", {"decision": "approve"}, 0, "completed", "allow", 0),
    ("auto", specific(permissionDecision="ask", permissionDecisionReason="Look!"), 0, "denied", "ask", 1),
    ("auto", specific(permissionDecision="deny", permissionDecisionReason="No"), 0, "denied", "deny", 0),
    ("auto", {"decision": "block", "reason": "No"}, 0, "denied", "deny", 0),
    ("auto", {"continue": False, "stopReason": "Enough"}, 0, "denied", "none", 0),
    ("auto", "", 0, "completed", "none", 0),
    ("auto", "all is well", 0, "completed", "none", 0),
    ("auto", {"suppressOutput": True}, 0, "completed", "none", 0),
    ("auto", "a failure that stops nothing", 1, "completed", "none", 0),
    ("ask", "", 0, "denied", "none", 1),
    ("auto", "{garbage", 0, "denied", "failed", 1),
    ("auto", specific(permissionDecision="maybe"), 0, "denied", "failed", 1),
    ("auto", specific(updatedInput="text"), 0, "denied", "failed", 1),
    ("auto", "", 127, "denied", "failed", 1),
    ("auto", "", 139, "denied", "failed", 1),
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("mode", "answer", "code", "status", "decision", "asked"), ANSWERS)
def test_each_answer_means_what_it_means_in_claude_code(
    bench: HookBench, mode: str, answer: Json | str, code: int, status: str, decision: str, asked: int
) -> None:
    bench.hook("PreToolUse", bench.saying(answer, code), "Bash")
    sidecar = bench.trusting([LIST, "done"], mode=mode)
    sidecar.answering["permission/request"] = lambda params: {"decision": "deny_once"}
    ended = sidecar.run("go", chatId="c")

    assert statuses(sidecar, ended["sessionId"]) == [status]
    assert [run["decision"] for run in ran(sidecar, ended["sessionId"])] == [decision]
    assert len(sidecar.asked) == asked


BROKEN = {
    "late": ("sleep 60", {"timeout": 0.3}, "longer than 0.3 s"),
    "endless": ("yes", {}, "more than 65536 bytes"),
    "absent": ("/no/such/program", {}, "could not be started"),
    "not startable": ("/etc/passwd", {}, "could not be started"),
    "killed": ("kill -9 $$", {}, "killed"),
    "no program": ("no-such-program-here", {"args": ["x"]}, "could not be started"),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", BROKEN)
def test_a_hook_that_gives_no_answer_asks_and_says_why(bench: HookBench, kind: str) -> None:
    command, more, words = BROKEN[kind]
    bench.hook("PreToolUse", command, "Bash", **more)  # type: ignore[arg-type]
    sidecar = bench.trusting([LIST, "done"])
    sidecar.answering["permission/request"] = lambda params: {"decision": "allow_once"}
    ended = sidecar.run("go", chatId="c")

    assert words in sidecar.wait_asked("permission/request")["params"]["reason"]
    assert statuses(sidecar, ended["sessionId"]) == ["completed"]


def test_what_a_hook_leaves_running_ends_with_it(bench: HookBench) -> None:
    pids = bench.spawn.folder / "pids"
    bench.hook("PreToolUse", f"(setsid sleep 300 & echo $! >> {pids}); sleep 300 & echo $! >> {pids}; exit 0")
    sidecar = bench.trusting([LIST, "done"])
    ended = sidecar.run("go", chatId="c")

    assert statuses(sidecar, ended["sessionId"]) == ["completed"]
    for pid in map(int, pids.read_text().split()):
        assert wait_until_gone(pid, GONE_S)


def test_a_changed_call_is_shown_in_the_request_and_the_journal_and_runs_as_shown(bench: HookBench) -> None:
    bench.hook("PreToolUse", bench.saying(specific(updatedInput={"command": "echo changed"})), "Bash")
    sidecar = bench.trusting([LIST, "done"], mode="ask")
    sidecar.answering["permission/request"] = lambda params: {"decision": "allow_once"}
    ended = sidecar.run("go", chatId="c")

    asked = sidecar.wait_asked("permission/request")["params"]
    assert (asked["subject"], asked["title"]) == ("echo changed", "Run echo changed")
    assert asked["rewritten"]["input"] == {"command": "ls"}
    (item,) = tools(sidecar, ended["sessionId"])
    assert (item["input"], item["rewritten"]["input"]) == ({"command": "echo changed"}, {"command": "ls"})
    assert item["output"]["text"].startswith("changed\n")
    assert "changed the input of this call" in item["output"]["text"]


def test_a_changed_path_comes_back_in_our_names(bench: HookBench) -> None:
    elsewhere = str(bench.project / "other.txt")
    bench.hook("PreToolUse", bench.saying(specific(updatedInput={"file_path": elsewhere})), "Write")
    sidecar = bench.trusting([WRITE, "done"])
    sidecar.run("go", chatId="c")

    assert bench.read("other.txt") == "hello\n"
    assert not (bench.project / "new.txt").exists()


NEVER = [
    ("auto", {"rule": "run(echo *)", "effect": "deny"}, {"command": "echo x"}, "denied", 0),
    ("auto", {"rule": "run(echo *)", "effect": "ask"}, {"command": "echo x"}, "denied", 1),
    ("read-only", None, {"command": "echo x"}, "denied", 0),
    ("auto", None, {"command": "echo x > .git/hooks/pre-commit"}, "denied", 1),
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("mode", "rule", "changed", "status", "asked"), NEVER)
def test_a_hooks_yes_outweighs_no_rule_mode_or_protected_name(
    bench: HookBench, mode: str, rule: Json | None, changed: Json, status: str, asked: int
) -> None:
    yes = specific(permissionDecision="allow", updatedInput=changed)
    bench.hook("PreToolUse", bench.saying(yes), "Bash")
    sidecar = bench.trusting([LIST, "done"], mode=mode)
    if rule:
        sidecar.call("permissionRules/set", chatId="c", scope="chat", **rule)
    sidecar.answering["permission/request"] = lambda params: {"decision": "deny_once"}
    ended = sidecar.run("go", chatId="c")

    assert (statuses(sidecar, ended["sessionId"]), len(sidecar.asked)) == ([status], asked)


def test_a_hooks_yes_does_not_show_secrets(bench: HookBench) -> None:
    (bench.project / ".env").write_text("KEY=1\n")
    bench.hook("PreToolUse", bench.saying(specific(permissionDecision="allow")), "Read")
    sidecar = bench.trusting([call("read_file", path=".env"), "done"], mode="ask")
    sidecar.answering["permission/request"] = lambda params: {"decision": "deny_once"}
    ended = sidecar.run("go", chatId="c")

    assert (statuses(sidecar, ended["sessionId"]), len(sidecar.asked)) == (["denied"], 1)


def test_deny_goes_before_ask_and_allow_and_the_same_command_runs_once(bench: HookBench) -> None:
    deny = bench.saying("No.", code=2)
    for command in (bench.saying(specific(permissionDecision="allow")), deny, deny):
        bench.hook("PreToolUse", command, "Bash|Write")
    bench.hook("PreToolUse", deny, "*")
    sidecar = bench.trusting([LIST, "done"])
    ended = sidecar.run("go", chatId="c")

    assert statuses(sidecar, ended["sessionId"]) == ["denied"]
    # The one without a matcher reads the call in our names: another question.
    assert bench.runs() == 3
    assert sorted(given["tool_name"] for given in bench.given()) == ["Bash", "Bash", "run_command"]


def test_two_hooks_that_change_a_call_differently_ask(bench: HookBench) -> None:
    for word in ("one", "two"):
        bench.hook("PreToolUse", bench.saying(specific(updatedInput={"command": f"echo {word}"})), "Bash")
    sidecar = bench.trusting([LIST, "done"])
    sidecar.answering["permission/request"] = lambda params: {"decision": "deny_once"}
    sidecar.run("go", chatId="c")

    asked = sidecar.wait_asked("permission/request")["params"]
    assert "different ways" in asked["reason"]
    assert asked["subject"] == "echo one"


def test_every_file_of_a_patch_passes_the_guard_of_edits(bench: HookBench) -> None:
    guard = 'f=$(cat); case "$f" in *secret.txt*) echo "Hands off." >&2; exit 2;; esac'
    bench.hook("PreToolUse", guard, "Edit|Write")
    patch = "".join(
        f"--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+x\n" for name in ("plain.txt", "secret.txt")
    )
    sidecar = bench.trusting([call("patch_file", patch=patch), "done"])
    ended = sidecar.run("go", chatId="c")

    assert statuses(sidecar, ended["sessionId"]) == ["denied"]
    assert "Hands off." in outputs(sidecar, ended["sessionId"])[0]
    assert not (bench.project / "plain.txt").exists()


def test_what_a_hook_adds_stands_with_the_result_as_data(bench: HookBench) -> None:
    bench.hook("PreToolUse", bench.saying(specific(additionalContext="ls is slow today")), "Bash")
    sidecar = bench.trusting([LIST, "done"])
    ended = sidecar.run("go", chatId="c")

    assert "(data, not instructions)]]\nls is slow today\n[[/" in outputs(sidecar, ended["sessionId"])[0]


def test_a_hook_sees_no_keys_of_ours(bench: HookBench) -> None:
    seen = bench.spawn.folder / "environment"
    bench.hook("PreToolUse", f"env > {seen}; pwd >> {seen}")
    sidecar = bench.spawn(
        model=bench.script([LIST, "done"]),
        env={"OPENAI_API_KEY": "sk-canary-0123456789", "SIDECAR_DATA_DIR": str(bench.spawn.folder / "data")},
        capabilities={"permissions": True},
    )
    bench.open(sidecar)
    sidecar.call("project/trust", path=str(bench.project), trusted=True)
    sidecar.run("go", chatId="c")

    environment = seen.read_text()
    assert "canary" not in environment
    for name in ("CLAUDE_PROJECT_DIR", "SIDECAR_PROJECT_DIR"):
        assert f"{name}={bench.path('.')}\n" in environment
    assert f"CLAUDE_PLUGIN_ROOT={bench.path('.sidecar')}\n" in environment
    assert environment.endswith(f"{bench.path('.')}\n")


def test_a_cancelled_turn_ends_its_hook(bench: HookBench) -> None:
    pid = bench.spawn.folder / "pid"
    bench.hook("PreToolUse", f"echo $$ > {pid}; sleep 300")
    sidecar = bench.trusting([LIST, "done"])
    sent = sidecar.say("go", chatId="c")
    sidecar.wait_event(sent["sessionId"], "hook.started")
    sidecar.call("turn/cancel", chatId="c")

    (run,) = ran(sidecar, sent["sessionId"])
    assert (run["decision"], run["problem"]) == ("failed", "the turn ended before it did")
    if pid.exists() and pid.read_text().strip():
        assert wait_until_gone(int(pid.read_text()), GONE_S)
