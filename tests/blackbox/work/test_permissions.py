"""Leave for what tools do: asked, given, refused, remembered, revoked, and always journalled."""

from __future__ import annotations

import pytest

from tests.blackbox.work.workbench import ALL, Json, Workbench, call, outputs, statuses, tools
from tests.support.sidecar import Sidecar

WRITE = call("write_file", path="new.txt", content="hello\n")
LIST = call("run_command", command="ls")


def answer(sidecar: Sidecar, decision: str, **more: str) -> None:
    """Answer every permission alike."""
    sidecar.answering["permission/request"] = lambda params: {"decision": decision, **more}


def test_an_edit_is_asked_for_with_its_diff(bench: Workbench) -> None:
    sidecar = bench.start([WRITE, "done"], mode="ask")
    sent = sidecar.say("go", chatId="c")
    asked = sidecar.wait_asked("permission/request")["params"]

    assert (asked["kind"], asked["subject"], asked["title"]) == ("edit", "new.txt", "Write new.txt")
    assert "+hello" in asked["changes"][0]["unifiedDiff"]
    assert [option["decision"] for option in asked["options"]] == [
        "allow_once", "allow_chat", "allow_always", "deny_once", "deny_always"
    ]  # fmt: skip
    assert not (bench.project / "new.txt").exists()
    assert sidecar.wait_event(sent["sessionId"], lambda e: e["data"].get("state") == "requires_action")

    outcome = sidecar.call("permission/answer", permissionId=asked["permissionId"], decision="allow_once")
    assert (outcome["decision"], outcome["by"]) == ("allow_once", "user")
    sidecar.wait_turn(sent["sessionId"], sent["turnId"])
    assert bench.read("new.txt") == "hello\n"


@pytest.mark.parametrize("name", ["chatId", "sessionId"])
def test_an_answer_that_names_a_chat_counts_for_that_chat_alone(bench: Workbench, name: str) -> None:
    sidecar = bench.start([WRITE, "done"], mode="ask")
    sent = sidecar.say("go", chatId="c")
    other = sidecar.call("chat/open", chatId="other")
    asked = sidecar.wait_asked("permission/request")["params"]
    given = {"permissionId": asked["permissionId"], "decision": "allow_once"}

    assert sidecar.refused("permission/answer", **given, **{name: other[name]}).code == -32002
    assert sidecar.refused("permission/answer", **given, chatId="none").code == -32002
    assert sidecar.call("permission/answer", **given, **{name: asked[name]})["by"] == "user"
    sidecar.wait_turn(sent["sessionId"], sent["turnId"])
    assert bench.read("new.txt") == "hello\n"
    assert sidecar.refused("permission/answer", **given, **{name: asked[name]}).code == -32012


def test_a_denied_edit_changes_nothing_and_the_model_is_told(bench: Workbench) -> None:
    sidecar = bench.start([WRITE, "done"], mode="ask")
    answer(sidecar, "deny_once", feedback="Use docs/ instead.")
    ended = sidecar.run("go", chatId="c")

    (item,) = tools(sidecar, ended["sessionId"])
    assert item["status"] == "denied"
    assert "Use docs/ instead." in item["output"]["text"]
    assert not (bench.project / "new.txt").exists()


def test_an_answer_for_the_chat_is_not_asked_for_again(bench: Workbench) -> None:
    sidecar = bench.start([LIST, LIST, "done"], mode="ask")
    answer(sidecar, "allow_chat")
    ended = sidecar.run("go", chatId="c")

    assert statuses(sidecar, ended["sessionId"]) == ["completed", "completed"]
    assert len(sidecar.asked) == 1
    resolved = [e["data"] for e in sidecar.events(ended["sessionId"], "permission.resolved")]
    assert [(r["decision"], r["by"]) for r in resolved] == [("allow_chat", "user"), ("allow_once", "rule")]
    (rule,) = sidecar.call("permissionRules/list", chatId="c")["items"]
    assert (rule["scope"], rule["effect"], rule["rule"]) == ("chat", "allow", "run(=ls)")


def test_a_rule_outlives_the_process_and_can_be_revoked(bench: Workbench) -> None:
    first = bench.start([WRITE, "done"], mode="ask")
    answer(first, "allow_always")
    first.run("go", chatId="c")
    first.close_stdin()
    first.wait()

    second = bench.start(
        [call("read_file", path="new.txt"), _edit("new.txt"), "a"], [_edit2("new.txt"), "b"], mode="ask"
    )
    ended = second.run("go", chatId="c")
    assert statuses(second, ended["sessionId"]) == ["completed", "completed"]
    assert second.asked == []
    (rule,) = second.call("permissionRules/list", chatId="c")["items"]
    assert second.call("permissionRules/remove", chatId="c", id=rule["id"])["items"] == []
    answer(second, "deny_once")
    assert second.run("again", chatId="c")["data"]["reason"] == "end_turn"
    assert statuses(second, ended["sessionId"])[-1] == "denied"


def test_deny_goes_before_allow(bench: Workbench) -> None:
    sidecar = bench.start([LIST, "done"], mode="auto")
    sidecar.call("permissionRules/set", chatId="c", scope="chat", effect="allow", rule="run(ls)")
    sidecar.call("permissionRules/set", chatId="c", scope="user", effect="deny", rule="run(ls *)")
    ended = sidecar.run("go", chatId="c")

    assert statuses(sidecar, ended["sessionId"]) == ["denied"]
    resolved = sidecar.events(ended["sessionId"], "permission.resolved")[0]["data"]
    assert (resolved["decision"], resolved["by"]) == ("deny_once", "rule")


MODES = [
    ("read-only", WRITE, "denied", 0),
    ("read-only", LIST, "denied", 0),
    ("read-only", call("read_file", path="notes.txt"), "completed", 0),
    ("accept-edits", WRITE, "completed", 0),
    ("accept-edits", LIST, "denied", 1),
    ("auto", WRITE, "completed", 0),
    ("auto", LIST, "completed", 0),
    ("auto", call("write_file", path=".git/hooks/pre-commit", content="x"), "denied", 1),
    ("auto", call("write_file", path=".sidecar/config.toml", content="x"), "denied", 1),
    ("accept-edits", call("write_file", path=".vscode/settings.json", content="x"), "denied", 1),
    ("ask", call("read_file", path="notes.txt"), "completed", 0),
    ("ask", LIST, "denied", 1),
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("mode", "step", "status", "asked"), MODES)
def test_the_mode_decides_what_runs_unasked(
    bench: Workbench, mode: str, step: Json, status: str, asked: int
) -> None:
    sidecar = bench.start([step, "done"], mode=mode)
    answer(sidecar, "deny_once")
    ended = sidecar.run("go", chatId="c")

    assert (statuses(sidecar, ended["sessionId"]), len(sidecar.asked)) == ([status], asked)


def test_without_the_capability_nothing_is_asked_and_the_model_is_told(bench: Workbench) -> None:
    sidecar = bench.start([WRITE, "done"], mode="ask", capabilities={})
    ended = sidecar.run("go", chatId="c")

    requested, resolved = sidecar.events(ended["sessionId"], "permission.requested", "permission.resolved")
    assert requested["data"]["permissionId"] == resolved["data"]["permissionId"]
    assert (resolved["data"]["decision"], resolved["data"]["by"]) == ("deny_once", "policy")
    assert "cannot ask" in outputs(sidecar, ended["sessionId"])[0]


def test_stop_ends_the_turn_with_the_denied_call(bench: Workbench) -> None:
    sidecar = bench.start([WRITE, "never said"], mode="ask")
    answer(sidecar, "deny_once", then="stop")
    ended = sidecar.run("go", chatId="c")

    assert ended["data"]["reason"] == "cancelled"
    assert statuses(sidecar, ended["sessionId"]) == ["denied"]


def test_a_cancelled_turn_takes_its_question_back(bench: Workbench) -> None:
    sidecar = bench.start([WRITE, "done"], mode="ask")
    sent = sidecar.say("go", chatId="c")
    asked = sidecar.wait_asked("permission/request")
    sidecar.call("turn/cancel", chatId="c")

    sidecar.wait_frame(lambda f: f.get("method") == "$/cancelRequest" and f["params"]["id"] == asked["id"])
    resolved = sidecar.wait_event(sent["sessionId"], "permission.resolved")["data"]
    assert (resolved["decision"], resolved["by"]) == ("deny_once", "cancel")
    late = sidecar.refused(
        "permission/answer", permissionId=asked["params"]["permissionId"], decision="allow_once"
    )
    assert (late.code, late.detail("outcome")["by"]) == (-32012, "cancel")
    assert not (bench.project / "new.txt").exists()


def test_a_question_of_a_dead_process_ends_with_its_turn_and_is_asked_anew(bench: Workbench) -> None:
    first = bench.start([WRITE, "done"], mode="ask")
    first.say("go", chatId="c")
    asked = first.wait_asked("permission/request")["params"]
    first.kill()

    second = bench.start([WRITE, "done"], mode="ask")
    opened = second.call("chat/open", chatId="c")
    assert opened["pending"] == []
    events = second.journal(opened["sessionId"])
    (resolved,) = [e["data"] for e in events if e["type"] == "permission.resolved"]
    assert (resolved["permissionId"], resolved["by"]) == (asked["permissionId"], "restart")
    late = second.refused("permission/answer", permissionId=asked["permissionId"], decision="allow_once")
    assert late.code == -32012
    answer(second, "allow_once")
    again = second.call("turn/retry", chatId="c", promptId="again", **{"from": "here"})
    second.wait_turn(again["sessionId"], again["turnId"])
    assert bench.read("new.txt") == "hello\n"


def test_a_pending_question_is_shown_to_who_opens_the_chat(bench: Workbench) -> None:
    sidecar = bench.start([WRITE, "done"], mode="ask")
    sent = sidecar.say("go", chatId="c")
    asked = sidecar.wait_asked("permission/request")["params"]
    (pending,) = sidecar.call("chat/open", chatId="c")["pending"]

    assert (pending["id"], pending["turnId"]) == (asked["permissionId"], sent["turnId"])
    assert pending["request"]["subject"] == "new.txt"


def test_a_question_that_nobody_answers_in_time_is_denied(bench: Workbench) -> None:
    config = bench.spawn.folder / "hurry.toml"
    config.write_text("[permissions]\nexpiry = 1\n")
    sidecar = bench.spawn("--config", str(config), model=bench.script([WRITE, "done"]), capabilities=ALL)
    bench.open(sidecar, "ask")
    sent = sidecar.say("go", chatId="c")
    asked = sidecar.wait_asked("permission/request")
    assert asked["params"]["expiresAt"] > 0
    sidecar.wait_turn(sent["sessionId"], sent["turnId"])

    resolved = sidecar.events(sent["sessionId"], "permission.resolved")[0]["data"]
    assert (resolved["decision"], resolved["by"]) == ("deny_once", "expiry")
    assert [frame for frame in sidecar.frames if frame.get("method") == "$/cancelRequest"]
    assert not (bench.project / "new.txt").exists()


def test_an_unknown_permission_and_a_bad_rule_are_refused_by_name(bench: Workbench) -> None:
    sidecar = bench.start(["hi"])
    assert sidecar.refused("permission/answer", permissionId="pe-0", decision="allow_once").code == -32002
    bad = sidecar.refused("permissionRules/set", chatId="c", scope="chat", effect="allow", rule="jump(high)")
    assert (bad.code, bad.data["params"]["field"]) == (-32602, "rule")


def test_a_question_is_not_answered_as_a_permission(bench: Workbench) -> None:
    sidecar = bench.start([call("ask_user", question="Which way?"), "done"], mode="ask")
    sent = sidecar.say("go", chatId="c")
    id = sidecar.wait_asked("input/request")["params"]["inputId"]

    refused = sidecar.refused("permission/answer", permissionId=id, decision="allow_once")
    assert (refused.code, refused.data["params"]["field"]) == (-32002, "permissionId")
    assert sidecar.call("input/answer", inputId=id, action="decline")["by"] == "user"
    sidecar.wait_turn(sent["sessionId"], sent["turnId"])


def test_a_permission_is_not_answered_as_a_question(bench: Workbench) -> None:
    sidecar = bench.start([WRITE, "done"], mode="ask")
    sent = sidecar.say("go", chatId="c")
    id = sidecar.wait_asked("permission/request")["params"]["permissionId"]

    refused = sidecar.refused("input/answer", inputId=id, action="accept")
    assert (refused.code, refused.data["params"]["field"]) == (-32002, "inputId")
    outcome = sidecar.call("permission/answer", permissionId=id, decision="deny_once", feedback="Later.")
    assert (outcome["decision"], outcome["feedback"]) == ("deny_once", "Later.")
    sidecar.wait_turn(sent["sessionId"], sent["turnId"])


def _edit(path: str) -> Json:
    return call("edit_file", path=path, old_string="hello", new_string="good-bye")


def _edit2(path: str) -> Json:
    return call("edit_file", path=path, old_string="good-bye", new_string="hello")


def test_a_second_window_answers_what_another_process_asks(bench: Workbench) -> None:
    owner = bench.start([WRITE, "done"], mode="ask")
    sent = owner.say("go", chatId="c")
    asked = owner.wait_asked("permission/request")
    second = bench.spawn(model=bench.script(["done"]), capabilities=ALL)
    (pending,) = bench.open(second, None)["pending"]
    given = {"permissionId": pending["id"], "decision": "allow_once", "feedback": "go on"}

    outcome = second.call("permission/answer", **given)

    assert (outcome["decision"], outcome["by"], outcome["feedback"]) == ("allow_once", "user", "go on")
    owner.wait_frame(lambda f: f.get("method") == "$/cancelRequest" and f["params"]["id"] == asked["id"])
    assert second.wait_turn(sent["sessionId"], sent["turnId"])["data"]["reason"] == "end_turn"
    assert bench.read("new.txt") == "hello\n"
    assert second.refused("permission/answer", **given).code == -32012
