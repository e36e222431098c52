"""Which engines are installed and logged in, and why not; found without starting any."""

from __future__ import annotations

import os
from collections.abc import Mapping

import msgspec

from ..settings.engine_keys import AGENT_PREFIX, COPILOT_ENGINE, NATIVE_ENGINE
from .acp.presets import AgentCommand
from .copilot import runtime
from .registry import EngineRegistry


class EngineState(msgspec.Struct, frozen=True):
    """An engine as a settings page shows it. `logged_in` is None where that cannot be seen from outside."""

    name: str
    title: str
    installed: bool
    ready: bool
    logged_in: bool | None = None
    path: str | None = None
    code: str | None = None
    reason: str | None = None
    install: str | None = None


def engine_states(registry: EngineRegistry) -> list[EngineState]:
    """The engines that a configuration can name. Blocking."""
    states = [EngineState(NATIVE_ENGINE, "Sidecar", True, True, True), _copilot_state(registry.environ)]
    return states + [_agent_state(agent, registry.environ) for agent in registry.agents().values()]


def _copilot_state(environ: Mapping[str, str]) -> EngineState:
    """Whether the user is logged in is known to the runtime alone."""
    path = runtime.find_runtime(environ)
    failure = runtime.missing(runtime.has_sdk(), path)
    if failure is None:
        return EngineState(COPILOT_ENGINE, "GitHub Copilot", True, True, None, path)
    return EngineState(
        COPILOT_ENGINE,
        "GitHub Copilot",
        False,
        False,
        None,
        path,
        "not_installed",
        failure.message,
        failure.hint,
    )


def _agent_state(agent: AgentCommand, environ: Mapping[str, str]) -> EngineState:
    name = f"{AGENT_PREFIX}{agent.name}"
    path = agent.program(environ)
    if path is None:
        how = f"Install it: {agent.install}" if agent.install else f"There is no program {agent.command!r}"
        return EngineState(
            name, agent.title, False, False, None, None, "not_installed", how, agent.install or None
        )
    logged_in = _is_logged_in(agent, environ)
    if logged_in is False:
        return EngineState(name, agent.title, True, False, False, path, "no_login", agent.login)
    return EngineState(name, agent.title, True, True, logged_in, path)


def _is_logged_in(agent: AgentCommand, environ: Mapping[str, str]) -> bool | None:
    """Whether a key or a stored login is there; None for an agent of which neither is known."""
    if not agent.key_variables and not agent.login_files:
        return None
    own = {**environ, **dict(agent.variables)}
    if any(own.get(name) for name in agent.key_variables):
        return True
    home = own.get("HOME") or os.path.expanduser("~")
    return any(os.path.exists(os.path.join(home, file)) for file in agent.login_files)
