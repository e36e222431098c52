"""A provider that fails: what is tried again, when, and with what."""

from __future__ import annotations

import msgspec
import pytest

from sidecar.engines import native
from sidecar.engines.native import LONGEST_WAIT_S
from sidecar.model.failures import ProviderFailed
from sidecar.providers.base import Completion, ModelRequest, ReplyPart, TextDelta, ThoughtDelta
from tests.unit.engines.sinks import ListSink, Reply, ScriptedReplies, run_turn, turn_request, user

END: Reply = [TextDelta("at last"), Completion("end_turn")]


def overloaded(retry_after_ms: int | None = 0) -> ProviderFailed:
    return ProviderFailed("overloaded", "Too much to do", retryable=True, retry_after_ms=retry_after_ms)


async def test_a_failure_that_passes_is_tried_again_when_the_provider_says() -> None:
    sink = ListSink()

    reason = await run_turn(turn_request(ScriptedReplies([overloaded(1)], END, retries=1)), sink)

    assert (reason, sink.facts[:3]) == (
        "end_turn",
        [("retrying", "overloaded", 1, 0.001), ("retry_started",), ("text", "at last")],
    )


async def test_each_wait_is_twice_the_one_before_give_or_take_a_quarter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(native, "FIRST_WAIT_S", 0.001)
    provider, sink = ScriptedReplies(*[[overloaded(None)]] * 4, END, retries=4), ListSink()

    await run_turn(turn_request(provider), sink)

    shares = [wait / (0.001 * 2**number) for number, (*_, wait) in enumerate(sink.named("retrying"))]
    assert len(shares) == 4
    assert all(0.75 <= share <= 1.25 for share in shares), shares


async def test_the_last_try_raises_what_went_wrong() -> None:
    provider, sink = ScriptedReplies(*[[overloaded()]] * 3, retries=2), ListSink()

    with pytest.raises(ProviderFailed, match="Too much to do"):
        await run_turn(turn_request(provider), sink)

    assert [fact[2] for fact in sink.named("retrying")] == [1, 2]
    assert len(provider.requests) == 3


FINAL: dict[str, ProviderFailed] = {
    "a bad key": ProviderFailed("bad_key", "No such key"),
    "a refused prompt": ProviderFailed("refused", "Not this one"),
    "a wait that nobody sits through": overloaded(int(LONGEST_WAIT_S * 1000) + 1),
}


@pytest.mark.parametrize("kind", FINAL)
async def test_what_does_not_pass_soon_is_not_tried_again(kind: str) -> None:
    provider, sink = ScriptedReplies([FINAL[kind]], END, retries=5), ListSink()

    with pytest.raises(ProviderFailed):
        await run_turn(turn_request(provider), sink)

    assert (sink.facts, len(provider.requests)) == ([], 1)


@pytest.mark.parametrize("shown", [TextDelta("Once"), ThoughtDelta("hm")])
async def test_nothing_is_tried_again_once_something_was_shown(shown: ReplyPart) -> None:
    provider, sink = ScriptedReplies([shown, overloaded()], END, retries=5), ListSink()

    with pytest.raises(ProviderFailed):
        await run_turn(turn_request(provider), sink)

    assert (len(sink.facts), len(provider.requests)) == (1, 1)


async def test_a_refused_request_is_sent_without_what_may_have_been_refused() -> None:
    async def reduce(request: ModelRequest, failure: ProviderFailed, is_final: bool) -> ModelRequest | None:
        assert failure.reason == "window"
        return msgspec.structs.replace(request, messages=[user("less")])

    provider = ScriptedReplies([ProviderFailed("window", "Too long")], END)
    sink = ListSink()

    reason = await run_turn(turn_request(provider, reduce=reduce), sink)

    assert (reason, sink.named("retrying")) == ("end_turn", [])
    assert [request.messages for request in provider.requests] == [[user("Hello")], [user("less")]]


async def test_a_request_with_nothing_left_to_leave_out_fails_as_it_stands() -> None:
    async def reduce(request: ModelRequest, failure: ProviderFailed, is_final: bool) -> ModelRequest | None:
        return None

    with pytest.raises(ProviderFailed, match="Too long"):
        await run_turn(
            turn_request(ScriptedReplies([ProviderFailed("window", "Too long")]), reduce=reduce), ListSink()
        )


async def test_a_request_is_not_reduced_once_something_was_shown() -> None:
    async def reduce(request: ModelRequest, failure: ProviderFailed, is_final: bool) -> ModelRequest | None:
        raise AssertionError("asked for less of what was answered")

    provider = ScriptedReplies([TextDelta("Once"), ProviderFailed("stream_cut", "Cut off")])

    with pytest.raises(ProviderFailed, match="Cut off"):
        await run_turn(turn_request(provider, reduce=reduce), ListSink())
