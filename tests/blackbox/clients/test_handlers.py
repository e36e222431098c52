"""What the sidecar asks of the app reaches its handlers, and what they return, raise or leave reaches the sidecar."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from sidecar_client import (
    Handlers,
    InputAnswer,
    InputRequest,
    PermissionAnswer,
    PermissionRequest,
    RpcError,
    Tool,
    ToolCallRequest,
    ToolCallResult,
)
from sidecar_protocol.catalog import REQUESTS
from sidecar_protocol.messages import Decision, ReadBufferRequest

from .fake import FakeSidecar, Json, connected

PERMISSION = dict(REQUESTS["permission/request"].example)
INPUT = dict(REQUESTS["input/request"].example)
CALL = dict(REQUESTS["tool/call"].example)
BUFFER = {"sessionId": FakeSidecar.session, "chatId": "tab-7", "path": "/home/ada/engine/src/engine.py"}


async def asked(handlers: Handlers, method: str, params: Json) -> Json:
    """What a client with these handlers answers."""
    fake = FakeSidecar()
    async with connected(fake, handlers):
        fake.ask(1, method, params)
        return await fake.reply(1)


async def test_initialize_offers_what_there_are_handlers_for() -> None:
    fake = FakeSidecar()
    handlers = Handlers(on_permission=_allow, on_read_buffer=_unsaved, tools=[_tool("paint", _shout)])
    async with connected(fake, handlers):
        pass
    (hello,) = fake.calls("initialize")
    assert hello["capabilities"] == {"permissions": True, "buffers": True}
    assert hello["tools"] == [{"name": "paint", "description": "Paints.", "inputSchema": {"type": "object"}}]


async def test_a_handler_sees_the_whole_question() -> None:
    seen = []

    async def permit(request: PermissionRequest) -> Decision:
        seen.append(
            (request.kind, request.subject, request.chat_id, [one.decision for one in request.options])
        )
        return "deny_once"

    await asked(Handlers(on_permission=permit), "permission/request", PERMISSION)
    assert seen == [("run", "make test", "tab-7", ["allow_once", "allow_chat", "deny_once"])]


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        ("allow_always", {"decision": "allow_always"}),
        (
            PermissionAnswer(decision="deny_once", feedback="Not there.", then="stop"),
            {"decision": "deny_once", "feedback": "Not there.", "then": "stop"},
        ),
    ],
    ids=["a decision", "a whole answer"],
)
async def test_a_permission_is_answered_as_the_handler_says(given: Any, answer: Json) -> None:
    async def permit(request: PermissionRequest) -> Any:
        return given

    assert await asked(Handlers(on_permission=permit), "permission/request", PERMISSION) == answer


@pytest.mark.parametrize("given", [ValueError("no window"), "yes", None, True], ids=repr)
async def test_a_permission_whose_handler_fails_is_denied(given: Any) -> None:
    async def permit(request: PermissionRequest) -> Any:
        if isinstance(given, Exception):
            raise given
        return given

    answer = await asked(Handlers(on_permission=permit), "permission/request", PERMISSION)
    assert answer == {"decision": "deny_once", "feedback": "The app could not ask its user."}


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        ({"answer": "3.11"}, {"action": "accept", "values": {"answer": "3.11"}}),
        (InputAnswer(action="decline"), {"action": "decline"}),
        (None, {"action": "cancel"}),
        (ValueError("no window"), {"action": "cancel"}),
    ],
    ids=["values", "a whole answer", "put away", "a failure"],
)
async def test_an_input_is_answered_as_the_handler_says(given: Any, answer: Json) -> None:
    async def fill_in(request: InputRequest) -> Any:
        assert request.message == "Which version of Python?"
        if isinstance(given, Exception):
            raise given
        return given

    assert await asked(Handlers(on_input=fill_in), "input/request", INPUT) == answer


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        ("done", {"content": [{"type": "text", "text": "done"}]}),
        ([{"type": "image", "data": "aGk="}], {"content": [{"type": "image", "data": "aGk="}]}),
        (ToolCallResult(content=[], is_error=True), {"content": [], "isError": True}),
        (
            KeyError("colour"),
            {"content": [{"type": "text", "text": "KeyError: 'colour'"}], "isError": True},
        ),
    ],
    ids=["text", "blocks", "a whole result", "a failure"],
)
async def test_a_tool_answers_what_its_handler_returns(given: Any, answer: Json) -> None:
    async def paint(call: ToolCallRequest) -> Any:
        assert call.arguments == {"path": "src/engine.py"}
        if isinstance(given, Exception):
            raise given
        return given

    assert await asked(Handlers(tools=[_tool("show_file", paint)]), "tool/call", CALL) == answer


async def test_unsaved_text_is_read_from_the_editor() -> None:
    assert await asked(Handlers(on_read_buffer=_unsaved), "fs/readBuffer", BUFFER) == {
        "text": "/home/ada/engine/src/engine.py, unsaved"
    }


async def test_an_editor_that_cannot_be_read_is_not_said_to_have_nothing_unsaved() -> None:
    async def fail(request: ReadBufferRequest) -> str | None:
        raise ValueError("gone")

    answer = await asked(Handlers(on_read_buffer=fail), "fs/readBuffer", BUFFER)
    assert answer["data"]["name"] == "internal_error"


@pytest.mark.parametrize(
    ("method", "params", "refused"),
    [
        ("permission/request", PERMISSION, "This client offers no permission/request"),
        ("input/request", INPUT, "This client offers no input/request"),
        ("fs/readBuffer", BUFFER, "This client offers no fs/readBuffer"),
        ("tool/call", CALL, "This client offers no tool show_file"),
        ("aurora/watch", {}, "This client offers no aurora/watch"),
    ],
)
async def test_what_is_not_offered_is_refused_by_name(method: str, params: Json, refused: str) -> None:
    answer = await asked(Handlers(tools=[_tool("paint", _shout)]), method, params)
    assert (answer["code"], answer["message"]) == (-32601, refused)


async def test_a_question_that_is_none_is_refused_with_the_member_that_is_wrong() -> None:
    answer = await asked(Handlers(on_permission=_allow), "permission/request", {"permissionId": 7})
    assert (answer["data"]["name"], "permissionId" in answer["message"]) == ("invalid_params", True)


async def test_a_question_that_was_decided_elsewhere_leaves_its_handler() -> None:
    fake, left = FakeSidecar(), anyio.Event()

    async def permit(request: PermissionRequest) -> Decision:
        try:
            fake.wire.put({"method": "$/cancelRequest", "params": {"id": 1}})
            await anyio.sleep_forever()
        finally:
            left.set()
        return "allow_once"

    async with connected(fake, Handlers(on_permission=permit)):
        fake.ask(1, "permission/request", PERMISSION)
        await left.wait()
        assert (await fake.reply(1))["data"]["name"] == "request_cancelled"


async def test_the_handlers_of_a_sidecar_that_died_are_left_and_serve_the_next_one(no_delays: None) -> None:
    fake, left = FakeSidecar(), anyio.Event()

    async def permit(request: PermissionRequest) -> Decision:
        if fake.lives > 1:
            return "allow_once"
        try:
            fake.die()
            await anyio.sleep_forever()
        finally:
            left.set()
        return "allow_once"

    async with connected(fake, Handlers(on_permission=permit)):
        fake.ask(1, "permission/request", PERMISSION)
        await left.wait()
        await fake.asked_for("initialize", 2)
        fake.ask(2, "permission/request", PERMISSION)
        assert await fake.reply(2) == {"decision": "allow_once"}


async def test_a_handler_that_waits_does_not_hold_up_the_others() -> None:
    fake, opened = FakeSidecar(), anyio.Event()

    async def permit(request: PermissionRequest) -> Decision:
        await opened.wait()
        return "allow_once"

    async with connected(fake, Handlers(on_permission=permit, on_read_buffer=_unsaved)):
        fake.ask(1, "permission/request", PERMISSION)
        fake.ask(2, "fs/readBuffer", BUFFER)
        await fake.reply(2)
        assert 1 not in fake.replies
        opened.set()
        assert await fake.reply(1) == {"decision": "allow_once"}


async def test_tools_offered_later_replace_the_first_ones_also_after_a_restart(no_delays: None) -> None:
    fake = FakeSidecar()
    async with connected(fake, Handlers(tools=[_tool("paint", _shout)])) as app:
        await app.offer_tools([_tool("show_file", _shout)])
        fake.die()
        _, second = await fake.asked_for("initialize", 2)
        fake.ask(1, "tool/call", CALL)
        assert await fake.reply(1) == {"content": [{"type": "text", "text": "SRC/ENGINE.PY"}]}
    (offer,) = fake.calls("tools/offer")
    assert [tool["name"] for tool in offer["tools"]] == ["show_file"]
    assert [tool["name"] for tool in second["tools"]] == ["show_file"]


async def test_tools_that_are_refused_leave_the_old_ones_also_after_a_restart(no_delays: None) -> None:
    fake = FakeSidecar()
    fake.errors["tools/offer"] = {"code": -32602, "message": "`tools[0].name`", "data": {}}
    async with connected(fake, Handlers(tools=[_tool("show_file", _shout)])) as app:
        with pytest.raises(RpcError, match="name"):
            await app.offer_tools([_tool("no such name", _shout)])
        fake.ask(1, "tool/call", CALL)
        assert await fake.reply(1) == {"content": [{"type": "text", "text": "SRC/ENGINE.PY"}]}
        fake.die()
        _, second = await fake.asked_for("initialize", 2)
    assert [tool["name"] for tool in second["tools"]] == ["show_file"]


def _tool(name: str, handler: Any) -> Tool:
    return Tool(name, "Paints.", {"type": "object"}, handler)


async def _shout(call: ToolCallRequest) -> str:
    return str(call.arguments["path"]).upper()


async def _allow(request: PermissionRequest) -> Decision:
    return "allow_once"


async def _unsaved(request: ReadBufferRequest) -> str | None:
    return f"{request.path}, unsaved"
