"""The Copilot engine between a runtime in memory and a history: whatever fails, the model never gets an empty thread.

The runtime plays the recorded behaviour: "not found" has no code of its own, and creating a session over one that
another process made succeeds, with an empty thread.
"""

from __future__ import annotations

import random
from typing import Any

import anyio
import pytest

from sidecar.engines.acp.presets import AgentCommand
from sidecar.engines.base import EngineChat, EngineHost, TurnLimits, TurnRequest
from sidecar.engines.copilot import engine as copilot
from sidecar.model.content import Block
from sidecar.model.failures import Failure
from sidecar.tools.toolbox import Toolbox
from tests.support.patience import PATIENCE_S
from tests.unit.engines.sinks import ListSink

CHAT = EngineChat("sc-tab-7-bf133f99bd6e5d06", "e-1", None)

CALLS = ("start", "metadata", "resume", "create", "events", "send")
DAMAGES = ("restart", "lose-session", "lose-events", "lose-everything")


class JsonRpcError(Exception):
    """The only error of the runtime: every failure has the code -32603."""


class Runtime:
    """What is on disk, and what the model was sent. `fault` fails a call, before or after its work is done."""

    def __init__(self) -> None:
        self.disk: dict[str, list[str]] = {}
        self.sent: list[list[str]] = []
        self.fault: tuple[str, str] | None = None
        self.created_over = 0

    def meet(self, call: str, when: str) -> None:
        if self.fault == (call, when):
            self.fault = None
            raise JsonRpcError(f"Request {call} failed with message: Internal error")


class Sdk:
    """In the place of the package `copilot`, for one process of the runtime."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    class RuntimeConnection:
        @staticmethod
        def for_stdio(**options: Any) -> None:
            return None

    def CopilotClient(self, **options: Any) -> Client:  # noqa: N802  the SDK's name
        return Client(self._runtime)


class Client:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._warm: set[str] = set()

    async def start(self) -> None:
        self._runtime.meet("start", "before")

    async def ping(self) -> None:
        return

    async def get_session_metadata(self, id: str) -> object | None:
        self._runtime.meet("metadata", "before")
        return object() if id in self._runtime.disk else None

    async def resume_session(self, id: str, **options: Any) -> Session:
        self._runtime.meet("resume", "before")
        if id not in self._runtime.disk:
            raise JsonRpcError(f"Failed to load session events: Session not found: {id}")
        self._runtime.meet("resume", "after")
        self._warm.add(id)
        return Session(self._runtime, id, list(self._runtime.disk[id]), options)

    async def create_session(self, session_id: str, **options: Any) -> Session:
        self._runtime.meet("create", "before")
        if session_id in self._runtime.disk and session_id not in self._warm:
            self._runtime.created_over += 1  # the trap: it succeeds, and the thread is empty
        self._runtime.disk.setdefault(session_id, [])
        self._warm.add(session_id)
        self._runtime.meet("create", "after")
        return Session(self._runtime, session_id, [], options)

    async def stop(self) -> None:
        return

    async def force_stop(self) -> None:
        return


class Session:
    def __init__(self, runtime: Runtime, id: str, thread: list[str], options: dict[str, Any]) -> None:
        self.session_id = id
        self._runtime = runtime
        self._thread = thread
        self._on_event = options["on_event"]

    async def get_events(self) -> list[dict[str, Any]]:
        self._runtime.meet("events", "before")
        said = self._runtime.disk[self.session_id]
        return [
            {"type": "session.start"},
            *({"type": "user.message", "data": {"content": one}} for one in said),
        ]

    async def send(self, text: str) -> None:
        self._runtime.meet("send", "before")
        self._thread.append(text)
        self._runtime.disk[self.session_id].append(text)
        self._runtime.sent.append(list(self._thread))
        self._runtime.meet("send", "after")
        self._on_event({"type": "assistant.message_delta", "data": {"deltaContent": "ok"}})
        self._on_event({"type": "session.idle", "data": {}})

    async def disconnect(self) -> None:
        return


class Chat:
    """Plays the caller of the engine: keeps the history, and which session contains how much of it."""

    def __init__(self, runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(copilot, "has_sdk", lambda: True)
        monkeypatch.setattr(copilot, "find_runtime", lambda environ, named: "/runtime")
        self.runtime = runtime
        self.said: list[str] = []
        self.record: tuple[str, int] | None = None
        self.engine = self._new_engine()

    def _new_engine(self) -> copilot.CopilotEngine:
        engine = copilot.CopilotEngine(AgentCommand("copilot", "GitHub Copilot", ""), {})
        engine._sdk = Sdk(self.runtime)
        return engine

    async def restart(self) -> None:
        await self.engine.close()
        self.engine = self._new_engine()

    async def prompt(self, text: str) -> None:
        await self.engine.open(CHAT)
        attached = await self.engine.attach(self.record[0] if self.record else None, "auto")
        start = self.record[1] if self.record and attached.resumed else 0
        lacking = " ".join(self.said[start:])
        self.said.append(text)
        host = EngineHost(_unused, _unused, prompt=[], background=lacking)
        request = TurnRequest(
            prompt=[Block(type="text", text=text)],
            model="auto",
            effort=None,
            limits=TurnLimits(10),
            tools=Toolbox([]),
            run_tool=_unused,
            secret="secret",
            calls=None,
            host=host,
        )
        await self.engine.run(request, ListSink())
        self.record = (attached.session, len(self.said))


async def _unused(*arguments: Any) -> Any:
    raise AssertionError("no tool is called")


@pytest.mark.parametrize("seed", range(100))
async def test_no_drawn_fault_makes_an_empty_thread(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(seed)
    runtime = Runtime()
    chat = Chat(runtime, monkeypatch)
    failures = 0
    with anyio.fail_after(PATIENCE_S):
        for number in range(8):
            damage = draw.choice((None, *DAMAGES))
            if damage:
                await chat.restart()
            _damage(runtime, damage)
            runtime.fault = draw.choice((None, (draw.choice(CALLS), draw.choice(("before", "after")))))
            before = len(runtime.sent)
            try:
                await chat.prompt(f"word-{number}")
            except Failure:
                failures += 1
            for thread in runtime.sent[before:]:
                assert [word for word in chat.said if word not in " ".join(thread)] == []
    assert runtime.created_over == 0
    assert failures < 8


def _damage(runtime: Runtime, damage: str | None) -> None:
    if damage == "lose-session" and runtime.disk:
        del runtime.disk[next(iter(runtime.disk))]
    elif damage == "lose-events":
        for events in runtime.disk.values():
            events.clear()
    elif damage == "lose-everything":
        runtime.disk.clear()


async def test_a_session_of_that_name_that_is_not_ours_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = Runtime()
    runtime.disk[CHAT.session_id] = ["of another life"]
    chat = Chat(runtime, monkeypatch)

    await chat.prompt("hello")

    assert runtime.disk.pop(CHAT.session_id) == ["of another life"]
    assert [id.startswith(f"{CHAT.session_id}-") for id in runtime.disk] == [True]


async def test_the_session_has_our_id(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = Runtime()
    await Chat(runtime, monkeypatch).prompt("hello")

    assert list(runtime.disk) == [CHAT.session_id]
