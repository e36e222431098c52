"""Sessions of an editor: their ids, the order of frames, and what comes back after a restart."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from .conftest import Start
from .editor import Editor, Refused

SERVE = [sys.executable, "-m", "sidecar", "serve"]


@pytest.mark.parametrize("version", [1, "1", 0])
@pytest.mark.parametrize("command", [None, SERVE], ids=["acp", "serve"])
def test_a_number_as_version_chooses_the_protocol(
    start: Start, command: list[str] | None, version: Any
) -> None:
    editor = start(version=version, **({"command": command} if command else {}))

    assert editor.initialized["protocolVersion"] == 1
    assert editor.prompt(editor.new(), "Hello")["stopReason"] == "end_turn"
    assert editor.said() == "Hello"


def test_an_initialize_without_a_version_is_refused_by_name(start: Start) -> None:
    editor = start(initialize=False)

    with pytest.raises(Refused, match="`protocolVersion`") as refused:
        editor.request("initialize", protocolVersion="next")
    assert refused.value.code == -32602
    with pytest.raises(Refused, match="initialize"):
        editor.request("session/new", cwd="/", mcpServers=[])


def test_the_chat_id_decides_the_session(start: Start) -> None:
    first, second = start(), start()

    assert first.new("tab-7") == second.new("tab-7") == "sc-tab-7-bf133f99bd6e5d06"
    assert first.new() != first.new()


@pytest.mark.parametrize("fixed", [["--chat-id", "tab-7"], []])
def test_a_fixed_chat_id_attaches_a_second_session_to_the_same_chat(start: Start, fixed: list[str]) -> None:
    command = [sys.executable, "-m", "sidecar", "acp", *fixed]
    editor = start(command=command, env={} if fixed else {"SIDECAR_CHAT_ID": "tab-7"})

    session = editor.new()
    editor.prompt(session, "Hello")

    assert editor.new() == session == "sc-tab-7-bf133f99bd6e5d06"
    editor.prompt(session, "Bye")
    assert editor.said() == "HelloBye"


def test_all_updates_of_a_turn_come_before_the_answer_and_have_seqs(editor: Editor) -> None:
    session = editor.new()
    before = len(editor.updates)

    answer = editor.prompt(session, "One two three four five")

    seqs = [each["_meta"]["sidecar"]["seq"] for each in editor.stored(before)]
    assert editor.said(before) == "One two three four five"
    assert seqs == sorted(seqs)
    assert seqs[-1] <= answer["_meta"]["sidecar"]["seq"]


def test_every_update_says_which_event_it_follows(editor: Editor) -> None:
    session = editor.new()
    editor.prompt(session, "Hello")
    editor.wait_update("available_commands_update")
    editor.prompt(session, "/help")

    places = [each["_meta"]["sidecar"] for each in editor.updates]
    assert [place["seq"] for place in places] == sorted(place["seq"] for place in places)
    assert {place["epoch"] for place in places} == {places[0]["epoch"]}
    menus = {"available_commands_update", "config_option_update"}
    live = {kind for kind, place in zip(editor.kinds(), places, strict=True) if place.get("live")}
    assert live <= menus
    assert live


def test_commands_are_announced_after_the_answer(editor: Editor) -> None:
    editor.new()

    names = [each["name"] for each in editor.wait_update("available_commands_update")["availableCommands"]]

    assert {"context", "patches:list", "index", "purge"} <= set(names)


def test_a_loaded_session_has_what_was_there_once(start: Start) -> None:
    first = start()
    session = first.new("tab-7")
    first.prompt(session, "Hello there")
    first.prompt(session, "/help")
    first.kill()

    second = start()
    replayed = second.load(session)
    again = second.load(session)

    texts = [(each["sessionUpdate"], each["content"]["text"]) for each in replayed if "content" in each]
    assert texts[:3] == [
        ("user_message_chunk", "Hello there"),
        ("agent_message_chunk", "Hello there"),
        ("user_message_chunk", "/help"),
    ]
    assert len(texts) == 4
    assert again == replayed
    before = len(second.updates)
    second.prompt(session, "More")
    assert second.said(before) == "More"


def test_a_client_that_names_what_it_has_seen_gets_the_rest(editor: Editor) -> None:
    session = editor.new()
    editor.prompt(session, "First")
    seen = editor.stored()[-1]["_meta"]["sidecar"]
    editor.prompt(session, "Second")

    replayed = editor.load(session, _meta={"sidecar": {"after": seen}})

    texts = [each["content"]["text"] for each in replayed if "content" in each]
    assert texts == ["Second", "Second"]


def test_resume_sends_nothing_of_before(start: Start) -> None:
    first = start()
    session = first.new("tab-7")
    first.prompt(session, "Hello")
    first.close()

    second = start()
    second.request("session/resume", sessionId=session, cwd=str(second.folder))
    second.prompt(session, "Again")

    assert second.said() == "Again"


def test_sessions_are_listed_by_folder_closed_and_deleted(editor: Editor, tmp_path: Path) -> None:
    session, other = editor.new("one"), editor.new("two", cwd=str(tmp_path))
    editor.prompt(session, "Hello")

    here = editor.request("session/list", cwd=str(editor.folder))["sessions"]
    everywhere = editor.request("session/list")["sessions"]
    editor.request("session/close", sessionId=session)
    editor.request("session/delete", sessionId=session)

    assert [(each["sessionId"], each["cwd"], each["title"]) for each in here] == [
        (session, str(editor.folder), "Hello")
    ]
    assert {each["sessionId"] for each in everywhere} == {session, other}
    assert [each["sessionId"] for each in editor.request("session/list")["sessions"]] == [other]
    with pytest.raises(Refused) as refused:
        editor.prompt(session, "Hello?")
    assert refused.value.code == -32002
    for method in ("session/close", "session/delete"):
        editor.request(method, sessionId=session)


def test_two_prompts_at_once_are_answered_one_after_the_other(editor: Editor) -> None:
    session = editor.new()

    ids = [editor.send_prompt(session, text) for text in ("One", "Two")]

    assert [editor.wait(id)["stopReason"] for id in ids] == ["end_turn", "end_turn"]
    assert editor.said() == "OneTwo"


def test_a_prompt_with_an_id_runs_once(start: Start) -> None:
    own = {"_meta": {"sidecar": {"promptId": "p-1"}}}
    first = start()
    session = first.new("tab-7")
    first.prompt(session, "Hello", **own)
    first.kill()

    second = start()
    replayed = second.load(session)
    answer = second.prompt(session, "Hello", **own)

    assert answer["stopReason"] == "end_turn"
    assert second.load(session) == replayed
