"""What a process that was killed leaves open is ended, once, by the next one that opens the chat."""

from __future__ import annotations

import anyio

from sidecar.chat.journal.identity import ChatAddress
from sidecar.chat.sessions.chats import OpenedChat
from sidecar.model.content import Turn
from sidecar.providers.base import Completion, TextDelta
from sidecar.store import Store
from tests.unit.chat.memory import HEIR, events, finish, open_chats, open_store, send, summarise, turns
from tests.unit.engines.sinks import ScriptedReplies

CHAT = ChatAddress("chat")


async def kill_during_a_turn(store: Store, *waiting: str) -> None:
    """A process starts a turn, commits what it has said, and is gone."""
    provider = ScriptedReplies([TextDelta("half a sen")])
    async with open_chats(store, provider) as chats:
        session = (await chats.open(CHAT, create=True)).session
        await send(session, "first")
        await provider.waiting.wait()
        for text in waiting:
            await send(session, text)
        await session.recorder.wait_flushed()
    store.me = HEIR


async def test_the_turn_of_a_dead_process_ends_as_interrupted_and_keeps_its_words() -> None:
    async with open_store() as store:
        await kill_during_a_turn(store)
        async with open_chats(store, ScriptedReplies()) as chats:
            opened = await chats.open(CHAT, create=True)
            (turn,) = await turns(opened.session)

    assert closed(opened) == ([turn.id], [turn.items[1].id])
    assert summarise(turn) == (
        "interrupted",
        [("user", "completed", "first"), ("message", "interrupted", "half a sen")],
    )


async def test_a_chat_is_closed_once() -> None:
    async with open_store() as store:
        await kill_during_a_turn(store)
        async with open_chats(store, ScriptedReplies()) as chats:
            first = await chats.open(CHAT, create=True)
            second = await chats.open(CHAT, create=True)
            ends = await events(first.session, "turn.ended")

    assert (second.closed, len(ends)) == (None, 1)


async def test_waiting_prompts_of_a_dead_process_wait_for_a_person() -> None:
    async with open_store() as store:
        await kill_during_a_turn(store, "second")
        async with open_chats(store, ScriptedReplies()) as chats:
            session = (await chats.open(CHAT, create=True)).session
            paused = await events(session, "queue.updated")

    assert paused == [("queue.updated", {"paused": True, "reason": "restart"})]
    assert [prompt.id for prompt in session.queue] == ["second"]


async def test_a_prompt_closes_what_a_dead_process_left_before_it_starts() -> None:
    provider = ScriptedReplies([TextDelta("again"), Completion("end_turn")])
    async with open_store() as store:
        await kill_during_a_turn(store)
        async with open_chats(store, provider) as chats:
            session = await chats.session_for_prompt(CHAT)
            await send(session, "second")
            await finish(session)
            found = await turns(session)

    assert reasons(found) == ["interrupted", "end_turn"]


async def test_a_prompt_of_a_dead_process_is_known_to_its_heir() -> None:
    async with open_store() as store:
        await kill_during_a_turn(store)
        async with open_chats(store, ScriptedReplies()) as chats:
            session = (await chats.open(CHAT, create=True)).session
            again = await send(session, "first")

    assert again.disposition == "duplicate"


async def test_a_chat_without_a_turn_needs_no_closing() -> None:
    async with open_store() as store:
        async with open_chats(store, ScriptedReplies([TextDelta("Hi"), Completion("end_turn")])) as chats:
            session = (await chats.open(CHAT, create=True)).session
            await send(session, "Hello")
            await finish(session)
        store.me = HEIR
        async with open_chats(store, ScriptedReplies()) as chats:
            opened = await chats.open(CHAT, create=True)

    assert opened.closed is None


async def test_a_turn_of_a_living_process_is_left_alone() -> None:
    release = anyio.Event()
    provider = ScriptedReplies([TextDelta("a"), release, Completion("end_turn")])
    async with open_store(others_live=True) as store, open_chats(store, provider) as chats:
        session = (await chats.open(CHAT, create=True)).session
        await send(session, "first")
        await provider.waiting.wait()
        store.me = HEIR
        async with open_chats(store, ScriptedReplies()) as others:
            opened = await others.open(CHAT, create=True)
            ends = await events(opened.session, "turn.ended")

    assert (opened.closed, ends) == (None, [])


def closed(opened: OpenedChat) -> tuple[list[str], list[str]]:
    """The turns and items that opening a chat has ended."""
    assert opened.closed is not None
    return opened.closed.turns, opened.closed.items


def reasons(found: list[Turn]) -> list[str | None]:
    return [turn.reason for turn in found]
