"""Files of hooks: what is wrong with one is reported, the others run, and a broken guard asks."""

from __future__ import annotations

import json

import pytest

from tests.blackbox.hooks.bench import HookBench, ran
from tests.blackbox.work.workbench import Json, call, statuses
from tests.support.sidecar import Sidecar

LIST = call("run_command", command="ls")


def listed(sidecar: Sidecar, **key: str) -> list[Json]:
    items: list[Json] = sidecar.call("hooks/list", **(key or {"chatId": "c"}))["items"]
    return items


def test_hooks_are_listed_with_where_they_come_from_and_how_they_went(bench: HookBench) -> None:
    bench.add(bench.spawn.folder / "home/.config/sidecar/hooks.json", "Stop", "exit 1")
    bench.hook("PreToolUse", bench.saying("No.", code=2), "Bash", timeout=5)
    sidecar = bench.start([LIST, "done"], [LIST, "done"])
    assert [(row["scope"], row["trusted"], row["runs"]) for row in listed(sidecar)] == [
        ("user", True, 0), ("project", False, 0)
    ]  # fmt: skip
    sidecar.call("project/trust", path=str(bench.project), trusted=True)
    sidecar.run("go", chatId="c")
    sidecar.run("again", chatId="c")

    user, project = listed(sidecar)
    assert (user["event"], user["command"], user["runs"], user["lastResult"]) == ("Stop", "exit 1", 2, "none")
    assert (project["matcher"], project["timeoutMs"], project["claude"]) == ("Bash", 5000, False)
    assert (project["runs"], project["lastResult"]) == (2, "deny")
    assert project["lastMs"] >= 0
    assert project["file"] == bench.path(".sidecar/hooks.json")
    assert listed(sidecar, projectPath=str(bench.project)) == [user, project]


MALFORMED = [
    ("{", "it is no JSON"),
    ("[]", "must be an object"),
    ("[" * 100_000, "it is no JSON"),
    (json.dumps({"hooks": []}), "`hooks` must be an object"),
    (json.dumps({"hooks": {"PreToolUse": {}}}), "`PreToolUse` must be a list"),
    (json.dumps({"hooks": {"PreToolUse": ["x"]}}), "must be an object with `hooks`"),
    (json.dumps({"hooks": {"PreToolUse": [{"matcher": 3, "hooks": []}]}}), "`matcher` must be text"),
    (json.dumps({"hooks": {"PreToolUse": [{"hooks": []}]}}), "`hooks` must be a list"),
    (json.dumps({"hooks": {"PreToolUse": [{"hooks": [{"type": "prompt"}]}]}}), '`type` must be "command"'),
    (json.dumps({"hooks": {"PreToolUse": [{"hooks": [{"type": "command"}]}]}}), "`command` must be text"),
    (
        json.dumps({"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "x", "timeout": -1}]}]}}),
        "`timeout` must be",
    ),
    (
        json.dumps({"hooks": {"PreToolUse": [{"matcher": "(", "hooks": [{"type": "command", "command": "x"}]}]}}),
        "no regular expression",
    ),
    (json.dumps({"hooks": {"PretoolUse": []}}), "did you mean PreToolUse?"),
]  # fmt: skip

PROBLEM_CODES = {"no regular expression": "matcher", "did you mean PreToolUse?": "unknown_event"}


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("text", "words"), MALFORMED)
def test_a_broken_guard_is_named_and_asks(bench: HookBench, text: str, words: str) -> None:
    (bench.project / ".sidecar").mkdir()
    (bench.project / ".sidecar/hooks.json").write_text(text)
    sidecar = bench.trusting([LIST, "done"])
    sidecar.answering["permission/request"] = lambda params: {"decision": "deny_once"}
    ended = sidecar.run("go", chatId="c")

    assert statuses(sidecar, ended["sessionId"]) == ["denied"]
    assert words in sidecar.wait_asked("permission/request")["params"]["reason"]
    (row,) = listed(sidecar)
    assert words in row["problem"]
    assert row["problemCode"] == PROBLEM_CODES.get(words, "malformed")


def test_the_others_run_beside_a_broken_one(bench: HookBench) -> None:
    bench.hook("PostToolUse", bench.saying("x"), "Bash")
    file = bench.project / ".sidecar/hooks.json"
    whole = json.loads(file.read_text())
    whole["hooks"]["PostToolUse"].insert(0, {"hooks": "nonsense"})
    whole["hooks"]["Notification"] = [{"hooks": [{"type": "command", "command": "x"}]}]
    file.write_text(json.dumps(whole))
    sidecar = bench.trusting([LIST, "done"])
    ended = sidecar.run("go", chatId="c")

    assert statuses(sidecar, ended["sessionId"]) == ["completed"]
    assert bench.runs() == 1
    assert ["problem" not in row for row in listed(sidecar)] == [False, True, False]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("matcher", "selects"),
    [
        ("", True), ("*", True), ("Bash", True), ("run_command", True), ("Read|Bash", True), ("Read, Bash", True),
        ("bash", False), ("Bas", False), ("^(?!mcp__).*", True), ("Ba.h", True), ("^mcp__.*", False), ("Bash.+", False),
        ("run_.*|Edit", True), ("Write", False),
    ],
)  # fmt: skip
def test_a_matcher_selects_by_our_name_and_by_claude_codes(
    bench: HookBench, matcher: str, selects: bool
) -> None:
    bench.hook("PreToolUse", bench.saying(""), matcher)
    sidecar = bench.trusting([LIST, "done"])
    ended = sidecar.run("go", chatId="c")

    assert len(ran(sidecar, ended["sessionId"])) == (1 if selects else 0)


def test_a_pattern_that_never_ends_does_not_hold_the_sidecar(bench: HookBench) -> None:
    bench.hook("PreToolUse", bench.saying(""), "(([a-z_])+.)+!$")
    tool = {"name": "a" * 60, "description": "x", "inputSchema": {"type": "object"}, "kind": "read"}
    sidecar = bench.trusting([call("a" * 60), "done"], tools=[tool])
    sidecar.answering["permission/request"] = lambda params: {"decision": "deny_once"}
    ended = sidecar.run("go", chatId="c")

    assert statuses(sidecar, ended["sessionId"]) == ["denied"]
    assert "takes too long" in sidecar.wait_asked("permission/request")["params"]["reason"]


def test_a_changed_file_counts_at_the_next_call_once_it_is_trusted(bench: HookBench) -> None:
    bench.hook("PreToolUse", bench.saying("", code=0), "Bash")
    sidecar = bench.trusting([LIST, "done"], [LIST, "done"])
    sidecar.run("go", chatId="c")
    bench.hook("PreToolUse", bench.saying("Now no.", code=2), "Bash")
    sidecar.call("project/trust", path=str(bench.project), trusted=True)
    ended = sidecar.run("again", chatId="c")

    assert statuses(sidecar, ended["sessionId"]) == ["completed", "denied"]


def test_files_that_the_user_names_hold_and_must_be_there(bench: HookBench) -> None:
    plugin = bench.spawn.folder / "plugin/hooks/hooks.json"
    bench.add(plugin, "PreToolUse", 'echo "from $CLAUDE_PLUGIN_ROOT" >&2; exit 2', "Bash")
    config = bench.spawn.folder / "home/.config/sidecar/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'[hooks]\npaths = ["{plugin}", "{bench.spawn.folder}/absent.json"]\n')
    sidecar = bench.start([LIST, "done"])
    ended = sidecar.run("go", chatId="c")

    (run, absent) = ran(sidecar, ended["sessionId"])
    assert run["answer"]["reason"] == f"from {bench.spawn.folder}/plugin"
    assert (absent["decision"], absent["problem"]) == ("failed", "No such file or directory")


def test_hooks_can_be_switched_off_and_no_untrusted_project_does_so(bench: HookBench) -> None:
    config = bench.spawn.folder / "home/.config/sidecar/config.toml"
    bench.add(config.parent / "hooks.json", "PreToolUse", bench.saying("No.", code=2))
    (bench.project / ".sidecar").mkdir()
    (bench.project / ".sidecar/config.toml").write_text("[hooks]\nenabled = false\n")
    sidecar = bench.start([LIST, "done"], [LIST, "done"])
    ended = sidecar.run("go", chatId="c")
    assert statuses(sidecar, ended["sessionId"]) == ["denied"]

    sidecar.call("settings/write", scope="user", set={"hooks.enabled": False})
    sidecar.run("go", chatId="c")
    assert statuses(sidecar, ended["sessionId"]) == ["denied", "completed"]


def test_the_doctor_names_what_is_wrong_with_the_users_hooks(bench: HookBench) -> None:
    path = bench.spawn.folder / "home/.config/sidecar/hooks.json"
    bench.add(path, "PreToolUse", "true", "(")
    sidecar = bench.start(["hi"])
    checks = {check["name"]: check for check in sidecar.call("doctor/run")["checks"]}

    assert (checks["hooks"]["status"], checks["hooks"]["code"]) == ("warn", "hooks_broken")
    assert "no regular expression" in checks["hooks"]["message"]
