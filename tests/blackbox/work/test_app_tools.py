"""What the app brings along: its own tools, its editor's unsaved text, its user's answers."""

from __future__ import annotations

from tests.blackbox.work.workbench import ALL, Json, Workbench, call, outputs, statuses, tools
from tests.support import pictures

LOOK = {
    "name": "look",
    "description": "What the user looks at.",
    "inputSchema": {"type": "object", "properties": {"where": {"type": "string"}}},
    "kind": "read",
}
PAINT = {**LOOK, "name": "paint", "kind": "edit", "timeoutMs": 300}


def test_a_tool_of_the_app_is_called_back(bench: Workbench) -> None:
    sidecar = bench.start([call("look", where="window"), "done"], mode="ask", tools=[LOOK])
    sidecar.answering["tool/call"] = lambda params: {"content": [{"type": "text", "text": "rain"}]}
    ended = sidecar.run("go", chatId="c")

    asked = sidecar.wait_asked("tool/call")["params"]
    assert (asked["name"], asked["arguments"], asked["chatId"]) == ("look", {"where": "window"}, "c")
    (item,) = tools(sidecar, ended["sessionId"])
    assert (item["output"]["text"], item["id"], item["kind"]) == ("rain", asked["itemId"], "read")


def test_a_tool_of_the_app_that_changes_things_is_asked_for(bench: Workbench) -> None:
    sidecar = bench.start([call("paint"), "done"], mode="ask")
    assert sidecar.call("tools/offer", tools=[PAINT])["count"] == 1
    sidecar.answering["permission/request"] = lambda params: {"decision": "deny_once"}
    ended = sidecar.run("go", chatId="c")

    assert statuses(sidecar, ended["sessionId"]) == ["denied"]
    assert sidecar.wait_asked("permission/request")["params"]["kind"] == "app-tool"
    assert [request["method"] for request in sidecar.asked] == ["permission/request"]


def test_an_app_that_fails_or_never_answers_is_a_result_for_the_model(bench: Workbench) -> None:
    sidecar = bench.start([call("look"), call("paint"), "done"], tools=[LOOK, PAINT])
    sent = sidecar.say("go", chatId="c")
    request = sidecar.wait_asked("tool/call")
    sidecar.send({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32000, "message": "no eyes"}})
    ended = sidecar.wait_turn(sent["sessionId"], sent["turnId"])

    assert ended["data"]["reason"] == "end_turn"
    failed, late = outputs(sidecar, sent["sessionId"])
    assert "no eyes" in failed
    assert "within 0.3 s" in late
    assert [frame for frame in sidecar.frames if frame.get("method") == "$/cancelRequest"]


def test_images_of_a_tool_come_along_in_forks_and_exports_and_go_with_the_chat(bench: Workbench) -> None:
    sidecar = bench.start([call("look"), "done"], tools=[LOOK])
    sidecar.answering["tool/call"] = lambda params: {"content": [pictures.block(pictures.png())]}
    ended = sidecar.run("go", chatId="c")
    (item,) = tools(sidecar, ended["sessionId"])
    (image,) = item["output"]["content"]

    def shown(chat: str) -> Json:
        (turn,) = sidecar.call("chat/history", chatId=chat)["turns"]
        output: Json = next(item["output"] for item in turn["items"] if item["type"] == "tool")
        return output

    sidecar.call("chat/fork", chatId="c", newChatId="fork")
    exported = sidecar.call("chat/export", chatId="c", format="jsonl")["data"]
    sidecar.call("chat/import", chatId="copy", data=exported)
    without = "".join(line for line in exported.splitlines(keepends=True) if not line.startswith('{"blob"'))
    sidecar.call("chat/import", chatId="bare", data=without)

    assert [shown(chat)["content"] for chat in ("c", "fork", "copy")] == [[image]] * 3
    assert "content" not in shown("bare"), "a reference to bytes of another chat"
    for chat in ("c", "fork", "copy"):
        assert sidecar.call("blob/read", blobId=image["blobId"])["total"] == image["size"]
        sidecar.call("data/purge", chatId=chat, confirm=True)
    assert sidecar.refused("blob/read", blobId=image["blobId"]).code == -32002


def test_tools_that_no_provider_would_take_are_refused_by_name(bench: Workbench) -> None:
    sidecar = bench.start(["hi"])
    for wrong, field in [
        ({**LOOK, "name": "has blank"}, "tools[0].name"),
        ({**LOOK, "kind": "magic"}, "tools[0].kind"),
        ({**LOOK, "timeoutMs": 0}, "tools[0].timeoutMs"),
        ({**LOOK, "name": "read_file"}, "tools[0].name"),
    ]:
        refusal = sidecar.refused("tools/offer", tools=[wrong])
        assert (refusal.code, refusal.data["params"]["field"]) == (-32602, field)


def test_tools_are_listed_with_where_they_come_from(bench: Workbench) -> None:
    sidecar = bench.start([call("read_file", path="notes.txt"), "done"], tools=[LOOK])
    sidecar.call("chat/configure", chatId="c", set={"tools": {"deny": ["run_command"]}})
    sidecar.run("go", chatId="c")
    listed: dict[str, Json] = {item["name"]: item for item in sidecar.call("tools/list", chatId="c")["items"]}

    assert (listed["look"]["source"], listed["read_file"]["source"]) == ("app", "builtin")
    assert (listed["read_file"]["calls"], listed["read_file"]["enabled"]) == (1, True)
    assert listed["run_command"]["enabled"] is False
    assert {
        "write_file",
        "edit_file",
        "insert_line",
        "patch_file",
        "glob",
        "grep",
        "list_dir",
        "git_diff",
    } <= set(listed)


def test_the_model_reads_what_the_editor_has_not_saved(bench: Workbench) -> None:
    edit = call("edit_file", path="notes.txt", old_string="unsaved", new_string="x")
    sidecar = bench.start(
        [call("read_file", path="notes.txt"), edit, "done"], capabilities={**ALL, "buffers": True}
    )
    sidecar.answering["fs/readBuffer"] = lambda params: {"text": "unsaved\n"}
    ended = sidecar.run("go", chatId="c")

    read, edited = outputs(sidecar, ended["sessionId"])
    assert "unsaved" in read
    assert sidecar.wait_asked("fs/readBuffer")["params"]["path"] == bench.path("notes.txt")
    assert statuses(sidecar, ended["sessionId"]) == ["completed", "failed"]
    assert bench.read("notes.txt") == "first\nsecond\nthird\n", edited


def test_the_model_asks_the_user_and_gets_the_answer(bench: Workbench) -> None:
    ask = call("ask_user", question="Which way?", choices=["left", "right"])
    sidecar = bench.start([ask, "done"])
    sent = sidecar.say("go", chatId="c")
    asked = sidecar.wait_asked("input/request")["params"]
    assert "Which way?" in asked["message"]
    outcome = sidecar.call(
        "input/answer", inputId=asked["inputId"], action="accept", values={"choice": "left"}
    )
    sidecar.wait_turn(sent["sessionId"], sent["turnId"])

    assert (outcome["action"], outcome["by"]) == ("accept", "user")
    assert "left" in outputs(sidecar, sent["sessionId"])[0]
    late = sidecar.refused("input/answer", inputId=asked["inputId"], action="cancel")
    assert (late.code, late.detail("outcome")["action"]) == (-32012, "accept")


def test_without_the_capability_the_model_is_told_that_nobody_can_be_asked(bench: Workbench) -> None:
    sidecar = bench.start([call("ask_user", question="Which way?"), "done"], capabilities={})
    ended = sidecar.run("go", chatId="c")
    assert "asked" in outputs(sidecar, ended["sessionId"])[0]
    assert sidecar.events(ended["sessionId"], "input.requested") == []


def test_a_plan_is_shown_and_kept(bench: Workbench) -> None:
    plan = [{"step": "look", "status": "completed"}, {"step": "mend", "status": "in_progress"}]
    sidecar = bench.start([call("update_plan", plan=plan), "done"])
    ended = sidecar.run("go", chatId="c")

    (updated,) = sidecar.events(ended["sessionId"], "plan.updated")
    entries = [{"content": "look", "status": "completed"}, {"content": "mend", "status": "in_progress"}]
    assert updated["data"]["item"]["entries"] == entries
    items = sidecar.call("chat/history", chatId="c")["turns"][0]["items"]
    assert [item["entries"] for item in items if item["type"] == "plan"] == [entries]
