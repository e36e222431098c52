"""The frontend over chats in memory: no process and no pipe, and frames kept in a list."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import msgspec
import pytest

from sidecar.chat.sessions.chats import Chats
from sidecar.frontends.acp.frontend import AcpFrontend
from sidecar.frontends.base import EarlyAnswers
from sidecar.frontends.registry import FrontendConnection
from sidecar.model.failures import Failure
from sidecar.providers.base import Completion, ModelEntry, TextDelta
from sidecar.rpc.wire import MessageWriter
from tests.unit.chat.memory import open_chats, open_store
from tests.unit.engines.sinks import ScriptedReplies

Json = dict[str, Any]


class Frames:
    """Keeps what would go to the editor, and wakes those who wait for it."""

    def __init__(self) -> None:
        self.all: list[Json] = []
        self._changed = anyio.Event()

    def send(self, frame: bytes) -> None:
        self.all.append(msgspec.json.decode(frame))
        self._changed.set()
        self._changed = anyio.Event()

    async def wait_for_space(self) -> None:
        return

    async def wait_update(self, kind: str) -> None:
        while kind not in [
            frame["params"]["update"]["sessionUpdate"] for frame in self.all if "method" in frame
        ]:
            await self._changed.wait()

    async def answer(self, id: int) -> Json:
        while True:
            for frame in self.all:
                if frame.get("id") == id and "method" not in frame:
                    return frame
            await self._changed.wait()


class FakeHost:
    def __init__(self, chats: Chats) -> None:
        self.chats = chats
        self.clients: list[str] = []
        self.models_fail = False

    @property
    def system(self) -> FakeHost:
        return self

    async def opened_chats(self) -> Chats:
        return self.chats

    def client_connected(self, name: str, pid: int | None) -> None:
        self.clients.append(name)

    async def models(self, provider: str | None) -> list[ModelEntry]:
        if self.models_fail:
            raise Failure("internal_error", "No models")
        return [ModelEntry("test:small", "Small", "test", efforts=("low", "high"))]


class Box:
    """A frontend, and an editor that sends it frames."""

    def __init__(self, chats: Chats) -> None:
        self.frames = Frames()
        self.host = FakeHost(chats)
        greeting = {"protocolVersion": 1, "clientInfo": {"name": "unit", "version": "2"}}
        wire = cast("MessageWriter", self.frames)
        made: Any = FrontendConnection(
            wire, chats.services.tasks, cast("Any", self.host), cast("EarlyAnswers", None), greeting
        )
        self.frontend = AcpFrontend(made)
        self._id = 0

    def send(self, method: str, **params: Any) -> int:
        self._id += 1
        message = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}
        self.frontend.receive(msgspec.json.encode(message))
        return self._id

    def notify(self, method: str, **params: Any) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        self.frontend.receive(msgspec.json.encode(message))

    async def ask(self, method: str, **params: Any) -> Json:
        frame = await self.frames.answer(self.send(method, **params))
        assert "result" in frame, frame
        return cast("Json", frame["result"])

    async def refused(self, method: str, **params: Any) -> Json:
        frame = await self.frames.answer(self.send(method, **params))
        assert "error" in frame, frame
        return cast("Json", frame["error"])

    async def new(self, chat: str = "c") -> str:
        own = {"sidecar": {"chatId": chat}}
        return str((await self.ask("session/new", cwd="/", mcpServers=[], _meta=own))["sessionId"])


def text(words: str) -> list[Json]:
    return [{"type": "text", "text": words}]


@asynccontextmanager
async def box(*replies: list[Any]) -> AsyncIterator[Box]:
    async with open_store() as store, open_chats(store, ScriptedReplies(*replies)) as chats:
        yield Box(chats)


ANSWER = [TextDelta("Hi"), Completion("end_turn")]


async def test_the_greeting_of_the_bootstrap_counts_as_initialize() -> None:
    async with box() as made:
        await made.new()

        assert made.host.clients == ["unit 2"]


async def test_the_answer_is_before_every_update_and_after_those_of_its_turn() -> None:
    async with box(ANSWER) as made:
        session = await made.new()
        prompt = made.send("session/prompt", sessionId=session, prompt=text("Hello"))
        answer = await made.frames.answer(prompt)
        at = made.frames.all.index(answer)
        said = [frame for frame in made.frames.all[:at] if "method" in frame]

        assert answer["result"]["stopReason"] == "end_turn"
        assert made.frames.all[0]["result"]["sessionId"] == session
        assert "Hi" in [frame["params"]["update"].get("content", {}).get("text") for frame in said]


async def test_a_prompt_to_a_session_of_before_is_served_without_a_load() -> None:
    async with box(ANSWER) as made:
        session = await made.new()
        made.frontend.reset()

        answer = await made.ask("session/prompt", sessionId=session, prompt=text("Hello"))

        assert answer["stopReason"] == "end_turn"


async def test_a_replaced_database_ends_the_prompts_that_wait() -> None:
    async with box([TextDelta("Half")]) as made:
        session = await made.new()
        prompt = made.send("session/prompt", sessionId=session, prompt=text("Hello"))
        await made.frames.wait_update("agent_message_chunk")

        made.frontend.reset()

        assert (await made.frames.answer(prompt))["error"]["code"] == -32603


async def test_the_efforts_of_a_model_can_be_chosen_once_they_are_known() -> None:
    async with box() as made:
        session = await made.new()
        too_early = await made.refused(
            "session/set_config_option", sessionId=session, configId="effort", value="low"
        )
        await made.frames.wait_update("config_option_update")
        low = await made.ask("session/set_config_option", sessionId=session, configId="effort", value="low")
        wrong = await made.refused(
            "session/set_config_option", sessionId=session, configId="effort", value="extreme"
        )
        none = await made.ask(
            "session/set_config_option", sessionId=session, configId="effort", value="default"
        )

    assert [error["code"] for error in (too_early, wrong)] == [-32602, -32602]
    assert "default, low, high" in wrong["message"]
    assert [answer["configOptions"][2]["currentValue"] for answer in (low, none)] == ["low", "default"]


async def test_models_that_cannot_be_listed_are_no_failure() -> None:
    async with box(ANSWER) as made:
        made.host.models_fail = True
        session = await made.new()

        assert (await made.ask("session/prompt", sessionId=session, prompt=text("x")))["stopReason"]


@pytest.mark.parametrize(
    ("method", "params", "field"),
    [
        ("session/new", {"mcpServers": []}, "cwd"),
        ("session/new", {"cwd": "x", "mcpServers": []}, "cwd"),
        ("session/new", {"cwd": "/", "mcpServers": [], "_meta": {"sidecar": {"chatId": 7}}}, "chatId"),
        ("session/new", {"cwd": "/", "mcpServers": [], "additionalDirectories": ["x"]}, "additionalDir"),
        ("session/prompt", {"prompt": []}, "sessionId"),
        ("session/set_mode", {"sessionId": "s"}, "modeId"),
        ("authenticate", {"methodId": "x"}, "methodId"),
    ],
)
async def test_a_wrong_parameter_is_named_as_the_editor_sent_it(
    method: str, params: Json, field: str
) -> None:
    async with box() as made:
        error = await made.refused(method, **params)

    assert error["code"] == -32602
    assert field in error["message"]


async def test_a_shutdown_refuses_what_is_new() -> None:
    async with box() as made:
        await made.new()
        made.frontend.refuse()

        error = await made.refused("session/list")

    assert (error["code"], error["data"]["name"]) == (-32603, "shutting_down")
