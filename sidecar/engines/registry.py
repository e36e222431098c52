"""The engines by name, and what each can do. An engine's modules are imported when the engine is created."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
from anyio.abc import TaskGroup

from ..model.failures import Refused
from ..settings.engine_keys import AGENT_PREFIX, COPILOT_ENGINE, NATIVE_ENGINE
from ..system.lazy import lazy_module
from .base import Engine, EngineCapabilities, EngineChat

if TYPE_CHECKING:
    from . import direct, native
    from .acp import engine as acp_engine
    from .acp import presets
    from .copilot import engine as copilot_engine
else:
    direct = lazy_module("sidecar.engines.direct")
    native = lazy_module("sidecar.engines.native")
    acp_engine = lazy_module("sidecar.engines.acp.engine")
    copilot_engine = lazy_module("sidecar.engines.copilot.engine")
    presets = lazy_module("sidecar.engines.acp.presets")

logger = logging.getLogger(__name__)

CLOSE_S = 0.5
"""How long an engine may take to close, so that the process still exits within two seconds."""


class EngineEntry(msgspec.Struct, frozen=True):
    """One engine that a chat can use."""

    name: str
    """The value of `engine` in the settings and in a chat's configuration."""
    capabilities: EngineCapabilities
    create: Callable[[], Engine]
    """Imports the engine's modules and returns an engine for one chat. It does no IO: `Engine.open` does."""


def _create_native() -> Engine:
    return native.NativeEngine()


def _create_direct() -> Engine:
    return direct.DirectEngine()


DIRECT_ENGINE = "direct"
"""Runs tool calls of a client that is an agent itself."""

BUILT_IN = (
    EngineEntry(NATIVE_ENGINE, EngineCapabilities(calls_provider=True, takes_steers=True), _create_native),
    EngineEntry(
        DIRECT_ENGINE,
        EngineCapabilities(calls_provider=False, takes_steers=True, runs_client_calls=True),
        _create_direct,
    ),
)
"""An engine exists because it is in this table; a name that users choose is in `ENGINES` of
`sidecar/settings/keys.py` too.
"""


class AgentFactory(msgspec.Struct, frozen=True):
    """Creates the engine of an agent. Equal for an equal command: an engine that is open stays open."""

    agent: presets.AgentCommand
    services: EngineServices
    is_copilot: bool = False

    def __call__(self) -> Engine:
        if self.is_copilot:
            return copilot_engine.CopilotEngine(self.agent, self.services.environ)
        return acp_engine.AcpEngine(self.agent, self.services.tasks, self.services.environ)


class EngineServices(msgspec.Struct, frozen=True, eq=False):
    """What the engines of the process share: tasks that outlive a turn, and the tables `[engines.NAME]`."""

    tasks: TaskGroup
    tables: Callable[[], Mapping[str, Mapping[str, Any]]]
    environ: Mapping[str, str] = os.environ


class EngineRegistry:
    """The engines that are built in, and with `services` the agents that are known or configured."""

    def __init__(
        self, entries: Iterable[EngineEntry] = BUILT_IN, services: EngineServices | None = None
    ) -> None:
        self._services = services
        self._entries: dict[str, EngineEntry] = {}
        for entry in entries:
            if entry.name in self._entries:
                raise ValueError(f"two engines are named {entry.name!r}")
            self._entries[entry.name] = entry

    @property
    def names(self) -> tuple[str, ...]:
        """The engines that a configuration can name."""
        built_in = [name for name, entry in self._entries.items() if not entry.capabilities.runs_client_calls]
        built_in += [COPILOT_ENGINE] if self._services else []
        return (*built_in, *(f"{AGENT_PREFIX}{name}" for name in self.agents()))

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment that agents are started from."""
        return self._services.environ if self._services else {}

    def agents(self) -> Mapping[str, presets.AgentCommand]:
        """The agents that can be engines, by name, whether installed or not."""
        return presets.configured_agents(self._services.tables()) if self._services else {}

    def _agent(self, name: str) -> EngineEntry | None:
        if self._services is None:
            return None
        is_copilot = name == COPILOT_ENGINE
        if is_copilot:
            agent: presets.AgentCommand | None = presets.copilot_runtime(self._services.tables())
        else:
            known = self.agents() if name.startswith(AGENT_PREFIX) else {}
            agent = known.get(name.removeprefix(AGENT_PREFIX))
        if agent is None:
            return None
        capabilities = EngineCapabilities(
            calls_provider=False, takes_steers=False, keeps_session=True, window=agent.window
        )
        return EngineEntry(name, capabilities, AgentFactory(agent, self._services, is_copilot))

    def find(self, name: str) -> EngineEntry:
        """The engine of this name; refuses a name that only another version of the program knows."""
        entry = self._entries.get(name) or self._agent(name)
        if entry is None:
            allowed = ", ".join(self.names)
            raise Refused(
                "precondition_failed",
                f"`engine`: there is no engine {name[:80]!r} here, only {allowed}; set it by chat/configure",
                params={"field": "engine", "expected": f"one of {allowed}"},
            )
        return entry


class ChatEngine:
    """The engine of one chat: opened for the first turn, and replaced when the chat is to use another one."""

    def __init__(self) -> None:
        self._opened: tuple[EngineEntry, EngineChat, Engine] | None = None
        self._lock = anyio.Lock()

    async def use(self, entry: EngineEntry, chat: EngineChat) -> Engine:
        """The engine, opened for the chat as it is now."""
        async with self._lock:
            if self._opened and self._opened[:2] == (entry, chat):
                return self._opened[2]
            await self._close()
            engine = entry.create()
            try:
                await engine.open(chat)
            except BaseException:
                # Also when the turn is cancelled while the engine opens: what was started until then must end.
                await _close_engine(entry.name, engine)
                raise
            self._opened = entry, chat, engine
            return engine

    async def close(self) -> None:
        """Close the engine; the next turn opens it again."""
        async with self._lock:
            await self._close()

    async def _close(self) -> None:
        if self._opened:
            entry, _, engine = self._opened
            self._opened = None
            await _close_engine(entry.name, engine)


async def _close_engine(name: str, engine: Engine) -> None:
    """Close an engine. A failure is logged: it must not keep the chat from closing, or from using another engine."""
    try:
        with anyio.move_on_after(CLOSE_S, shield=True):
            await engine.close()
    except Exception:
        logger.exception("an engine could not be closed", extra={"engine": name})
