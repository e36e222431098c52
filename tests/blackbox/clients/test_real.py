"""The client against the real sidecar: streaming, cancelling, dying in the middle, resuming."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from sidecar_client import Answer, Chat, Event, RpcError, Sidecar, SidecarDied, Turn, TurnFailed
from sidecar_client.feed import Subscription

from tests.support.patience import PATIENCE_S

WORDS = "".join(f"word{number} " for number in range(400))


@asynccontextmanager
async def real(folder: Path, model: str = "echo:") -> AsyncIterator[Sidecar]:
    home = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "config")}
    with anyio.fail_after(PATIENCE_S):
        async with Sidecar.spawn(data_dir=folder / "data", model=model, env=home) as app:
            yield app


@pytest.fixture
def slow(tmp_path: Path) -> str:
    """A model that takes its time, and one that fails when asked to."""
    script = tmp_path / "script.json"
    replies = [
        {"match": "fail", "steps": [{"text": "half"}, {"error": {"reason": "refused"}}]},
        {"match": "", "steps": [{"text": WORDS, "delayMs": 3}]},
    ]
    script.write_text(json.dumps({"replies": replies}))
    return f"scripted:{script}"


async def test_a_prompt_streams_its_words_back(tmp_path: Path) -> None:
    async with real(tmp_path) as app:
        chat = await app.chat("tab-7")
        types = [event.type async for event in chat.prompt("Hello there, **world**")]
        turns = (await chat.history()).turns
    assert (chat.session_id, chat.status, chat.access) == ("sc-tab-7-bf133f99bd6e5d06", "created", "writer")
    assert (types[-1], types.count("message.delta") > 0) == ("turn.ended", True)
    assert [said(turn) for turn in turns] == ["Hello there, **world**"]


async def test_what_was_said_is_there_in_the_next_process(tmp_path: Path) -> None:
    async with real(tmp_path) as app:
        await (await app.chat("tab-7")).prompt("Remember me").text()
    async with real(tmp_path) as app:
        chat = await app.chat("tab-7")
        assert (chat.status, [said(turn) for turn in chat.turns]) == ("resumed", ["Remember me"])


async def test_leaving_the_loop_ends_the_turn_as_cancelled(tmp_path: Path, slow: str) -> None:
    async with real(tmp_path, slow) as app:
        chat = await app.chat("tab-7")
        async with chat.prompt("Go") as answer:
            await _words(answer, 3)
        (turn,) = (await chat.history()).turns
    assert (turn.status, turn.reason) == ("cancelled", "cancelled")
    assert WORDS.startswith(said(turn))


async def test_a_failed_turn_keeps_what_was_said(tmp_path: Path, slow: str) -> None:
    async with real(tmp_path, slow) as app:
        with pytest.raises(TurnFailed) as caught:
            await (await app.chat("tab-7")).prompt("fail").text()
    assert (caught.value.text, caught.value.error.data["reason"]) == ("half", "refused")


async def test_killed_in_the_middle_nothing_is_lost_and_nothing_doubled(tmp_path: Path, slow: str) -> None:
    async with real(tmp_path, slow) as app:
        chat = await app.chat("tab-7")
        everything = chat.events(after=0)
        answer = chat.prompt("Go")
        text = await _words(answer, 40)
        kill(app)
        text += "".join([event.text async for event in answer if event.type == "message.delta"])
        (turn,) = (await chat.history()).turns
        seqs = [(event.first, event.seq) for event in await _up_to(everything, chat.cursor.seq)]
    assert (answer.reason, turn.status, app.restarts) == ("interrupted", "interrupted", 1)
    assert text == said(turn)
    assert WORDS.startswith(text)
    assert [first for first, _ in seqs] == [1] + [last + 1 for _, last in seqs[:-1]]


async def test_killed_while_idle_the_next_prompt_is_answered(tmp_path: Path) -> None:
    async with real(tmp_path) as app:
        chat = await app.chat("tab-7")
        await chat.prompt("one").text()
        kill(app)
        assert await chat.prompt("two").text() == "two"
        assert [said(turn) for turn in (await chat.history()).turns] == ["one", "two"]


async def test_an_interrupted_answer_goes_on_from_where_it_was(tmp_path: Path, slow: str) -> None:
    async with real(tmp_path, slow) as app:
        chat = await app.chat("tab-7")
        answer = chat.prompt("Go")
        await _words(answer, 5)
        kill(app)
        assert [event async for event in answer][-1].reason == "interrupted"
        assert (await anext(chat.retry(start="here"))).turn_id is not None


async def test_killed_again_and_again_the_journal_stays_whole(tmp_path: Path, slow: str) -> None:
    async with real(tmp_path, slow) as app:
        chat = await app.chat("tab-7")
        texts = [await _killed_after(app, chat, count) for count in (1, 7, 30)]
        turns = (await chat.history()).turns
    assert [said(turn) for turn in turns] == texts


async def test_a_chat_that_is_not_there_is_an_error_by_name(tmp_path: Path) -> None:
    async with real(tmp_path) as app:
        with pytest.raises(RpcError) as caught:
            await app.chat("nobody", if_missing="fail")
    assert caught.value.name == "not_found"


async def test_a_program_that_refuses_its_options_is_quoted() -> None:
    with pytest.raises(SidecarDied, match="exit code 2") as caught:
        async with Sidecar.spawn([sys.executable, "-m", "sidecar", "serve", "--framing", "smoke"]):
            pass
    assert "--framing" in caught.value.stderr


async def test_the_small_requests_work(tmp_path: Path) -> None:
    async with real(tmp_path) as app:
        chat = await app.chat("tab-7", config={"meta": {"colour": "green"}})
        await chat.prompt("Find the needle").text()
        assert (await chat.rename("Hay")).title == "Hay"
        assert (await chat.configure(model="echo:"))["model"] == "echo:"
        assert [item.title for item in (await app.chats()).items] == ["Hay"]
        assert {hit.chat_id for hit in (await app.search("needle")).items} == {"tab-7"}
        assert "echo:" in [model.id for model in await app.models()]
        assert (await app.settings()).values["model"].value == "echo:"
        assert (await chat.queue()).items == []
        exported = await chat.export()
        imported = await app.import_chat("copy", data=exported.data or "")
        assert (exported.turns, imported.turns) == (1, 1)
        assert (await chat.archive()).archived
        assert (await chat.cancel()).outcome == "nothing_running"
        assert (await app.doctor()).status in ("ok", "warn")


def said(turn: Turn) -> str:
    return "".join(item.text or "" for item in turn.items if item.type == "message")


def kill(app: Sidecar) -> None:
    assert app.pid is not None
    os.kill(app.pid, signal.SIGKILL)


async def _words(answer: Answer, count: int) -> str:
    """The text of the first deltas."""
    parts: list[str] = []
    while len(parts) < count:
        event = await anext(answer)
        if event.type == "message.delta":
            parts.append(event.text)
    return "".join(parts)


async def _killed_after(app: Sidecar, chat: Chat, count: int) -> str:
    answer = chat.prompt("Go")
    text = await _words(answer, count)
    kill(app)
    return text + "".join([event.text async for event in answer if event.type == "message.delta"])


async def _up_to(events: Subscription, last: int) -> list[Event]:
    found: list[Event] = []
    while events.last < last:
        found.append(await anext(events))
    return found


async def test_a_chat_knows_whether_another_process_writes_to_it(tmp_path: Path, slow: str) -> None:
    changed = anyio.Event()
    async with real(tmp_path, slow) as owner:
        answer = (await owner.chat("tab-7")).prompt("Count")
        await anext(aiter(answer))
        home = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}
        async with Sidecar.spawn(
            data_dir=tmp_path / "data",
            model=slow,
            env=home,
            status=lambda status: changed.set() if status.type == "access" else None,
        ) as second:
            chat = await second.chat("tab-7")
            before = chat.access
            await chat.cancel()
            await changed.wait()
            assert (before, chat.access) == ("reader", "writer")


async def test_the_chats_of_another_program_are_imported(tmp_path: Path) -> None:
    said = {"type": "user", "uuid": "a", "message": {"role": "user", "content": "How wide is the mill?"}}
    (tmp_path / "one.jsonl").write_text(json.dumps(said) + "\n")
    async with Sidecar.spawn(data_dir=tmp_path / "data", model="echo:") as app:
        planned = await app.import_history("claude-code", path=str(tmp_path), dry_run=True)
        done = await app.import_history("claude-code", path=str(tmp_path))
        chat = await app.chat("claude-code:one", if_missing="fail")

    assert (planned.new, planned.dry_run, done.new) == (1, True, 1)
    assert chat.turns[0].items[0].text == "How wide is the mill?"
