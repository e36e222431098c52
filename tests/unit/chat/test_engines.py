"""A second engine in a session over a database in memory: chosen by name, it runs whole turns without a provider."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from sidecar.chat.journal.identity import ChatAddress
from sidecar.chat.sessions.session import Session
from sidecar.engines.base import EngineCapabilities, EngineChat, Sink, TurnRequest
from sidecar.engines.registry import BUILT_IN, EngineEntry, EngineRegistry
from sidecar.model.content import EndReason
from sidecar.model.failures import Failure, ProviderFailed, Refused, StorageFailed
from sidecar.providers.base import Completion, TextDelta, TokenUsage, ToolCall
from sidecar.providers.registry import AUTO
from sidecar.tools.base import ToolOutcome
from sidecar.tools.toolbox import CallResult
from tests.unit.chat.memory import (
    events,
    finish,
    open_chats,
    open_session,
    open_store,
    send,
    summarise,
    turns,
)
from tests.unit.engines.sinks import ScriptedReplies

NO_PROVIDER = ScriptedReplies()
"""A provider without a reply: a turn that asks it fails."""


class EchoEngine:
    """Answers with the words of the prompt. "wait" holds the turn until it is cancelled or `release` is set, "fail"
    and "limit" end it so, "tool" calls a tool of its own first.
    """

    def __init__(self) -> None:
        self.chats: list[EngineChat] = []
        self.requests: list[TurnRequest] = []
        self.closed = 0
        self.was_closed = anyio.Event()
        self.waiting = anyio.Event()
        self.release = anyio.Event()

    async def open(self, chat: EngineChat) -> None:
        self.chats.append(chat)

    async def run(self, turn: TurnRequest, sink: Sink) -> EndReason:
        self.requests.append(turn)
        words = " ".join(block.text or "" for block in turn.prompt)
        if words == "fail":
            raise Failure("internal_error", "The agent has ended", reason="agent_ended")
        if words == "tool":
            call = ToolCall("1", "look", {})
            await sink.tool_started(call, "look()", "read")
            await sink.tool_ended(call, CallResult(ToolOutcome("seen")))
        for word in words.split():
            await sink.text(f"{word} ")
        if words == "wait":
            self.waiting.set()
            await self.release.wait()
        await sink.step_ended(TokenUsage(input=1, output=len(words.split())))
        return "max_tokens" if words == "limit" else "end_turn"

    async def close(self) -> None:
        self.closed += 1
        self.was_closed.set()


def with_echo(engine: EchoEngine, *, takes_steers: bool = False) -> EngineRegistry:
    capabilities = EngineCapabilities(calls_provider=False, takes_steers=takes_steers)
    return EngineRegistry([*BUILT_IN, EngineEntry("echo", capabilities, lambda: engine)])


@asynccontextmanager
async def echo_session(engine: EchoEngine, **options: Any) -> AsyncIterator[Session]:
    async with open_session(NO_PROVIDER, engines=with_echo(engine), engine="echo", **options) as session:
        yield session


async def test_a_second_engine_runs_a_whole_turn() -> None:
    engine = EchoEngine()
    async with echo_session(engine) as session:
        await send(session, "Hello there")
        await finish(session)
        (turn,) = await turns(session)

    assert summarise(turn) == (
        "end_turn",
        [("user", "completed", "Hello there"), ("message", "completed", "Hello there ")],
    )
    assert (turn.engine, turn.model, session.chat.usage.output_tokens) == ("echo", "test:small", 2)
    assert engine.chats == [EngineChat(session.chat.key.session_id, session.chat.epoch, None)]


@pytest.mark.parametrize(
    ("prompt", "reason", "items"),
    [
        ("one", "end_turn", [("user", "completed", "one"), ("message", "completed", "one ")]),
        ("limit", "max_tokens", [("user", "completed", "limit"), ("message", "completed", "limit ")]),
        ("fail", "error", [("user", "completed", "fail")]),
        (
            "tool",
            "end_turn",
            [("user", "completed", "tool"), ("tool", "completed", None), ("message", "completed", "tool ")],
        ),
        (
            "two words",
            "end_turn",
            [("user", "completed", "two words"), ("message", "completed", "two words ")],
        ),
    ],
)
async def test_the_journal_has_what_the_engine_reported(
    prompt: str, reason: str, items: list[tuple[str, str, str | None]]
) -> None:
    async with echo_session(EchoEngine()) as session:
        await send(session, prompt)
        await finish(session)
        (turn,) = await turns(session)

    assert summarise(turn) == (reason, items)


async def test_it_gets_the_prompt_and_the_tools_and_no_provider() -> None:
    engine = EchoEngine()
    async with echo_session(engine, effort="high") as session:
        await send(session, "Hello")
        await finish(session)

    (request,) = engine.requests
    assert ([block.text for block in request.prompt], request.model, request.effort) == (
        ["Hello"],
        "test:small",
        "high",
    )
    assert (request.limits.steps, request.secret, request.calls) == (10, session.chat.epoch, None)


async def test_it_needs_no_model() -> None:
    """With the native engine the turn fails: no provider is configured."""
    async with echo_session(EchoEngine(), model=AUTO) as session:
        await send(session, "Hello")
        await finish(session)
        (turn,) = await turns(session)

    assert (turn.reason, turn.model) == ("end_turn", AUTO)


async def test_one_engine_serves_all_turns_of_a_chat_and_ends_with_it() -> None:
    engine = EchoEngine()
    async with echo_session(engine) as session:
        for number in range(3):
            await send(session, f"prompt {number}")
            await finish(session)
        closed_before = engine.closed
        await session.interrupt()

    assert (len(engine.chats), len(engine.requests), closed_before, engine.closed) == (1, 3, 0, 1)


async def test_a_failed_turn_leaves_the_engine_open_for_the_next() -> None:
    engine = EchoEngine()
    async with echo_session(engine) as session:
        await send(session, "fail")
        await finish(session)
        await send(session, "again")
        await finish(session)
        reasons = [turn.reason for turn in await turns(session)]

    assert (reasons, len(engine.chats), engine.closed) == (["error", "end_turn"], 1, 0)


async def test_a_cancelled_turn_keeps_its_text_and_the_engine() -> None:
    engine = EchoEngine()
    async with echo_session(engine) as session:
        await send(session, "wait")
        await engine.waiting.wait()
        result = await session.cancel(None, "pause")
        (turn,) = await turns(session)

    assert result.outcome == "cancelled"
    assert summarise(turn) == (
        "cancelled",
        [("user", "completed", "wait"), ("message", "cancelled", "wait ")],
    )
    assert engine.closed == 0


async def test_a_chat_that_is_purged_closes_its_engine() -> None:
    engine = EchoEngine()
    async with echo_session(engine) as session:
        await send(session, "wait")
        await engine.waiting.wait()
        await session.end_for_deletion()

    assert engine.closed == 1


async def test_a_chat_that_the_app_closes_closes_its_engine_and_opens_it_for_the_next_turn() -> None:
    engine = EchoEngine()
    async with echo_session(engine) as session:
        await send(session, "first")
        await finish(session)
        session.end_in_background()
        await engine.was_closed.wait()
        await send(session, "second")
        await finish(session)

    assert (len(engine.chats), engine.closed, len(engine.requests)) == (2, 1, 2)


async def test_a_running_turn_keeps_its_engine_when_the_app_closes_the_chat() -> None:
    engine = EchoEngine()
    async with echo_session(engine) as session:
        await send(session, "wait")
        await engine.waiting.wait()
        session.end_in_background()
        engine.release.set()
        await finish(session)
        (turn,) = await turns(session)

    assert (turn.reason, engine.closed) == ("end_turn", 0)


async def test_a_replaced_database_closes_the_engines_of_all_chats() -> None:
    engine = EchoEngine()
    registry = with_echo(engine)
    async with (
        open_store() as store,
        open_chats(store, NO_PROVIDER, engines=registry, engine="echo") as chats,
    ):
        session = (await chats.open(ChatAddress("chat"), create=True)).session
        await send(session, "Hello")
        await finish(session)
        chats.reset()
        await engine.was_closed.wait()

    assert (engine.closed, chats.sessions) == (1, [])


async def test_an_engine_is_closed_at_shutdown_also_when_the_disk_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = EchoEngine()
    async with echo_session(engine) as session:
        await send(session, "Hello")
        await finish(session)

        async def fail(reason: str) -> None:
            raise StorageFailed("full", "The disk is full")

        monkeypatch.setattr(session, "end_session", fail)
        with pytest.raises(StorageFailed):
            await session.interrupt()

    assert engine.closed == 1


async def test_a_prompt_that_cannot_steer_the_engine_waits_in_the_queue() -> None:
    engine = EchoEngine()
    async with echo_session(engine) as session:
        await send(session, "wait")
        await engine.waiting.wait()
        receipt = await send(session, "then this", "steer")
        engine.release.set()
        await finish(session)
        prompts = [[block.text for block in request.prompt] for request in engine.requests]

    assert (receipt.disposition, prompts) == ("queued", [["wait"], ["then this"]])


async def test_a_chat_changes_its_engine_between_turns() -> None:
    engine = EchoEngine()
    provider = ScriptedReplies([TextDelta("by the model"), Completion("end_turn")])
    async with open_session(provider, engines=with_echo(engine)) as session:
        await send(session, "first")
        await finish(session)
        await session.configure({"engine": "echo"})
        await send(session, "second")
        await finish(session)
        found = [(turn.engine, turn.items[-1].text) for turn in await turns(session)]
        started = [data["engine"] for _, data in await events(session, "turn.started")]
        await session.configure({"engine": None})

    assert found == [("native", "by the model"), ("echo", "second ")]
    assert (started, session.config.engine) == (["native", "echo"], "native")


@pytest.mark.parametrize("name", ["copilot", "Echo", "", "native,echo", "échо"])
async def test_a_chat_takes_no_engine_that_is_not_in_the_registry(name: str) -> None:
    async with (
        open_store() as store,
        open_chats(store, NO_PROVIDER, engines=with_echo(EchoEngine())) as chats,
    ):
        with pytest.raises(Refused) as refused:
            await chats.open(ChatAddress("chat"), create=True, changes={"engine": name})
        made = chats.sessions

    assert (refused.value.name, refused.value.params, made) == (
        "invalid_params",
        {"field": "set.engine", "expected": "one of native, echo"},
        [],
    )


async def test_a_chat_of_a_version_with_more_engines_refuses_prompts_and_says_what_to_set() -> None:
    async with open_store() as store:
        async with open_chats(store, NO_PROVIDER, engines=with_echo(EchoEngine())) as newer:
            await newer.open(ChatAddress("chat"), create=True, changes={"engine": "echo"})
        provider = ScriptedReplies([TextDelta("Hi"), Completion("end_turn")])
        async with open_chats(store, provider) as older:
            session = (await older.open(ChatAddress("chat"), create=True)).session
            with pytest.raises(Refused) as refused:
                await send(session, "lost?")
            recorded = await events(session, "prompt.accepted", "turn.started")
            await session.configure({"engine": "native"})
            await send(session, "Hello")
            await finish(session)
            (turn,) = await turns(session)

    assert (refused.value.name, refused.value.params) == (
        "precondition_failed",
        {"field": "engine", "expected": "one of native"},
    )
    assert recorded == []
    assert (turn.engine, turn.reason) == ("native", "end_turn")


async def test_a_provider_is_still_required_by_the_native_engine() -> None:
    failure = ProviderFailed("bad_key", "No such key")
    async with open_session(ScriptedReplies([failure]), engines=with_echo(EchoEngine())) as session:
        await send(session, "Hello")
        await finish(session)
        (turn,) = await turns(session)

    assert (turn.reason, turn.engine) == ("error", "native")
