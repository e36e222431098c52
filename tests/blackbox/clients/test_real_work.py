"""The client against the real sidecar where a model works: leave, questions, the app's tools, patches, branches."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from sidecar_client import (
    Answer,
    Chat,
    InputRequest,
    PermissionAnswer,
    PermissionRequest,
    RpcError,
    Sidecar,
    Tool,
    ToolCallRequest,
)
from sidecar_protocol.messages import Decision, ReadBufferRequest

from tests.support.patience import PATIENCE_S

WRITE = {"toolCall": {"name": "write_file", "input": {"path": "note.txt", "content": "Hello\n"}}}
DONE = {"text": "Done."}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@asynccontextmanager
async def working(
    project: Path, *steps: dict[str, Any], **handlers: Any
) -> AsyncIterator[tuple[Sidecar, Chat]]:
    """A sidecar whose model does `steps` when the prompt asks for work, and its chat."""
    folder = project.parent
    script = folder / "script.json"
    script.write_text(json.dumps({"onExhausted": "echo", "replies": [{"match": "work", "steps": [*steps]}]}))
    home = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "config")}
    with anyio.fail_after(PATIENCE_S):
        async with Sidecar.spawn(
            data_dir=folder / "data", model=f"scripted:{script}", env=home, **handlers
        ) as app:
            yield app, await app.chat("tab-7", project_path=project)


async def test_what_is_allowed_is_done_and_can_be_put_back(project: Path) -> None:
    asked: list[PermissionRequest] = []

    async def permit(request: PermissionRequest) -> Decision:
        asked.append(request)
        return "allow_once"

    async with working(project, WRITE, DONE, on_permission=permit) as (_, chat):
        assert await chat.prompt("work").text() == "Done."
        assert (project / "note.txt").read_text() == "Hello\n"
        (patch,) = (await chat.patches()).items
        (diff,) = await chat.diffs(patch.id)
        reverted = await chat.revert(patch.id)
        left = (project / "note.txt").exists()
    assert [(one.kind, one.chat_id, one.changes[0].unified_diff) for one in asked] == [
        ("edit", "tab-7", diff.unified_diff)
    ]
    assert (patch.tool_name, patch.kind, patch.added) == ("write_file", "create", 1)
    assert ([change.status for change in reverted.file_changes], left) == (["restored"], False)


async def test_what_is_denied_is_not_done_and_the_model_goes_on(project: Path) -> None:
    async def permit(request: PermissionRequest) -> PermissionAnswer:
        return PermissionAnswer(decision="deny_once", feedback="Not in this folder.")

    async with working(project, WRITE, DONE, on_permission=permit) as (_, chat):
        answer = chat.prompt("work")
        events = [event async for event in answer]
    (resolved,) = [event.data for event in events if event.type == "permission.resolved"]
    (tool,) = [event.item for event in events if event.type == "tool.ended"]
    assert (resolved["decision"], resolved["by"], resolved["feedback"]) == (
        "deny_once",
        "user",
        "Not in this folder.",
    )
    assert tool is not None
    assert (tool.status, answer.reason, (project / "note.txt").exists()) == ("denied", "end_turn", False)


async def test_a_handler_that_raises_grants_nothing(project: Path) -> None:
    async def permit(request: PermissionRequest) -> Decision:
        raise KeyError("window")

    async with working(project, WRITE, DONE, on_permission=permit) as (_, chat):
        assert await chat.prompt("work").text() == "Done."
    assert not (project / "note.txt").exists()


async def test_without_a_handler_what_would_ask_is_denied(project: Path) -> None:
    async with working(project, WRITE, DONE) as (_, chat):
        resolved = [event.data async for event in chat.prompt("work") if event.type == "permission.resolved"]
    assert [(one["decision"], one["by"]) for one in resolved] == [("deny_once", "policy")]
    assert not (project / "note.txt").exists()


async def test_an_answer_by_the_method_takes_the_question_back_from_the_handler(project: Path) -> None:
    left = anyio.Event()

    async def permit(request: PermissionRequest) -> Decision:
        try:
            await anyio.sleep_forever()
        finally:
            left.set()
        return "deny_once"

    async with working(project, WRITE, DONE, on_permission=permit) as (app, chat):
        answer = chat.prompt("work")
        id = (await _until(answer, "permission.requested"))["permissionId"]
        params = {"permissionId": id, "decision": "allow_once"}
        outcome = await app.call("permission/answer", params)
        await left.wait()
        with pytest.raises(RpcError) as late:
            await app.call("permission/answer", params)
        assert await answer.text() == "Done."
    assert (outcome.decision, outcome.by, late.value.name) == ("allow_once", "user", "request_closed")
    assert (project / "note.txt").read_text() == "Hello\n"


async def test_cancelling_the_turn_leaves_the_handler(project: Path) -> None:
    asked, left = anyio.Event(), anyio.Event()

    async def permit(request: PermissionRequest) -> Decision:
        asked.set()
        try:
            await anyio.sleep_forever()
        finally:
            left.set()
        return "allow_once"

    async with working(project, WRITE, DONE, on_permission=permit) as (_, chat):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(chat.prompt("work").text)
            await asked.wait()
            tasks.cancel_scope.cancel()
        await left.wait()
        (turn,) = (await chat.history()).turns
    assert (turn.status, (project / "note.txt").exists()) == ("cancelled", False)


async def test_a_question_of_the_model_is_answered_by_the_form(project: Path) -> None:
    asked: list[InputRequest] = []

    async def fill_in(request: InputRequest) -> dict[str, Any]:
        asked.append(request)
        return dict.fromkeys(request.schema["properties"], "Python 3.11")

    question = {"toolCall": {"name": "ask_user", "input": {"question": "Which version?"}}}
    async with working(project, question, DONE, on_input=fill_in) as (_, chat):
        tools = [event.item async for event in chat.prompt("work") if event.type == "tool.ended"]
    (tool,) = tools
    assert tool is not None
    assert tool.output is not None
    assert ("Which version?" in asked[0].message, "Python 3.11" in tool.output["text"]) == (True, True)


async def test_the_model_calls_a_tool_of_the_app_and_reads_what_it_says(project: Path) -> None:
    async def weather(call: ToolCallRequest) -> str:
        return f"Sunny in {call.arguments['city']}"

    async def permit(request: PermissionRequest) -> Decision:
        return "allow_once"

    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    tools = [Tool("weather", "The weather.", schema, weather)]
    call = {"toolCall": {"name": "weather", "input": {"city": "Oslo"}}}
    async with working(project, call, DONE, on_permission=permit, tools=tools) as (app, chat):
        ended = [event.item async for event in chat.prompt("work") if event.type == "tool.ended"]
        listed = {tool.name: tool for tool in (await app.call("tools/list", {"chatId": "tab-7"})).items}
        await app.offer_tools([])
        later = {tool.name for tool in (await app.call("tools/list", {"chatId": "tab-7"})).items}
    (item,) = ended
    assert item is not None
    assert item.output is not None
    assert (item.status, item.output["text"]) == ("completed", "Sunny in Oslo")
    assert (listed["weather"].source, listed["weather"].calls, "weather" in later) == ("app", 1, False)


async def test_the_model_reads_what_the_editor_has_not_saved(project: Path) -> None:
    (project / "note.txt").write_text("On disk\n")

    async def unsaved(request: ReadBufferRequest) -> str | None:
        return "In the editor\n" if request.path == str(project / "note.txt") else None

    read = {"toolCall": {"name": "read_file", "input": {"path": "note.txt"}}}
    async with working(project, read, DONE, on_read_buffer=unsaved) as (_, chat):
        (item,) = [event.item async for event in chat.prompt("work") if event.type == "tool.ended"]
    assert item is not None
    assert item.output is not None
    assert ("In the editor" in item.output["text"], "On disk" in item.output["text"]) == (True, False)


async def test_open_files_are_opened_pinned_and_closed(project: Path) -> None:
    for name in ("a.py", "b.py", "c.txt"):
        (project / name).write_text("text\n")
    async with working(project) as (_, chat):
        await chat.open_file(glob="*.py")
        await chat.pin_file("c.txt")
        opened = [(Path(file.path).name, file.pinned, file.state) for file in await chat.open_files()]
        await chat.close_file(glob="*.py")
        left = [Path(file.path).name for file in await chat.open_files()]
    assert (opened[0], {name for name, _, _ in opened[1:]}) == (("c.txt", True, "ok"), {"a.py", "b.py"})
    assert left == ["c.txt"]


async def test_a_command_answers_without_a_turn(project: Path) -> None:
    (project / "a.py").write_text("text\n")
    async with working(project) as (_, chat):
        events = [event async for event in chat.prompt("/open a.py")]
        with pytest.raises(RpcError, match="/open"):
            await chat.prompt("/opn a.py").text()
        literal = await chat.prompt("//open a.py").text()
        turns = (await chat.history()).turns
    assert [(event.type, event.data["command"]) for event in events] == [("command.result", "open")]
    assert "a.py" in events[0].text
    assert (literal, len(turns)) == ("/open a.py", 1)


async def test_a_fork_goes_its_own_way_and_a_rewind_comes_back(project: Path) -> None:
    async with working(project) as (_, chat):
        await chat.prompt("one").text()
        await chat.prompt("two").text()
        first, second = (turn.id for turn in (await chat.history()).turns)
        fork = await chat.fork("tab-8", at=first)
        await fork.prompt("three").text()
        back = await chat.rewind(second)
        forth = await chat.rewind(to=second)
        with pytest.raises(RpcError) as taken:
            await chat.fork("tab-8")
        ours, theirs = (await chat.history()).turns, (await fork.history()).turns
    assert (back.hidden, back.head, forth.shown, forth.head) == ([second], first, [second], second)
    assert taken.value.name == "already_exists"
    assert ([_asked(turn) for turn in ours], [_asked(turn) for turn in theirs]) == (
        ["one", "two"],
        ["one", "three"],
    )


async def test_a_rewind_puts_files_back(project: Path) -> None:
    async def permit(request: PermissionRequest) -> Decision:
        return "allow_once"

    async with working(project, WRITE, DONE, on_permission=permit) as (_, chat):
        await chat.prompt("work").text()
        (turn,) = (await chat.history()).turns
        dry = await chat.rewind(turn.id, files="restore", dry_run=True)
        there = (project / "note.txt").exists()
        done = await chat.rewind(turn.id, files="restore")
    assert [change.status for change in [*dry.file_changes, *done.file_changes]] == [
        "would_restore",
        "restored",
    ]
    assert (there, (project / "note.txt").exists()) == (True, False)


async def _until(answer: Answer, type: str) -> dict[str, Any]:
    async for event in answer:
        if event.type == type:
            return event.data
    raise AssertionError(f"the answer ended without {type}")


def _asked(turn: Any) -> str:
    return "".join(block.text for block in turn.items[0].content)
