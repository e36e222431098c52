"""What the model does in a session, as an editor sees it: tool calls, permissions, forms, diffs, plans, errors."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.pictures import png
from tests.support.scripts import BEFORE, HALF_ANSWER, write_script
from tests.support.wire import Json

from .conftest import Start
from .editor import ALL, COMMAND, Editor, Refused

pytestmark = pytest.mark.slow

Play = Callable[..., Editor]


def call(name: str, **input: Any) -> Json:
    return {"toolCall": {"name": name, "input": input}}


@pytest.fixture
def play(start: Start, tmp_path: Path) -> Play:
    """Start an editor whose model takes these steps for each prompt."""

    def begin(*steps: Json, **more: Any) -> Editor:
        return start(model=script_of(tmp_path, *steps), **more)

    return begin


def script_of(folder: Path, *steps: Json) -> str:
    """The model that takes these steps for each prompt."""
    path = folder / "script.json"
    path.write_text(json.dumps({"replies": [{"regex": "", "steps": list(steps)}]}))
    return f"scripted:{path}"


def allow(params: Json, kind: str = "allow_once") -> Json:
    option = next(option for option in params["options"] if option["kind"] == kind)
    return {"outcome": {"outcome": "selected", "optionId": option["optionId"]}}


def ended(editor: Editor) -> Json:
    """The last update of a tool call."""
    updates: list[Json] = [each["update"] for each in editor.updates]
    return [each for each in updates if each.get("status") in ("completed", "failed")][-1]


WRITE = call("write_file", path="new.txt", content="One line\n")


def test_an_edit_is_asked_for_with_its_diff_and_shown_with_it(play: Play, project: Path) -> None:
    editor = play(WRITE, {"text": "Done."}, answers={"session/request_permission": allow})
    session = editor.new()

    answer = editor.prompt(session, "Write it")

    diff = {"type": "diff", "path": str(project / "new.txt"), "oldText": None, "newText": "One line\n"}
    asked = editor.wait_asked("session/request_permission")
    assert diff in asked["toolCall"]["content"]
    assert asked["toolCall"]["locations"] == [{"path": str(project / "new.txt")}]
    assert [option["kind"] for option in asked["options"]] == [
        "allow_once", "allow_always", "allow_always", "reject_once", "reject_always",
    ]  # fmt: skip
    assert diff in ended(editor)["content"]
    assert (project / "new.txt").read_text() == "One line\n"
    assert (answer["stopReason"], editor.said()) == ("end_turn", "Done.")


def test_the_tool_call_is_announced_before_its_permission_is_asked(play: Play) -> None:
    seen: list[list[str]] = []

    def answer(params: Json) -> Json:
        seen.append([each["update"].get("toolCallId", "") for each in editor.updates])
        return allow(params)

    editor = play(WRITE, answers={"session/request_permission": answer})
    editor.prompt(editor.new(), "Write it")

    assert editor.wait_asked("session/request_permission")["toolCall"]["toolCallId"] in seen[0]


@pytest.mark.parametrize(
    "outcome", [{"outcome": "cancelled"}, {"outcome": "selected", "optionId": "x"}, None]
)
def test_an_edit_that_is_not_allowed_changes_nothing(play: Play, project: Path, outcome: Json | None) -> None:
    answers = {"session/request_permission": {"outcome": outcome}}
    editor = play(WRITE, {"text": "Done."}, answers=answers)

    answer = editor.prompt(editor.new(), "Write it")

    assert (answer["stopReason"], ended(editor)["status"]) == ("end_turn", "failed")
    assert not (project / "new.txt").exists()


def test_a_command_shows_where_it_runs_and_what_it_prints(play: Play, tmp_path: Path) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text('sandbox = "off"\n')
    editor = play(
        call("run_command", command="echo printed"),
        command=[*COMMAND, "--config", str(settings)],
        answers={"session/request_permission": allow},
    )
    editor.prompt(editor.new(), "Run it")

    asked = editor.wait_asked("session/request_permission")["toolCall"]
    assert "echo printed" in json.dumps(asked["content"])
    assert "outside the sandbox" in json.dumps(asked["content"])
    assert "printed" in json.dumps(ended(editor)["content"])
    assert ended(editor)["rawOutput"] == {"exitCode": 0}


def test_a_form_is_filled_in_by_elicitation(play: Play) -> None:
    ask = call("ask_user", question="Which one?", choices=["red", "blue"])
    answers = {"elicitation/create": {"action": "accept", "content": {"choice": "blue"}}}
    editor = play(ask, {"text": "Fine."}, capabilities=ALL, answers=answers)
    editor.prompt(editor.new(), "Ask me")

    asked = editor.wait_asked("elicitation/create")
    assert asked["requestedSchema"]["properties"]["choice"]["enum"] == ["red", "blue"]
    assert "blue" in json.dumps(ended(editor)["content"])


def test_a_plan_is_shown(play: Play) -> None:
    steps = [{"step": "Look", "status": "completed"}, {"step": "Act", "status": "in_progress"}]
    editor = play(call("update_plan", plan=steps))
    editor.prompt(editor.new(), "Plan it")

    assert editor.wait_update("plan")["entries"] == [
        {"content": "Look", "priority": "medium", "status": "completed"},
        {"content": "Act", "priority": "medium", "status": "in_progress"},
    ]


def test_a_cancelled_prompt_answers_cancelled(start: Start, tmp_path: Path) -> None:
    editor = start(model=write_script(tmp_path))
    session = editor.new()
    running, waiting = editor.send_prompt(session, "hang"), editor.send_prompt(session, "next")
    editor.wait_update("agent_message_chunk")

    editor.notify("session/cancel", sessionId=session)

    assert [editor.wait(id)["stopReason"] for id in (running, waiting)] == ["cancelled", "cancelled"]
    assert editor.said().strip() == HALF_ANSWER
    assert editor.prompt(session, "again")["stopReason"] == "end_turn"


def test_a_cancel_right_behind_the_prompt_ends_it(start: Start, tmp_path: Path) -> None:
    editor = start(model=write_script(tmp_path))
    session = editor.new()

    prompt = editor.send_prompt(session, "hang")
    editor.notify("session/cancel", sessionId=session)

    assert editor.wait(prompt)["stopReason"] == "cancelled"


def test_a_cancel_ends_a_permission_that_waits(play: Play) -> None:
    editor = play(WRITE, {"text": "Done."})
    session = editor.new()
    prompt = editor.send_prompt(session, "Write it")
    editor.wait_asked("session/request_permission")

    editor.notify("session/cancel", sessionId=session)

    assert editor.wait(prompt)["stopReason"] == "cancelled"


def test_a_prompt_request_that_is_cancelled_ends_its_turn(start: Start, tmp_path: Path) -> None:
    editor = start(model=write_script(tmp_path))
    session = editor.new()
    prompt = editor.send_prompt(session, "hang")
    editor.wait_update("agent_message_chunk")

    editor.notify("$/cancel_request", requestId=prompt)

    with pytest.raises(Refused) as refused:
        editor.wait(prompt)
    assert refused.value.code == -32800
    assert editor.prompt(session, "again")["stopReason"] == "end_turn"


def test_a_waiting_prompt_that_is_cancelled_never_runs(start: Start, tmp_path: Path) -> None:
    editor = start(model=write_script(tmp_path))
    session = editor.new()
    running = editor.send_prompt(session, "hang")
    editor.wait_update("agent_message_chunk")
    waiting, last = editor.send_prompt(session, "Not this"), editor.send_prompt(session, "But this")

    editor.notify("$/cancel_request", requestId=waiting)
    with pytest.raises(Refused) as refused:
        editor.wait(waiting)
    editor.notify("$/cancel_request", requestId=running)

    assert refused.value.code == -32800
    assert editor.wait(last)["stopReason"] == "end_turn"
    assert "Not this" not in json.dumps(editor.load(session))


def test_a_prompt_behind_one_that_fails_is_answered(start: Start, tmp_path: Path) -> None:
    editor = start(model=write_script(tmp_path))
    session = editor.new()

    failing, waiting = editor.send_prompt(session, "break slowly"), editor.send_prompt(session, "Me too")

    with pytest.raises(Refused, match="No more words"):
        editor.wait(failing)
    assert editor.wait(waiting)["stopReason"] == "end_turn"


def test_a_turn_that_fails_answers_with_the_reason(start: Start, tmp_path: Path) -> None:
    editor = start(model=write_script(tmp_path))
    session = editor.new()

    with pytest.raises(Refused, match="No more words this month") as refused:
        editor.prompt(session, "break")

    assert refused.value.code == -32603
    assert editor.said() == BEFORE
    assert "No more words this month" in json.dumps(editor.load(session))


def test_modes_and_options_change_the_session(editor: Editor) -> None:
    session = editor.new()
    editor.request("session/set_mode", sessionId=session, modeId="auto")
    update = editor.wait_update("current_mode_update")
    answer = editor.request(
        "session/set_config_option", sessionId=session, configId="mode", value="read-only"
    )

    assert update["currentModeId"] == "auto"
    assert [option["currentValue"] for option in answer["configOptions"]] == ["read-only", "echo:"]
    resumed = editor.request("session/resume", sessionId=session, cwd=str(editor.folder))
    assert resumed["modes"]["currentModeId"] == "read-only"
    wrong: list[Json] = [
        {"modeId": "yolo"},
        {"configId": "speed", "value": "1"},
        {"configId": "mode", "value": 1},
    ]
    for change in wrong:
        method = "session/set_mode" if "modeId" in change else "session/set_config_option"
        with pytest.raises(Refused) as refused:
            editor.request(method, sessionId=session, **change)
        assert refused.value.code == -32602
    with pytest.raises(Refused, match="`value`"):
        editor.request("session/set_config_option", sessionId=session, configId="model", value="nobody:x")


def test_the_models_are_announced_and_can_be_chosen(editor: Editor) -> None:
    session = editor.new()
    options = editor.wait_update("config_option_update")["configOptions"]

    model = next(option for option in options if option["category"] == "model")
    assert {"echo:", "auto"} <= {choice["value"] for choice in model["options"]}
    editor.request("session/set_config_option", sessionId=session, configId="model", value="echo:")


def test_a_prompt_may_have_links_resources_images_and_audio(
    start: Start, tmp_path: Path, project: Path
) -> None:
    editor = start(capabilities=ALL)
    session = editor.new()
    blocks: list[Json] = [
        {"type": "text", "text": "Look at "},
        {"type": "resource_link", "name": "notes", "uri": f"file://{project}/notes.txt", "_meta": {"x": 1}},
        {"type": "resource", "resource": {"uri": "file:///a.py", "text": "print(1)"}},
        {"type": "image", "data": base64.b64encode(png()).decode(), "mimeType": "image/png"},
    ]
    editor.request("session/prompt", sessionId=session, prompt=blocks)

    shown = [
        each["content"] for each in editor.load(session) if each["sessionUpdate"] == "user_message_chunk"
    ]
    assert [block["type"] for block in shown] == ["text", "resource_link", "resource", "image"]
    assert shown[3]["data"] == blocks[3]["data"]


@pytest.mark.parametrize(
    ("block", "field"),
    [
        ({"type": "video"}, "prompt[0].type"),
        ({"type": "text"}, "prompt[0].text"),
        ({"type": "image", "data": "?", "mimeType": "image/png"}, "prompt[0].data"),
        ({"type": "resource", "resource": {"text": "x"}}, "prompt[0].resource.uri"),
        ({"type": "text", "text": ""}, "prompt"),
    ],
)
def test_a_wrong_block_is_named(editor: Editor, block: Json, field: str) -> None:
    session = editor.new()

    with pytest.raises(Refused) as refused:
        editor.request("session/prompt", sessionId=session, prompt=[block])

    assert refused.value.code == -32602
    assert f"`{field}`" in refused.value.message


def test_what_the_protocol_does_not_have_is_refused_and_unknown_members_are_ignored(editor: Editor) -> None:
    with pytest.raises(Refused, match="session/frobnicate") as refused:
        editor.request("session/frobnicate")
    assert refused.value.code == -32601
    editor.notify("document/didOpen", uri="x")
    session = editor.new(future={"x": 1})
    editor.prompt(session, "Hello", later=True)
    with pytest.raises(Refused, match="`cwd`"):
        editor.request("session/new", cwd="relative", mcpServers=[])
    with pytest.raises(Refused) as unknown:
        editor.load("sc-nobody-0123456789abcdef")
    assert unknown.value.code == -32002


def test_commands_answer_in_markdown(editor: Editor, project: Path) -> None:
    session = editor.new()
    link = {"type": "resource_link", "name": "notes", "uri": f"file://{project}/notes.txt"}
    editor.request("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "/open "}, link])
    editor.prompt(session, "/context what zebra?")
    editor.prompt(session, "/nonsense")

    said = editor.said()
    assert "notes.txt" in said
    assert "| block |" in said
    assert "there is no command /nonsense" in said


def test_a_purged_chat_ends_its_session(editor: Editor) -> None:
    session = editor.new()
    editor.prompt(session, "Hello")
    editor.prompt(session, "/purge")
    word = editor.said().partition("/purge chat ")[2].partition("`")[0]

    assert editor.prompt(session, f"/purge chat {word}")["stopReason"] == "end_turn"

    assert "is gone" in editor.said()
    with pytest.raises(Refused) as refused:
        editor.prompt(session, "Hello?")
    assert refused.value.code == -32002


def test_notices_are_shown_as_the_editor_can(play: Play, tmp_path: Path) -> None:
    fail = {"error": {"reason": "overloaded", "message": "Busy", "retryAfterMs": 1, "retryable": True}}
    script = {
        "replies": [{"match": "x", "times": 1, "steps": [fail]}, {"match": "x", "steps": [{"text": "ok"}]}]
    }
    able, plain = play(capabilities=ALL), play()
    (tmp_path / "script.json").write_text(json.dumps(script))

    able.prompt(able.new(), "x")
    plain.prompt(plain.new(), "x")

    assert able.wait_update("notice")["severity"] == "warning"
    assert "> **Warning**" in plain.said()


@pytest.mark.parametrize("version", [1, 2])
def test_a_compaction_is_shown_with_its_summary_once(start: Start, version: int) -> None:
    editor = start(version=version, capabilities=ALL if version == 1 else {})
    session = editor.new()
    for number in range(12):
        seen = len(editor.updates)
        editor.prompt(session, f"{number}: " + "How wide is the heron mill? " * 200)
        if version == 2:
            editor.wait_update("state_update", seen, state="idle")

    editor.prompt(session, "/compact")
    editor.wait_update("compaction_update", status="completed")
    live = summary_of(editor, 0)
    before = len(editor.updates)
    if version == 1:
        editor.load(session)
    else:
        editor.request(
            "session/resume", sessionId=session, cwd=str(editor.folder), replayFrom={"type": "start"}
        )

    assert "heron mill" in live
    assert summary_of(editor, before) == summary_of(editor, 0) == live


def summary_of(editor: Editor, since: int) -> str:
    """The summary that a client shows after these updates: a list replaces it, a chunk is appended."""
    shown = ""
    for update in (each["update"] for each in editor.updates[since:]):
        if update["sessionUpdate"] == "compaction_update" and "summary" in update:
            shown = "".join(block["text"] for block in update["summary"])
        elif update["sessionUpdate"] == "compaction_summary_chunk":
            shown += update["content"]["text"]
    return shown


def test_closing_stdin_ends_everything_while_a_turn_runs(start: Start, tmp_path: Path) -> None:
    editor = start(model=write_script(tmp_path))
    session = editor.new()
    prompt = editor.send_prompt(session, "hang")
    editor.wait_update("agent_message_chunk")
    closer = threading.Thread(target=editor.close)
    closer.start()
    closer.join()

    assert editor.wait(prompt)["stopReason"] == "cancelled"
