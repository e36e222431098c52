"""The client replays the recorded conversations: `sidecar-conformance --play` is the sidecar, and compares."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from anyio.abc import TaskGroup
from sidecar_client import Handlers, RpcError, Sidecar, SidecarDied
from sidecar_client.events import decode
from sidecar_client.feed import Subscription
from sidecar_client.process import ServerProcess
from sidecar_protocol.catalog import METHODS
from sidecar_protocol.errors import CODES
from sidecar_protocol.messages import ChatOpenParams, ChatOpenResult
from sidecar_protocol.peer import Call

from tests.support.patience import PATIENCE_S

Json = dict[str, Any]

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "protocol" / "transcripts"
KIT = ROOT / "clients" / "conformance"


def processes() -> Iterator[Any]:
    from tests.unit.protocol.transcripts import load

    for path in sorted(FOLDER.glob("*.jsonl")):
        lines = load(path)
        starts = [number for number, line in enumerate(lines) if line["from"] == "setup"]
        for number, (start, end) in enumerate(zip(starts, [*starts[1:], len(lines)], strict=True), 1):
            sent = [line for line in lines[start:end] if _is_message(line.get("message"))]
            yield pytest.param(path.stem, number, sent, id=f"{path.stem} {number}")


def _is_message(message: Any) -> bool:
    """Whether a client library can send or get it."""
    if not isinstance(message, dict):
        return False
    return "method" not in message or isinstance(message.get("params", {}), dict)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("name", "number", "lines"), list(processes()))
async def test_the_client_follows_the_transcript(name: str, number: int, lines: list[Json]) -> None:
    said: list[str] = []
    command = [sys.executable, "-m", "sidecar_conformance", "--play", name, "--process", str(number)]

    async def launch() -> ServerProcess:
        return await ServerProcess.start(command, {**os.environ, "PYTHONPATH": str(KIT)}, said.append)

    conversation = Conversation(lines)
    with anyio.fail_after(PATIENCE_S):
        async with Sidecar.connect(launch, handlers=conversation) as app:
            await conversation.follow(app)
    assert said == []


class Question:
    """A request of the sidecar: when it came, and what the transcript answers."""

    def __init__(self, message: Json) -> None:
        self.id = message["id"]
        self.params = message["params"]
        self.arrived = anyio.Event()
        self.over = anyio.Event()
        self.answered = anyio.Event()
        self.answer: Any = None


class Conversation(Handlers):
    """One process of a transcript from the answer to `initialize` on, as the app that answers its requests."""

    def __init__(self, lines: list[Json]) -> None:
        accepted = [line["message"]["id"] for line in lines if "result" in line["message"]]
        greetings = [
            number
            for number, line in enumerate(lines)
            if line["message"].get("method") == "initialize" and line["message"]["id"] in accepted
        ]
        hello = lines[greetings[0]]["message"]["params"] if greetings else {}
        super().__init__()
        self._lines = lines[greetings[0] + 1 if greetings else 0 :]
        self._hello = hello
        self._questions = [
            Question(line["message"])
            for line in self._lines
            if line["from"] == "sidecar" and {"method", "id"} <= line["message"].keys()
        ]
        self._next = iter(self._questions)
        self._followed: dict[str, tuple[Subscription, ChatOpenResult]] = {}

    async def serve(self, call: Call) -> Any:
        question = next(self._next)
        assert call.params == question.params
        question.arrived.set()
        try:
            await question.answered.wait()
        finally:
            question.over.set()
        if isinstance(question.answer, RpcError):
            raise question.answer
        return question.answer

    async def follow(self, app: Sidecar) -> None:
        scopes: dict[Any, anyio.CancelScope] = {}
        async with anyio.create_task_group() as tasks:
            for line in self._lines:
                if line["from"] == "client" and not await self._send(app, line["message"], tasks, scopes):
                    break
                await _let_it_be_sent()
        for events, opened in self._followed.values():
            await self._compare_events(events, opened)

    async def _send(self, app: Sidecar, message: Json, tasks: TaskGroup, scopes: dict[Any, Any]) -> bool:
        method = message.get("method")
        if method == "$/cancelRequest":
            scopes[message["params"]["id"]].cancel()
        elif method is None:
            await self._answer(message)
        elif "id" in message:
            scopes[message["id"]] = anyio.CancelScope()
            tasks.start_soon(self._compare, app, message, scopes[message["id"]])
        return method != "exit"

    async def _answer(self, message: Json) -> None:
        question = next(each for each in self._questions if each.id == message["id"])
        await question.arrived.wait()
        error = message.get("error")
        if error is None or error["code"] != CODES["request_cancelled"]:
            question.answer = (
                message["result"] if error is None else RpcError(error["code"], error["message"])
            )
            question.answered.set()
        await question.over.wait()

    async def _compare(self, app: Sidecar, message: Json, scope: anyio.CancelScope) -> None:
        answers = [
            line["message"]
            for line in self._lines
            if line["from"] == "sidecar" and "method" not in line["message"]
        ]
        expected = next(one for one in answers if one["id"] == message["id"])
        with scope, suppress(SidecarDied):
            if "error" in expected:
                with pytest.raises(RpcError) as refused:
                    await app._link.request(message["method"], message.get("params", {}))
                assert refused.value.to_wire() == expected["error"]
                return
            result = await app._link.request(message["method"], message.get("params", {}))
            assert result == expected["result"]
            assert message["method"] in METHODS
            if message["method"] in ("chat/open", "chat/fork"):
                self._follow_chat(app, result)

    def _follow_chat(self, app: Sidecar, result: Json) -> None:
        opened = msgspec.convert(result, ChatOpenResult)
        chat = app.adopt(ChatOpenParams(session_id=opened.session_id), opened)
        if opened.session_id not in self._followed:
            self._followed[opened.session_id] = chat.events(opened.as_of.seq), opened

    async def _compare_events(self, events: Subscription, opened: ChatOpenResult) -> None:
        """The events after the chat was opened, in order; a replay of an earlier cursor is of no later ones."""
        last = opened.as_of.seq
        for line in self._lines:
            params = line["message"].get("params", {})
            if line["message"].get("method") != "event" or params["sessionId"] != opened.session_id:
                continue
            if params["epoch"] == opened.as_of.epoch and params.get("from", params["seq"]) == last + 1:
                last = params["seq"]
                assert await anext(events) == decode(params)
        events.close()


async def _let_it_be_sent() -> None:
    """Requests keep the order of the lines: each is written in the first step of its task."""
    for _ in range(5):
        await anyio.lowlevel.checkpoint()
