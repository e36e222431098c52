"""A prompt's answer: it streams, it ends, and leaving it cancels the turn."""

from __future__ import annotations

import anyio
import pytest
from sidecar_client import RpcError, TurnFailed
from sidecar_client import answer as answer_module

from .fake import FakeSidecar, connected


async def test_a_prompt_streams_its_turn_up_to_the_end() -> None:
    fake = FakeSidecar()
    async with connected(fake) as app:
        chat = await app.chat("tab-7")
        seen = []
        async for event in chat.prompt("Hello"):
            seen.append((event.type, event.text))
            if event.type == "turn.started":
                fake.say("Hel")
                fake.emit("notice", {"code": "elsewhere"}, turn="t99")
                fake.say("lo")
                fake.end()
    assert seen == [
        ("prompt.accepted", ""),
        ("turn.started", ""),
        ("message.delta", "Hel"),
        ("message.delta", "lo"),
        ("turn.ended", ""),
    ]
    assert fake.calls("turn/cancel") == []


async def test_text_is_the_whole_answer_and_the_reason_is_kept() -> None:
    fake = FakeSidecar()
    async with connected(fake) as app, anyio.create_task_group() as tasks:
        answer = (await app.chat("tab-7")).prompt("Hello")
        tasks.start_soon(_speak, fake, ["a", "b"])
        assert (await answer.text(), answer.reason) == ("ab", "end_turn")


async def test_text_raises_the_error_that_ended_the_turn() -> None:
    fake = FakeSidecar()
    async with connected(fake) as app:
        answer = (await app.chat("tab-7")).prompt("Hello")
        await anext(answer)
        fake.say("par")
        error = {"code": -32013, "message": "No key", "data": {"name": "provider_error"}}
        fake.emit("turn.ended", {"reason": "error", "error": error}, "t1")
        with pytest.raises(TurnFailed, match="No key") as caught:
            await answer.text()
    assert caught.value.text == "par"


async def test_leaving_the_loop_cancels_the_turn() -> None:
    fake = FakeSidecar()
    async with connected(fake) as app:
        chat = await app.chat("tab-7")
        async for event in chat.prompt("Hello"):
            if event.type == "turn.started":
                break
        (params,) = await fake.asked_for("turn/cancel")
    assert params == {"sessionId": fake.session, "turnId": "t1", "queue": "keep"}


async def test_leaving_the_with_block_waits_for_the_cancellation() -> None:
    fake = FakeSidecar()
    async with connected(fake) as app:
        chat = await app.chat("tab-7")
        async with chat.prompt("Hello") as answer:
            await anext(answer)
        assert fake.journal[-1]["data"]["reason"] == "cancelled"


async def test_leaving_the_loop_and_the_app_at_once_still_cancels() -> None:
    fake = FakeSidecar()
    async with connected(fake) as app:
        async for _ in (await app.chat("tab-7")).prompt("Hello"):
            break
    methods = [name for name, _ in fake.asked]
    assert methods[-3:] == ["turn/cancel", "shutdown", "exit"]


async def test_cancelling_the_task_in_the_iteration_cancels_the_turn() -> None:
    fake = FakeSidecar()
    async with connected(fake) as app:
        answer = (await app.chat("tab-7")).prompt("Hello")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(answer.text)
            await fake.asked_for("prompt/send")
            tasks.cancel_scope.cancel()
        assert len(fake.calls("turn/cancel")) == 1


async def test_cancelling_the_task_in_the_loop_body_cancels_the_turn() -> None:
    fake = FakeSidecar()

    async def dwell() -> None:
        async for _ in chat.prompt("Hello"):
            reached.set()
            await anyio.sleep_forever()

    async with connected(fake) as app:
        chat, reached = await app.chat("tab-7"), anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(dwell)
            await reached.wait()
            tasks.cancel_scope.cancel()
        await fake.asked_for("turn/cancel")


async def test_a_prompt_left_before_it_was_accepted_is_withdrawn_once_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(answer_module, "WITHDRAW_SECONDS", 0.01)
    fake = FakeSidecar()
    fake.silent = {"prompt/send"}
    async with connected(fake) as app:
        answer = (await app.chat("tab-7")).prompt("Hello", prompt_id="p1")
        with anyio.move_on_after(0.01):
            await anext(answer)
        assert fake.calls("turn/cancel") == []
        fake.silent = set()
        fake._answer(3, "prompt/send", {"promptId": "p1"})
        await fake.asked_for("turn/cancel")


async def test_a_queued_prompt_that_is_left_leaves_the_queue() -> None:
    fake = FakeSidecar()
    fake.queueing = True
    async with connected(fake) as app:
        async with (await app.chat("tab-7")).prompt("Later", prompt_id="p1") as answer:
            assert (await anext(answer)).type == "prompt.queued"
        assert fake.calls("prompt/remove") == [{"sessionId": fake.session, "promptId": "p1"}]
        assert fake.calls("turn/cancel") == []


async def test_a_queued_prompt_that_somebody_removes_ends_its_answer() -> None:
    fake = FakeSidecar()
    fake.queueing = True
    async with connected(fake) as app:
        answer = (await app.chat("tab-7")).prompt("Later", prompt_id="p1")
        await anext(answer)
        fake.emit("prompt.removed", {"promptId": "p1", "turnId": "t1"})
        assert [event.type async for event in answer] == ["prompt.removed"]
        assert answer.reason is None


async def test_cancel_keeps_the_answer_open_to_its_end() -> None:
    fake = FakeSidecar()
    async with connected(fake) as app:
        answer = (await app.chat("tab-7")).prompt("Hello")
        await anext(answer)
        await answer.cancel()
        assert [event.type async for event in answer] == ["turn.started", "turn.ended"]
        assert answer.reason == "cancelled"


async def test_a_refused_prompt_raises_the_error_and_cancels_nothing() -> None:
    fake = FakeSidecar()
    fake.errors["prompt/send"] = {"code": -32004, "message": "busy", "data": {"name": "turn_in_progress"}}
    async with connected(fake) as app:
        with pytest.raises(RpcError, match="busy") as caught:
            await (await app.chat("tab-7")).prompt("Hello", delivery="reject").text()
    assert caught.value.name == "turn_in_progress"
    assert fake.calls("turn/cancel") == []


async def test_a_prompt_that_was_answered_before_is_told_again() -> None:
    fake = FakeSidecar()
    async with connected(fake) as app, anyio.create_task_group() as tasks:
        chat = await app.chat("tab-7")
        tasks.start_soon(_speak, fake, ["once"])
        first = await chat.prompt("Hello", prompt_id="p1").text()
        assert await chat.prompt("Hello", prompt_id="p1").text() == first == "once"


async def _speak(fake: FakeSidecar, words: list[str]) -> None:
    await fake.asked_for("prompt/send")
    for word in words:
        fake.say(word)
    fake.end()
