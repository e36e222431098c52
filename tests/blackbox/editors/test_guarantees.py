"""What the sidecar promises every client, as far as the protocol of editors can express it."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.support.scripts import SLOW_ANSWER, write_script
from tests.support.spawner import Spawner

from .conftest import Start
from .editor import Editor, Refused


def test_an_app_finds_the_chat_of_an_editor(start: Start, tmp_path: Path) -> None:
    editor = start()
    session = editor.new("tab-7")
    editor.prompt(session, "Hello")
    editor.close()

    spawn = Spawner(tmp_path)
    try:
        sidecar = spawn()
        opened = sidecar.call("chat/open", chatId="tab-7")
        (turn,) = sidecar.call("chat/history", chatId="tab-7")["turns"]
    finally:
        spawn.settle()
    assert opened["sessionId"] == session
    assert opened["projectPath"] == str(editor.folder)
    assert [item["text"] for item in turn["items"]] == ["Hello", "Hello"]


def test_what_another_process_says_in_the_chat_is_shown(start: Start, tmp_path: Path) -> None:
    first, second = start(model=write_script(tmp_path)), start(model=write_script(tmp_path))
    session = first.new("tab-7")
    second.new("tab-7")

    running = first.send_prompt(session, "hang")
    first.wait_update("agent_message_chunk")

    asked = second.wait_update("user_message_chunk")
    assert asked["content"]["text"] == "hang"
    second.wait_update("agent_message_chunk")
    waiting = second.send_prompt(session, "Me too")
    second.notify("session/cancel", sessionId=session)
    assert first.wait(running)["stopReason"] == "cancelled"
    assert second.wait(waiting)["stopReason"] == "cancelled"
    assert second.prompt(session, "Me too")["stopReason"] == "end_turn"
    asked = first.wait_update("user_message_chunk")
    assert asked["content"]["text"] == "Me too"


def test_a_prompt_of_another_process_waits_for_the_turn_that_runs(start: Start, tmp_path: Path) -> None:
    first, second = start(model=write_script(tmp_path)), start(model=write_script(tmp_path))
    session = first.new("tab-7")
    second.new("tab-7")
    running = first.send_prompt(session, "slow")
    first.wait_update("agent_message_chunk")

    answer = second.prompt(session, "Me too")

    assert first.wait(running)["stopReason"] == answer["stopReason"] == "end_turn"
    assert first.said().startswith(SLOW_ANSWER)
    first.wait_update("user_message_chunk")
    assert second.said().endswith("Answer.")


def test_a_signal_ends_the_turn_and_answers_its_prompt(start: Start, tmp_path: Path) -> None:
    editor = start(model=write_script(tmp_path))
    session = editor.new("tab-7")
    prompt = editor.send_prompt(session, "hang")
    editor.wait_update("agent_message_chunk")

    editor.process.send_signal(signal.SIGTERM)

    assert editor.wait(prompt)["stopReason"] == "cancelled"
    assert editor.close() == 128 + signal.SIGTERM
    again = start(model=write_script(tmp_path))
    said = [each["content"]["text"] for each in again.load(session) if "content" in each]
    assert said == ["hang", editor.said()]


def test_every_request_gets_one_answer_in_whatever_order(editor: Editor) -> None:
    session = editor.new()
    sent = [
        editor.send_prompt(session, "One"),
        editor.send("session/list"),
        editor.send("session/load", sessionId=session, cwd=str(editor.folder), mcpServers=[]),
        editor.send_prompt(session, "/help"),
        editor.send("session/set_mode", sessionId=session, modeId="auto"),
        editor.send_prompt(session, "Two"),
        editor.send("nonsense"),
        editor.send("session/resume", sessionId=session, cwd=str(editor.folder)),
    ]

    refused = []
    for id in sent:
        try:
            editor.wait(id)
        except Refused as error:
            refused.append(error.code)
    assert refused == [-32601]
    said = [each["content"]["text"] for each in editor.load(session) if "content" in each]
    assert sorted(text for text in said if len(text) < 9) == ["/help", "One", "One", "Two", "Two"]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{", -32700),
        (b"[]", -32600),
        (b'{"jsonrpc": "2.0", "id": null, "method": "session/list"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 900, "method": "session/list", "params": [1]}', -32602),
        (b'{"jsonrpc": "2.0", "id": 900, "method": "session/prompt", "params": {}}', -32602),
    ],
)
def test_a_broken_frame_is_refused_and_the_next_one_served(editor: Editor, line: bytes, code: int) -> None:
    editor.write_line(line)

    assert editor.wait_refusal() == code
    assert "sessions" in editor.request("session/list")


def test_nothing_that_was_said_is_in_the_log(start: Start, tmp_path: Path) -> None:
    secret = "sesame-4711"
    log = tmp_path / "log.jsonl"
    settings = tmp_path / "settings.toml"
    settings.write_text(f'[log]\nlevel = "debug"\nfile = "{log}"\n')
    editor = start(env={"SIDECAR_CONFIG": str(settings)})
    editor.prompt(editor.new(), f"The word is {secret}")
    editor.close()

    written = log.read_text()
    assert "session/prompt" in written
    assert secret not in written
    assert all(json.loads(line) for line in written.splitlines())
