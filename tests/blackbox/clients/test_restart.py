"""A sidecar that dies is started again: nothing lost, nothing doubled, nothing run twice."""

from __future__ import annotations

import anyio
import pytest
from sidecar_client import Answer, ChatReplaced, RpcError, Sidecar, SidecarDied, link

from .fake import FakeSidecar, connected

pytestmark = pytest.mark.usefixtures("no_delays")


async def test_a_running_answer_sees_what_it_missed_and_how_the_turn_ended() -> None:
    fake = FakeSidecar()
    async with connected(fake) as app:
        answer = (await app.chat("tab-7")).prompt("Hello")
        fake_words = [await anext(answer), await anext(answer)]
        fake.say("one ")
        fake_words.append(await anext(answer))
        fake.record("message.delta", {"itemId": "m1", "text": "two"}, turn="t1")
        fake.record("turn.ended", {"reason": "interrupted"}, turn="t1")
        fake.die()
        rest = [event async for event in answer]
    assert "".join(event.text for event in fake_words + rest) == "one two"
    assert answer.reason == "interrupted"
    assert fake.calls("chat/open")[1] == {
        "sessionId": fake.session,
        "ifMissing": "fail",
        "after": {"epoch": "e1", "seq": 3},
    }
    assert app.restarts == 1


async def test_a_snapshot_in_the_place_of_a_replay_is_filled_from_the_journal() -> None:
    fake = FakeSidecar()
    fake.snapshot_only = True
    async with connected(fake) as app:
        answer = (await app.chat("tab-7")).prompt("Hello")
        await anext(answer)
        fake.record("message.delta", {"itemId": "m1", "text": "missed"}, turn="t1")
        fake.record("turn.ended", {"reason": "interrupted"}, turn="t1")
        fake.die()
        assert await answer.text() == "missed"


async def test_a_prompt_whose_acceptance_was_lost_is_sent_again_under_its_id() -> None:
    fake = FakeSidecar()
    async with connected(fake) as app:
        chat = await app.chat("tab-7")
        fake.silent = {"prompt/send"}
        async with anyio.create_task_group() as tasks:
            answer = chat.prompt("Hello", prompt_id="p1")
            texts: list[str] = []
            tasks.start_soon(_collect, answer, texts)
            await fake.asked_for("prompt/send")
            fake.prompts["p1"] = "t1"
            fake.record("prompt.accepted", {"promptId": "p1", "turnId": "t1"}, turn="t1")
            fake.record("message.delta", {"itemId": "m1", "text": "kept"}, turn="t1")
            fake.record("turn.ended", {"reason": "interrupted"}, turn="t1")
            fake.silent = set()
            fake.die()
    assert texts == ["kept"]
    assert [params["promptId"] for params in fake.calls("prompt/send")] == ["p1", "p1"]


async def test_a_chat_made_anew_ends_those_who_followed_the_old_one() -> None:
    fake = FakeSidecar()
    async with connected(fake) as app:
        chat = await app.chat("tab-7")
        answer = chat.prompt("Hello")
        await anext(answer)
        fake.journal, fake.epoch, fake.exists, fake.prompts = [], "e2", False, {}
        fake.die()
        with pytest.raises(ChatReplaced):
            await answer.text()
        assert (chat.status, chat.cursor.epoch, chat.cursor.seq) == ("created", "e2", 0)
        assert (await anext(chat.prompt("Again"))).type == "prompt.accepted"


async def test_a_prompt_that_only_the_new_chat_accepted_is_followed_there() -> None:
    fake = FakeSidecar()
    async with connected(fake) as app:
        chat = await app.chat("tab-7")
        fake.silent = {"prompt/send"}
        async with anyio.create_task_group() as tasks:
            texts: list[str] = []
            tasks.start_soon(_collect, chat.prompt("Hello"), texts)
            await fake.asked_for("prompt/send")
            fake.journal, fake.epoch, fake.exists, fake.silent = [], "e2", False, set()
            fake.die()
            await fake.asked_for("prompt/send", times=2)
            fake.say("fresh")
            fake.end()
    assert texts == ["fresh"]


async def test_a_deleted_chat_stays_deleted() -> None:
    fake = FakeSidecar()
    async with connected(fake) as app:
        events = (await app.chat("tab-7")).events()
        fake.errors["chat/open"] = {"code": -32009, "message": "deleted", "data": {"name": "deleted"}}
        fake.die()
        with pytest.raises(RpcError, match="deleted"):
            await anext(events)


async def test_what_may_not_be_repeated_fails_and_the_next_request_works() -> None:
    fake = FakeSidecar()
    fake.silent = {"chat/import"}
    async with connected(fake) as app:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_import_in_vain, app)
            await fake.asked_for("chat/import")
            fake.die()
        assert (await (await app.chat("tab-7")).rename("New")).title == "New"
    assert len(fake.calls("chat/import")) == 1


async def test_a_request_that_kills_every_process_is_not_sent_for_ever() -> None:
    fake = FakeSidecar()
    fake.silent = {"models/list"}
    async with connected(fake) as app, anyio.create_task_group() as tasks:
        tasks.start_soon(_list_models_in_vain, app)
        for times in range(1, link.MAX_SENDS + 1):
            await fake.asked_for("models/list", times)
            fake.die()


async def test_a_sidecar_that_cannot_be_started_again_fails_every_request() -> None:
    fake = FakeSidecar()
    async with connected(fake) as app:
        chat = await app.chat("tab-7")
        answer = chat.prompt("Hello")
        await anext(answer)
        fake.lives = -1
        fake.die()
        for attempt in (chat.rename("x"), answer.text()):
            with pytest.raises(SidecarDied, match="no such file"):
                await attempt


async def test_deaths_in_a_row_are_bounded() -> None:
    fake = FakeSidecar()
    async with connected(fake) as app:
        chat = await app.chat("tab-7")
        for number in range(len(link.RESTART_DELAYS) + 1):
            await chat.rename(f"title {number}")
            fake.die()
        with pytest.raises(SidecarDied, match="signal 9") as caught:
            await chat.rename("once more")
    assert (caught.value.exit_code, caught.value.stderr) == (-9, "last words")


async def _collect(answer: Answer, into: list[str]) -> None:
    into.append(await answer.text())


async def _import_in_vain(app: Sidecar) -> None:
    with pytest.raises(SidecarDied):
        await app.import_chat("tab-8", data="{}")


async def _list_models_in_vain(app: Sidecar) -> None:
    with pytest.raises(SidecarDied):
        await app.models()
