"""A session over a database in memory: what becomes of a prompt, and what the journal has of it."""

from __future__ import annotations

import anyio
import msgspec
import pytest
from sidecar_protocol.limits import MAX_QUEUED_PROMPTS

from sidecar.chat.sessions.arrivals import CancelResult, PromptReceipt
from sidecar.model.chats import PromptOverrides
from sidecar.model.failures import Failure, ProviderFailed, Refused
from sidecar.providers.base import AssistantMessage, Completion, TextDelta, ThoughtDelta, TokenUsage
from tests.unit.chat.memory import blocks, events, finish, open_session, send, summarise, turns
from tests.unit.engines.sinks import Reply, ScriptedReplies, user

END = Completion("end_turn")


def say(text: str) -> Reply:
    return [TextDelta(text), END]


def user_said(text: str) -> tuple[str, str, str]:
    return "user", "completed", text


def model_said(text: str, status: str = "completed") -> tuple[str, str, str]:
    return "message", status, text


async def test_a_prompt_is_committed_with_its_turn_and_answered() -> None:
    reply: Reply = [ThoughtDelta("hm"), TextDelta("Hi"), Completion("end_turn", TokenUsage(5, 1))]
    async with open_session(ScriptedReplies(reply)) as session:
        receipt = await send(session, "Hello")
        await finish(session)
        (turn,) = await turns(session)

    assert receipt == PromptReceipt("started", turn.id, 1)
    assert summarise(turn) == (
        "end_turn",
        [user_said("Hello"), ("thought", "completed", "hm"), model_said("Hi")],
    )


async def test_every_event_of_a_turn_is_journalled_in_order() -> None:
    async with open_session(ScriptedReplies(say("Hi"))) as session:
        await send(session, "Hello")
        await finish(session)
        found = [type for type, _ in await events(session)]

    assert found == [
        "prompt.accepted",
        "turn.started",
        "chat.state",
        "chat.renamed",
        "context.assembled",
        "message.started",
        "message.delta",
        "message.completed",
        "usage.updated",
        "turn.ended",
        "chat.state",
    ]


async def test_a_prompt_that_comes_during_a_turn_waits_for_its_end() -> None:
    release = anyio.Event()
    provider = ScriptedReplies([TextDelta("one"), release, END], say("two"))
    async with open_session(provider) as session:
        await send(session, "first")
        await provider.waiting.wait()
        receipt = await send(session, "second")
        waiting = list(session.queue)
        release.set()
        await finish(session)
        found = [summarise(turn) for turn in await turns(session)]

    assert receipt == PromptReceipt("queued", waiting[0].turn_id, receipt.seq, 1)
    assert found == [
        ("end_turn", [user_said("first"), model_said("one")]),
        ("end_turn", [user_said("second"), model_said("two")]),
    ]


async def test_a_prompt_that_steers_is_answered_by_the_running_turn() -> None:
    release = anyio.Event()
    provider = ScriptedReplies([TextDelta("one"), release, END], say("two"))
    async with open_session(provider) as session:
        started = await send(session, "first")
        await provider.waiting.wait()
        receipt = await send(session, "and this", "steer")
        release.set()
        await finish(session)
        (turn,) = await turns(session)

    assert (receipt.disposition, receipt.turn_id) == ("steered", started.turn_id)
    assert summarise(turn)[1] == [
        user_said("first"),
        model_said("one"),
        user_said("and this"),
        model_said("two"),
    ]
    assert provider.requests[1].messages[-2:] == [AssistantMessage("one"), user("and this")]


async def test_a_prompt_that_interrupts_cancels_the_turn_and_starts_its_own() -> None:
    provider = ScriptedReplies([TextDelta("one")], say("two"))
    async with open_session(provider) as session:
        await send(session, "first")
        await provider.waiting.wait()
        receipt = await send(session, "stop, this", "interrupt")
        await finish(session)
        found = [summarise(turn) for turn in await turns(session)]

    assert receipt.disposition == "started"
    assert found == [
        ("cancelled", [user_said("first"), model_said("one", "cancelled")]),
        ("end_turn", [user_said("stop, this"), model_said("two")]),
    ]


async def test_a_prompt_that_does_not_want_to_wait_is_refused_during_a_turn() -> None:
    provider = ScriptedReplies([TextDelta("one")])
    async with open_session(provider) as session:
        await send(session, "first")
        with pytest.raises(Refused) as refused:
            await send(session, "second", "reject")

    assert (refused.value.name, session.queue) == ("turn_in_progress", [])


@pytest.mark.parametrize("expected", ["t-of-yesterday", ""])
async def test_a_prompt_for_another_turn_than_the_running_one_is_refused(expected: str) -> None:
    async with open_session(ScriptedReplies([])) as session:
        running = await send(session, "first")
        with pytest.raises(Refused) as refused:
            await send(session, "second", "steer", expect_turn_id=expected)

    assert (refused.value.name, refused.value.params) == ("precondition_failed", {"turnId": running.turn_id})


async def test_a_prompt_that_is_sent_twice_is_answered_once() -> None:
    provider = ScriptedReplies(say("Hi"))
    async with open_session(provider) as session:
        first = await send(session, "Hello")
        while_running = await send(session, "Hello")
        await finish(session)
        afterwards = await send(session, "something else", id="Hello")
        found = await turns(session)

    assert while_running == afterwards == PromptReceipt("duplicate", first.turn_id, first.seq)
    assert (len(found), len(provider.requests)) == (1, 1)


async def test_a_waiting_prompt_that_is_sent_again_waits_once() -> None:
    async with open_session(ScriptedReplies([])) as session:
        await send(session, "first")
        queued = await send(session, "second")
        again = await send(session, "second")

    assert (again.disposition, again.turn_id, len(session.queue)) == ("duplicate", queued.turn_id, 1)


async def test_a_waiting_prompt_is_sent_as_it_was_edited_last() -> None:
    release = anyio.Event()
    provider = ScriptedReplies([release, END], say("two"))
    async with open_session(provider) as session:
        await send(session, "first")
        await send(session, "secnod")
        await session.edit("secnod", blocks("second"), revision=1)
        release.set()
        await finish(session)
        _, turn = await turns(session)

    assert summarise(turn) == ("end_turn", [user_said("second"), model_said("two")])


async def test_an_edit_of_an_older_revision_is_refused() -> None:
    async with open_session(ScriptedReplies([])) as session:
        await send(session, "first")
        await send(session, "second")
        await session.edit("second", blocks("changed"), revision=1)
        with pytest.raises(Refused) as refused:
            await session.edit("second", blocks("changed otherwise"), revision=1)

    assert (refused.value.name, refused.value.params) == ("precondition_failed", {"revision": 2})
    assert [prompt.content for prompt in session.queue] == [blocks("changed")]


@pytest.mark.parametrize("change", ["edit", "remove"])
async def test_a_prompt_that_does_not_wait_cannot_be_changed(change: str) -> None:
    async with open_session(ScriptedReplies([])) as session:
        await send(session, "running")
        with pytest.raises(Refused) as refused:
            await (
                session.edit("running", blocks("x"), None)
                if change == "edit"
                else session.remove("running", None)
            )

    assert (refused.value.name, refused.value.params) == ("not_found", {"promptId": "running"})


async def test_a_removed_prompt_is_never_answered() -> None:
    release = anyio.Event()
    provider = ScriptedReplies([release, END])
    async with open_session(provider) as session:
        await send(session, "first")
        await send(session, "second")
        await session.remove("second", None)
        release.set()
        await finish(session)
        found = await events(session, "prompt.removed")

    assert [data["promptId"] for _, data in found] == ["second"]
    assert len(provider.requests) == 1


async def test_a_queue_has_an_end() -> None:
    async with open_session(ScriptedReplies([])) as session:
        await send(session, "running")
        for number in range(MAX_QUEUED_PROMPTS):
            await send(session, f"waiting {number}")
        with pytest.raises(Refused) as refused:
            await send(session, "one too many")

    assert (refused.value.name, refused.value.retryable, len(session.queue)) == (
        "overloaded",
        True,
        MAX_QUEUED_PROMPTS,
    )


async def test_a_cancelled_turn_keeps_its_words_and_pauses_the_queue() -> None:
    provider = ScriptedReplies([TextDelta("half a sen")])
    async with open_session(provider) as session:
        await send(session, "first")
        await provider.waiting.wait()
        await send(session, "second")
        result = await session.cancel(None, "pause")
        (turn,) = await turns(session)
        ends = [data["reason"] for _, data in await events(session, "turn.ended")]

    assert (result.outcome, ends) == ("cancelled", ["cancelled"])
    assert summarise(turn) == ("cancelled", [user_said("first"), model_said("half a sen", "cancelled")])
    assert (session.chat.queue_paused, [prompt.id for prompt in session.queue]) == (True, ["second"])


async def test_a_paused_queue_goes_on_when_it_is_told_to() -> None:
    provider = ScriptedReplies([TextDelta("one")], say("two"))
    async with open_session(provider) as session:
        await send(session, "first")
        await provider.waiting.wait()
        await send(session, "second")
        await session.cancel(None, "pause")
        await session.resume_queue()
        await finish(session)
        found = [turn.reason for turn in await turns(session)]

    assert (found, session.queue) == (["cancelled", "end_turn"], [])


async def test_cancelling_can_clear_the_queue() -> None:
    provider = ScriptedReplies([TextDelta("one")])
    async with open_session(provider) as session:
        await send(session, "first")
        await provider.waiting.wait()
        await send(session, "second")
        await session.cancel(None, "clear")

    assert (session.queue, session.chat.queue_paused, len(provider.requests)) == ([], False, 1)


async def test_cancelling_a_turn_that_has_ended_says_where_it_ended() -> None:
    async with open_session(ScriptedReplies(say("Hi"))) as session:
        receipt = await send(session, "Hello")
        await finish(session)
        nothing = await session.cancel(None, "pause")
        ended = await session.cancel(receipt.turn_id, "pause")
        last_seq = session.recorder.last_seq

    assert (nothing, ended) == (CancelResult("nothing_running"), CancelResult("already_ended", last_seq - 1))


FAILURES: list[tuple[Failure, str]] = [
    (ProviderFailed("bad_key", "No such key"), "bad_key"),
    (ProviderFailed("stream_cut", "Cut off"), "stream_cut"),
    (ProviderFailed("quota", "Nothing left"), "quota"),
]


@pytest.mark.parametrize(("failure", "reason"), FAILURES, ids=[reason for _, reason in FAILURES])
async def test_a_turn_that_fails_says_why_and_pauses_the_queue(failure: ProviderFailed, reason: str) -> None:
    release = anyio.Event()
    provider = ScriptedReplies([release, failure])
    async with open_session(provider) as session:
        await send(session, "first")
        await provider.waiting.wait()
        await send(session, "second")
        release.set()
        await finish(session)
        (turn,) = await turns(session)

    assert turn.error
    assert (turn.reason, turn.error.data["reason"]) == ("error", reason)
    assert (session.chat.queue_paused, len(session.queue)) == (True, 1)


async def test_a_bug_ends_its_turn_and_does_not_tell_its_text() -> None:
    async with open_session(ScriptedReplies()) as session:  # it has no reply: an IndexError
        await send(session, "Hello")
        await finish(session)
        (turn,) = await turns(session)

    assert (turn.reason, msgspec.to_builtins(turn.error)) == (
        "error",
        {
            "message": "The turn failed inside the sidecar; its log says why",
            "data": {"name": "internal_error", "retryable": False},
        },
    )


async def test_a_retried_turn_stands_beside_the_one_it_replaces() -> None:
    provider = ScriptedReplies(say("one"), say("two"))
    async with open_session(provider) as session:
        first = await send(session, "Hello")
        await finish(session)
        again = await session.retry("retry", None, False, PromptOverrides())
        await finish(session)
        (turn,) = await turns(session)

    assert (turn.id, summarise(turn)) == (
        again.turn_id,
        ("end_turn", [user_said("Hello"), model_said("two")]),
    )
    assert turn.siblings == [first.turn_id]


async def test_the_first_words_are_the_title_until_the_user_names_the_chat() -> None:
    async with open_session(ScriptedReplies(say("Hi"))) as session:
        await send(session, "Why is the sky blue?")
        await finish(session)
        before = session.chat.title
        await session.rename("Skies")

    assert (before, session.chat.title, session.chat.title_by) == ("Why is the sky blue?", "Skies", "user")


async def test_a_title_of_the_models_does_not_displace_one_that_the_user_is_giving() -> None:
    async with open_session(ScriptedReplies(say("Hi"))) as session, anyio.create_task_group() as tasks:
        async with session.lock:
            tasks.start_soon(session.rename, "Mine")
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(session.rename, "Of the model", "sidecar")
            await anyio.wait_all_tasks_blocked()
        await anyio.wait_all_tasks_blocked()
        assert (session.chat.title, session.chat.title_by) == ("Mine", "user")


async def test_a_session_that_leaves_interrupts_its_turn_and_takes_no_prompt() -> None:
    provider = ScriptedReplies([TextDelta("one")])
    async with open_session(provider) as session:
        await send(session, "first")
        await provider.waiting.wait()
        await session.interrupt()
        with pytest.raises(Refused) as refused:
            await send(session, "second")
        (turn,) = await turns(session)

    assert refused.value.name == "shutting_down"
    assert summarise(turn) == ("interrupted", [user_said("first"), model_said("one", "interrupted")])
