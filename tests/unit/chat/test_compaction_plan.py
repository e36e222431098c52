"""What a compaction would do to a chat of a few turns, and what the next request then holds."""

from __future__ import annotations

import anyio
import pytest

from sidecar.chat.compaction.compactor import CompactionBudget, CompactionPlan, plan_compaction
from sidecar.chat.request.token_meter import meter_for
from sidecar.chat.sessions.session import Session
from sidecar.providers.base import AssistantMessage, Completion, TextDelta
from tests.unit.chat.memory import SETTINGS, finish, open_session, send, turns
from tests.unit.engines.sinks import Reply, ScriptedReplies, user


def replies(count: int) -> ScriptedReplies:
    answers: list[Reply] = [[TextDelta(f"answer {n}"), Completion("end_turn")] for n in range(count)]
    return ScriptedReplies(*answers)


async def talk(session: Session, count: int) -> None:
    for number in range(count):
        await send(session, f"prompt {number}")
        await finish(session)


async def plan(session: Session, total: int, *, force: bool) -> CompactionPlan | None:
    budget = CompactionBudget(meter_for("small", 1.0, rough_is_enough=True), total, 0, None, "small")
    with anyio.fail_after(5):
        return await plan_compaction(session, budget, force=force)


@pytest.mark.parametrize("count", [0, 1, SETTINGS.values.compaction.keep_turns])
async def test_a_chat_of_new_turns_only_is_not_compacted(count: int) -> None:
    async with open_session(replies(count)) as session:
        await talk(session, count)

        assert await plan(session, 8000, force=True) is None


async def test_a_chat_that_fits_is_compacted_only_when_it_is_asked_for() -> None:
    async with open_session(replies(5)) as session:
        await talk(session, 5)
        by_itself = await plan(session, 100_000, force=False)
        by_hand = await plan(session, 100_000, force=True)
        first, *_ = await turns(session)

    assert by_itself is None
    assert by_hand is not None
    assert [turn.id for turn in by_hand.oldest] == [first.id]
    assert by_hand.after < by_hand.before


async def test_a_request_holds_what_was_said_before_and_the_prompt_last() -> None:
    provider = replies(2)
    async with open_session(provider) as session:
        await talk(session, 2)

    assert provider.requests[1].messages == [user("prompt 0"), AssistantMessage("answer 0"), user("prompt 1")]
