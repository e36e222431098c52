"""What a model says, and how its turn ends."""

from __future__ import annotations

import anyio
import msgspec
import pytest

from sidecar.engines.base import TurnLimits
from sidecar.providers.base import (
    AssistantMessage,
    Completion,
    ModelRequest,
    StopReason,
    TextDelta,
    ThoughtDelta,
    TokenUsage,
    ToolCall,
    Verbatim,
)
from tests.support.patience import PATIENCE_S
from tests.unit.engines.sinks import (
    FunctionTool,
    ListSink,
    Reply,
    ScriptedReplies,
    run_turn,
    turn_request,
    user,
)

END = Completion("end_turn")
CALL: Reply = [ToolCall("c", "look", {}), Completion("tool_calls", TokenUsage(6, 4))]


async def test_pieces_reach_the_sink_one_by_one_and_in_order() -> None:
    sink = ListSink()
    said: Reply = [
        ThoughtDelta("hm"),
        TextDelta("Hel"),
        TextDelta("lo"),
        Completion("end_turn", TokenUsage(7, 2)),
    ]

    reason = await run_turn(turn_request(ScriptedReplies(said)), sink)

    assert (reason, sink.facts) == (
        "end_turn",
        [("thought", "hm"), ("text", "Hel"), ("text", "lo"), ("step_ended", 7, 2), ("before_stop", "Hello")],
    )


@pytest.mark.parametrize("stop", ["max_tokens", "refusal"])
async def test_a_reply_that_was_cut_or_refused_ends_the_turn_without_a_question(stop: StopReason) -> None:
    sink = ListSink()
    sink.continuations = [[user("go on")]]

    reason = await run_turn(turn_request(ScriptedReplies([TextDelta("a"), Completion(stop)])), sink)

    assert (reason, sink.facts) == (stop, [("text", "a"), ("step_ended", None, None)])


async def test_a_reply_goes_back_as_its_provider_spelled_it() -> None:
    verbatim = Verbatim("test", "test", [{"signed": True}])
    provider = ScriptedReplies([TextDelta("a"), Completion("end_turn", verbatim=verbatim)], [END])
    sink = ListSink()
    sink.steers = [[user("and?")]]

    await run_turn(turn_request(provider), sink)

    assert provider.requests[1].messages == [user("Hello"), AssistantMessage("a", [], verbatim), user("and?")]


async def test_what_the_user_adds_is_answered_in_the_same_turn() -> None:
    provider = ScriptedReplies([TextDelta("one"), END], [TextDelta("two"), END])
    sink = ListSink()
    sink.steers = [[user("more"), user("please")]]

    reason = await run_turn(turn_request(provider), sink)

    assert reason == "end_turn"
    assert sink.named("text", "before_stop") == [("text", "one"), ("text", "two"), ("before_stop", "two")]
    assert provider.requests[1].messages == [
        user("Hello"),
        AssistantMessage("one"),
        user("more"),
        user("please"),
    ]


async def test_what_keeps_the_model_going_comes_before_what_the_user_adds_meanwhile() -> None:
    provider = ScriptedReplies([TextDelta("done"), END], [END])
    sink = ListSink()
    sink.continuations = [[user("run the tests")]]
    sink.steers = [[], [user("quickly")]]

    await run_turn(turn_request(provider), sink)

    assert provider.requests[1].messages[2:] == [user("run the tests"), user("quickly")]


LIMITS = {
    "steps": (TurnLimits(steps=2), 2, "max_steps"),
    "tokens": (TurnLimits(steps=9, tokens=30), 3, "max_tokens"),
    "time": (TurnLimits(steps=9, seconds=0.0), 1, "max_steps"),
}


@pytest.mark.parametrize("limit", LIMITS)
async def test_a_limit_ends_a_turn_that_would_go_on(limit: str) -> None:
    limits, steps, reason = LIMITS[limit]
    provider, sink = ScriptedReplies(*[CALL] * 9), ListSink()

    ended = await run_turn(turn_request(provider, FunctionTool("look"), limits=limits), sink)

    assert (ended, len(provider.requests), sink.facts[-1]) == (reason, steps, ("limit_reached", limit))


async def test_a_turn_that_ends_by_itself_reaches_no_limit() -> None:
    sink = ListSink()

    reason = await run_turn(turn_request(ScriptedReplies([END]), limits=TurnLimits(steps=1)), sink)

    assert (reason, sink.named("limit_reached")) == ("end_turn", [])


async def test_every_request_but_the_first_is_made_to_fit() -> None:
    fitted: list[int] = []

    async def fit(request: ModelRequest) -> ModelRequest:
        fitted.append(len(request.messages))
        return msgspec.structs.replace(request, messages=[user(f"fit {len(fitted)}")])

    provider = ScriptedReplies(CALL, CALL, [END])

    await run_turn(turn_request(provider, FunctionTool("look"), fit_next_step=fit), ListSink())

    assert fitted == [3, 3]
    assert [request.messages for request in provider.requests] == [
        [user("Hello")],
        [user("fit 1")],
        [user("fit 2")],
    ]


async def test_a_cancelled_turn_keeps_what_was_said_and_asks_nothing_more() -> None:
    provider, sink = ScriptedReplies([TextDelta("a")]), ListSink()

    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_turn, turn_request(provider), sink)
            await provider.waiting.wait()
            tasks.cancel_scope.cancel()

    assert (sink.facts, len(provider.requests)) == ([("text", "a")], 1)
