"""Version 2 of the protocol: prompts that are messages, states of the session, and updates that replace."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.scripts import HALF_ANSWER, write_script

from .conftest import Start
from .editor import Editor, Refused
from .test_work import WRITE, Play, allow, call, play

__all__ = ["play"]


@pytest.fixture
def editor(start: Start) -> Editor:
    return start(version=2)


def new(editor: Editor) -> str:
    return str(editor.request("session/new", cwd=str(editor.folder))["sessionId"])


def idle(editor: Editor, since: int = 0) -> dict[str, object]:
    return editor.wait_update("state_update", since, state="idle")


def resume(editor: Editor, session: str) -> list[dict[str, object]]:
    before = len(editor.updates)
    editor.request("session/resume", sessionId=session, cwd=str(editor.folder), replayFrom={"type": "start"})
    return [each["update"] for each in editor.updates[before:]]


@pytest.mark.parametrize(("asked", "spoken"), [(2, 2), (3, 2), (99, 2)])
def test_the_nearest_version_is_spoken(start: Start, asked: int, spoken: int) -> None:
    editor = start(version=2, initialize=False)

    answer = editor.request("initialize", protocolVersion=asked, info={"name": "x", "version": "1"})

    assert (answer["protocolVersion"], answer["info"]["name"]) == (spoken, "sidecar")
    for method in ("session/load", "session/set_mode", "authenticate"):
        with pytest.raises(Refused) as refused:
            editor.request(method)
        assert refused.value.code == -32601


def test_a_prompt_is_answered_by_its_message_and_ends_with_a_state(editor: Editor) -> None:
    session = new(editor)

    answer = editor.prompt(session, "Hello there")
    ended = idle(editor)

    (echoed,) = [
        each["update"] for each in editor.updates if each["update"]["sessionUpdate"] == "user_message"
    ]
    assert echoed["messageId"] == answer["messageId"]
    assert echoed["content"] == [{"type": "text", "text": "Hello there"}]
    assert ended["stopReason"] == "end_turn"
    assert editor.said() == "Hello there"


def test_a_resumed_session_has_its_messages_and_its_state(start: Start) -> None:
    first = start(version=2)
    session = new(first)
    message = first.prompt(session, "Hello there")["messageId"]
    idle(first)
    first.kill()

    second = start(version=2)
    replayed = resume(second, session)

    kinds = [each["sessionUpdate"] for each in replayed]
    assert kinds == ["user_message", "agent_message_chunk", "state_update"]
    assert replayed[0]["messageId"] == message
    assert replayed[-1]["state"] == "idle"
    with pytest.raises(Refused, match="replayFrom"):
        second.request(
            "session/resume", sessionId=session, cwd=str(second.folder), replayFrom={"type": "middle"}
        )


def test_a_cancel_ends_the_turn_and_refuses_what_waits(start: Start, tmp_path: Path) -> None:
    editor = start(version=2, model=write_script(tmp_path))
    session = new(editor)
    editor.prompt(session, "hang")
    waiting = editor.send_prompt(session, "next")
    editor.wait_update("agent_message_chunk")

    editor.notify("session/cancel", sessionId=session)

    with pytest.raises(Refused) as refused:
        editor.wait(waiting)
    assert refused.value.code == -32800
    assert idle(editor)["stopReason"] == "cancelled"
    assert editor.said().strip() == HALF_ANSWER


def test_a_turn_that_fails_says_so_in_its_state(start: Start, tmp_path: Path) -> None:
    editor = start(version=2, model=write_script(tmp_path))
    editor.prompt(new(editor), "break")

    ended = idle(editor)

    assert ended["stopReason"] == "error"
    assert "No more words" in json.dumps(ended["error"])


def test_tools_and_permissions(play: Play, project: Path) -> None:
    plan = call("update_plan", plan=[{"step": "Look", "status": "pending"}])
    editor = play(WRITE, plan, {"text": "Done."}, version=2, answers={"session/request_permission": allow})
    editor.prompt(new(editor), "Write it")
    idle(editor)

    asked = editor.wait_asked("session/request_permission")
    assert asked["subject"]["toolCall"]["status"] == "paused"
    (diff,) = [part for part in asked["subject"]["toolCall"]["content"] if part["type"] == "diff"]
    assert diff["changes"] == [{"operation": "add", "path": str(project / "new.txt")}]
    assert diff["patch"]["text"].startswith(
        "diff --git a/new.txt b/new.txt\nnew file mode 100644\n--- /dev/null"
    )
    assert editor.wait_update("plan_update")["plan"]["entries"][0]["content"] == "Look"
    states = [
        each["update"]["state"]
        for each in editor.updates
        if each["update"]["sessionUpdate"] == "state_update"
    ]
    assert states == ["running", "requires_action", "running", "idle"]


def test_commands_have_the_states_of_a_turn(editor: Editor) -> None:
    session = new(editor)

    answer = editor.prompt(session, "/context what zebra?")
    idle(editor)

    assert "| block |" in editor.said()
    message = editor.wait_update("user_message")
    assert message["content"] == [{"type": "text", "text": "/context what zebra?"}]
    menus = ("config_option_update", "available_commands_update")
    kinds = [kind for kind in editor.kinds() if kind not in menus]
    assert kinds == ["user_message", "state_update", "agent_message_chunk", "state_update"]
    assert message["messageId"] == answer["messageId"]


def test_a_wrong_command_is_a_message_too(editor: Editor) -> None:
    session = new(editor)

    editor.prompt(session, "/nonsense")

    assert idle(editor)["stopReason"] == "end_turn"
    assert "there is no command /nonsense" in editor.said()


def test_closing_cancels_before_it_answers(start: Start, tmp_path: Path) -> None:
    editor = start(version=2, model=write_script(tmp_path))
    session = new(editor)
    editor.prompt(session, "hang")
    editor.wait_update("agent_message_chunk")

    editor.request("session/close", sessionId=session)

    assert editor.kinds()[-1] == "state_update"
    assert editor.updates[-1]["update"]["stopReason"] == "cancelled"
