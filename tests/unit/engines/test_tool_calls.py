"""The tool calls of a step: concurrent or alone, and what the model gets of them."""

from __future__ import annotations

import anyio
import pytest

from sidecar.engines.repeats import MAX_REPEATS
from sidecar.engines.results import tool_result
from sidecar.model.failures import StorageFailed
from sidecar.providers.base import AssistantMessage, Completion, ReplyPart, TextDelta, ToolCall
from sidecar.tools.base import ToolError, ToolOutcome
from tests.unit.engines.sinks import (
    FunctionTool,
    ListSink,
    Reply,
    ScriptedReplies,
    run_turn,
    turn_request,
    user,
)

END: Reply = [Completion("end_turn")]


def calls(*names: str) -> Reply:
    """One step that calls these tools; the ids are a, b, c."""
    made: list[ReplyPart] = [ToolCall(id, name, {}) for id, name in zip("abc", names, strict=False)]
    return [*made, Completion("tool_calls")]


def refuse() -> None:
    raise ToolError("There is no such file.")


def crash() -> None:
    raise RuntimeError("secret details")


async def test_results_go_back_in_the_order_of_the_calls() -> None:
    second_done = anyio.Event()

    async def first() -> ToolOutcome:
        await second_done.wait()
        return ToolOutcome("first")

    async def second() -> ToolOutcome:
        second_done.set()
        return ToolOutcome("second")

    provider, sink = ScriptedReplies([TextDelta("I look"), *calls("one", "two")], END), ListSink()

    await run_turn(turn_request(provider, FunctionTool("one", first), FunctionTool("two", second)), sink)

    assert sink.named("tool_ended") == [("tool_ended", "b", "second"), ("tool_ended", "a", "first")]
    assert provider.requests[1].messages == [
        user("Hello"),
        AssistantMessage("I look", [ToolCall("a", "one", {}), ToolCall("b", "two", {})]),
        tool_result("secret", "a", "one", "first"),
        tool_result("secret", "b", "two", "second"),
    ]


async def test_a_tool_that_runs_alone_waits_for_those_before_and_holds_those_after() -> None:
    sink = ListSink()
    tools = FunctionTool("look"), FunctionTool("write", kind="edit", runs_alone=True)

    await run_turn(turn_request(ScriptedReplies(calls("look", "write", "look"), END), *tools), sink)

    assert sink.named("tool_started", "tool_ended") == [
        ("tool_started", "a", "look()", "read"),
        ("tool_ended", "a", "look"),
        ("tool_started", "b", "write()", "edit"),
        ("tool_ended", "b", "write"),
        ("tool_started", "c", "look()", "read"),
        ("tool_ended", "c", "look"),
    ]


async def test_two_tools_that_run_alone_do_not_run_together() -> None:
    sink = ListSink()
    write = FunctionTool("write", kind="edit", runs_alone=True)

    await run_turn(turn_request(ScriptedReplies(calls("write", "write"), END), write), sink)

    assert [fact[:2] for fact in sink.named("tool_started", "tool_ended")] == [
        ("tool_started", "a"),
        ("tool_ended", "a"),
        ("tool_started", "b"),
        ("tool_ended", "b"),
    ]


async def test_an_unknown_tool_is_named_with_the_nearest_one() -> None:
    provider, sink = ScriptedReplies(calls("looc"), END), ListSink()

    await run_turn(turn_request(provider, FunctionTool("look")), sink)

    assert sink.named("tool_started", "tool_ended") == [
        ("tool_started", "a", "looc", "other"),
        ("tool_ended", "a", "There is no tool called 'looc'. Did you mean look?"),
    ]


async def test_the_same_call_with_the_same_result_is_not_run_for_ever() -> None:
    ran: list[None] = []

    async def run() -> ToolOutcome:
        ran.append(None)
        return ToolOutcome("same")

    provider = ScriptedReplies(*[calls("look")] * (MAX_REPEATS + 2), END)

    await run_turn(turn_request(provider, FunctionTool("look", run)), ListSink())

    assert len(ran) == MAX_REPEATS


async def test_a_change_makes_every_call_worth_running_again() -> None:
    ran: list[None] = []

    async def run() -> ToolOutcome:
        ran.append(None)
        return ToolOutcome("same")

    tools = FunctionTool("look", run), FunctionTool("write", kind="edit", runs_alone=True)
    looks = [calls("look")] * MAX_REPEATS

    await run_turn(turn_request(ScriptedReplies(*looks, calls("write"), *looks, END), *tools), ListSink())

    assert len(ran) == 2 * MAX_REPEATS


async def test_a_user_who_stops_ends_the_turn_after_the_calls_at_hand() -> None:
    provider, sink = ScriptedReplies(calls("write", "write")), ListSink()
    sink.stops_after = "a"

    reason = await run_turn(turn_request(provider, FunctionTool("write", runs_alone=True)), sink)

    assert (reason, sink.named("tool_started", "tool_ended"), len(provider.requests)) == (
        "cancelled",
        [("tool_started", "a", "write()", "read"), ("tool_ended", "a", "write")],
        1,
    )


async def test_a_result_that_cannot_be_recorded_ends_the_turn_once_its_group_has_ended() -> None:
    sink = ListSink()
    sink.tool_ended_error = StorageFailed("full", "The disk is full")

    with pytest.raises(StorageFailed, match="The disk is full"):
        await run_turn(turn_request(ScriptedReplies(calls("look", "look")), FunctionTool("look")), sink)

    assert [fact[1] for fact in sink.named("tool_ended")] == ["a", "b"]
