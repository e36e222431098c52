"""The registry of engines: names, unknown names, and the engine of one chat, which is opened and closed once."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from sidecar.engines.base import EngineCapabilities, EngineChat, Sink, TurnRequest
from sidecar.engines.native import NativeEngine
from sidecar.engines.registry import BUILT_IN, ChatEngine, EngineEntry, EngineRegistry
from sidecar.model.content import EndReason
from sidecar.model.failures import Failure, Refused
from sidecar.settings import engine_keys, keys
from tests.support.patience import PATIENCE_S
from tests.unit.engines.sinks import ListSink, ScriptedReplies, turn_request

SOURCE = Path(__file__).parents[3] / "sidecar"

CAPABILITIES = EngineCapabilities(calls_provider=False, takes_steers=False)
CHAT = EngineChat("s-1", "e-1", None)


class LoggingEngine:
    """Notes what is called. `open_error` and `close_error` are raised there; `blocks` never opens."""

    def __init__(
        self,
        name: str,
        log: list[str],
        *,
        open_error: Exception | None = None,
        close_error: Exception | None = None,
        blocks: anyio.Event | None = None,
    ) -> None:
        self._name = name
        self._log = log
        self._open_error = open_error
        self._close_error = close_error
        self._blocks = blocks

    async def open(self, chat: EngineChat) -> None:
        self._log.append(f"open {self._name} {chat.session_id} {chat.epoch} {chat.project_path}")
        if self._blocks:
            self._blocks.set()
            await anyio.sleep_forever()
        if self._open_error:
            raise self._open_error

    async def run(self, turn: TurnRequest, sink: Sink) -> EndReason:
        return "end_turn"

    async def close(self) -> None:
        self._log.append(f"close {self._name}")
        if self._close_error:
            raise self._close_error


def logging_entry(name: str, log: list[str]) -> EngineEntry:
    return EngineEntry(name, CAPABILITIES, lambda: LoggingEngine(name, log))


def test_the_registry_has_the_engines_that_a_setting_may_name() -> None:
    assert EngineRegistry().names == (engine_keys.NATIVE_ENGINE,)
    assert all(engine_keys.is_engine(name) for name in engine_keys.ENGINES)
    assert keys.KEYS["engine"].default in engine_keys.ENGINES


def test_the_default_engine_is_created_from_the_registry() -> None:
    assert isinstance(EngineRegistry().find(engine_keys.NATIVE_ENGINE).create(), NativeEngine)


@pytest.mark.parametrize("name", ["", "copilot", "Native", "native ", "nat\nive", "x" * 5000])
def test_an_unknown_engine_is_refused_with_the_names_that_there_are(name: str) -> None:
    registry = EngineRegistry([*BUILT_IN, logging_entry("echo", [])])

    with pytest.raises(Refused) as refused:
        registry.find(name)

    assert refused.value.name == "precondition_failed"
    assert refused.value.params == {"field": "engine", "expected": "one of native, echo"}
    assert f"{name[:80]!r} here, only native, echo" in refused.value.message
    assert len(refused.value.message) < 250


def test_two_engines_of_one_name_are_a_mistake_of_the_program() -> None:
    with pytest.raises(ValueError, match="two engines are named 'native'"):
        EngineRegistry([*BUILT_IN, *BUILT_IN])


def test_the_name_of_the_native_engine_is_in_one_place() -> None:
    name = engine_keys.NATIVE_ENGINE.encode()
    found = [
        str(path.relative_to(SOURCE))
        for path in sorted(SOURCE.rglob("*.py"))
        if name in path.read_bytes()
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.Constant) and node.value == engine_keys.NATIVE_ENGINE
    ]

    # The others are the name of a dialect, and a value of git's `core.eol`.
    assert found == ["frontends/native/greeting.py", "settings/engine_keys.py", "workspace/repository.py"]


def test_importing_the_registry_imports_no_engine() -> None:
    code = "import json, sys, sidecar.engines.registry; print(json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    loaded = {name for name in json.loads(done.stdout) if name.startswith("sidecar.engines.")}

    assert loaded == {"sidecar.engines.base", "sidecar.engines.registry"}


async def test_an_engine_is_opened_once_for_all_turns_of_a_chat() -> None:
    log: list[str] = []
    entry, engine = logging_entry("a", log), ChatEngine()

    first = await engine.use(entry, CHAT)
    second = await engine.use(entry, EngineChat("s-1", "e-1", None))
    await engine.close()
    await engine.close()

    assert first is second
    assert log == ["open a s-1 e-1 None", "close a"]


@pytest.mark.parametrize(
    ("name", "chat"),
    [
        ("b", CHAT),
        ("a", EngineChat("s-1", "e-2", None)),
        ("a", EngineChat("s-1", "e-1", "/project")),
        ("a", EngineChat("s-2", "e-1", None)),
        ("b", EngineChat("s-1", "e-1", "/project")),
    ],
)
async def test_another_engine_or_chat_closes_the_one_before(name: str, chat: EngineChat) -> None:
    log: list[str] = []
    engine = ChatEngine()
    entries = {each: logging_entry(each, log) for each in ("a", "b")}

    await engine.use(entries["a"], CHAT)
    await engine.use(entries[name], chat)

    opened = f"open {name} {chat.session_id} {chat.epoch} {chat.project_path}"
    assert log == ["open a s-1 e-1 None", "close a", opened]


async def test_a_closed_engine_is_opened_again_by_the_next_turn() -> None:
    log: list[str] = []
    entry, engine = logging_entry("a", log), ChatEngine()

    first = await engine.use(entry, CHAT)
    await engine.close()
    second = await engine.use(entry, CHAT)

    assert first is not second
    assert log == ["open a s-1 e-1 None", "close a", "open a s-1 e-1 None"]


async def test_an_engine_that_fails_to_open_is_closed_and_tried_again() -> None:
    log: list[str] = []
    missing = Failure("not_found", "The agent is not installed")
    engines = [LoggingEngine("a", log, open_error=missing), LoggingEngine("a", log)]
    entry, engine = EngineEntry("a", CAPABILITIES, lambda: engines.pop(0)), ChatEngine()

    with pytest.raises(Failure, match="not installed"):
        await engine.use(entry, CHAT)
    await engine.use(entry, CHAT)

    assert log == ["open a s-1 e-1 None", "close a", "open a s-1 e-1 None"]


async def test_an_engine_whose_opening_is_cancelled_is_closed() -> None:
    log: list[str] = []
    opening = anyio.Event()
    entry = EngineEntry("a", CAPABILITIES, lambda: LoggingEngine("a", log, blocks=opening))
    engine = ChatEngine()

    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(engine.use, entry, CHAT)
            await opening.wait()
            tasks.cancel_scope.cancel()

    assert log == ["open a s-1 e-1 None", "close a"]


async def test_an_engine_that_fails_to_close_does_not_keep_another_from_opening() -> None:
    log: list[str] = []
    broken = EngineEntry(
        "a", CAPABILITIES, lambda: LoggingEngine("a", log, close_error=RuntimeError("the agent hangs"))
    )
    engine = ChatEngine()

    await engine.use(broken, CHAT)
    await engine.use(logging_entry("b", log), CHAT)

    assert log == ["open a s-1 e-1 None", "close a", "open b s-1 e-1 None"]


async def test_the_native_engine_refuses_a_turn_without_a_provider() -> None:
    request = turn_request(ScriptedReplies())
    fields = {name: getattr(request, name) for name in request.__struct_fields__}

    with pytest.raises(ValueError, match="`calls` is missing"):
        await NativeEngine().run(TurnRequest(**{**fields, "calls": None}), ListSink())
