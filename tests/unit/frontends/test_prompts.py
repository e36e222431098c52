"""The handlers of prompts and turns: they decode, call the session and encode what it says."""

from __future__ import annotations

from typing import Any

import pytest
from sidecar_protocol import messages as m

from sidecar.model.failures import Refused
from sidecar.providers.base import Completion, TextDelta
from tests.unit.chat.memory import blocks, finish
from tests.unit.engines.sinks import ScriptedReplies

from .native import handlers


async def test_a_sent_prompt_is_answered_with_its_turn() -> None:
    async with handlers(ScriptedReplies([TextDelta("Hi"), Completion("end_turn")])) as native:
        result = await native.ask("prompt/send", chatId="c", promptId="p", text="Hello")
        (session,) = native.chats.sessions
        await finish(session)

    chat = session.chat
    assert result == m.PromptSendResult(
        session_id=chat.key.session_id,
        chat_id="c",
        disposition="started",
        epoch=chat.epoch,
        seq=1,
        turn_id=chat.head,
        position=None,
    )


async def test_a_waiting_prompt_is_listed_as_it_was_sent() -> None:
    provider = ScriptedReplies([TextDelta("one")])
    async with handlers(provider) as native:
        await native.ask("prompt/send", chatId="c", promptId="p", text="first")
        await native.ask("prompt/send", chatId="c", promptId="q", text="second")
        listed = await native.ask("prompt/list", chatId="c")
        (session,) = native.chats.sessions

    (waiting,) = listed.queue.items
    assert (waiting.prompt_id, waiting.position, waiting.revision) == ("q", 1, 1)
    assert session.queue[0].content == blocks("second")


async def test_events_follow_the_answer() -> None:
    async with handlers(ScriptedReplies([TextDelta("Hi"), Completion("end_turn")])) as native:
        await native.ask("prompt/send", chatId="c", promptId="p", text="Hello")
        (session,) = native.chats.sessions
        await finish(session)
        await native.writer.turn_ended.wait()

    assert [frame["params"]["type"] for frame in native.writer.frames[:3]] == [
        "prompt.accepted",
        "turn.started",
        "chat.state",
    ]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "neither text nor content": ({"promptId": "p"}, "text"),
    "both text and content": (
        {"promptId": "p", "text": "a", "content": [{"type": "text", "text": "a"}]},
        "text",
    ),
    "an empty id": ({"promptId": "", "text": "a"}, "promptId"),
    "an id of 513 bytes": ({"promptId": "x" * 513, "text": "a"}, "promptId"),
    "an id of 171 characters of three bytes": ({"promptId": "€" * 171, "text": "a"}, "promptId"),
}


@pytest.mark.parametrize("kind", REFUSED)
async def test_a_wrong_prompt_is_refused_by_its_field_and_makes_no_chat(kind: str) -> None:
    params, field = REFUSED[kind]
    async with handlers(ScriptedReplies()) as native:
        with pytest.raises(Refused) as refused:
            await native.ask("prompt/send", chatId="c", **params)

    assert (refused.value.name, (refused.value.params or {})["field"]) == ("invalid_params", field)
    assert native.chats.sessions == []


@pytest.mark.parametrize("method", ["prompt/list", "prompt/resume", "turn/cancel"])
async def test_a_chat_that_does_not_exist_is_not_made(method: str) -> None:
    async with handlers(ScriptedReplies()) as native:
        with pytest.raises(Refused, match="There is no chat"):
            await native.ask(method, chatId="c")

    assert native.chats.sessions == []
