"""The agent behind a request: which one it is, its session's chat, its project, and what is set for it."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable

from sidecar_protocol.limits import MAX_ID_BYTES

from ...adapters.base import Adapter
from ...adapters.registry import detect, session_id
from ...chat.actions.agent_calls import open_agent_chat
from ...chat.sessions.chats import Chats
from ...chat.sessions.session import Session
from ...model.failures import Failure
from ...settings import Settings
from ...settings.values import AdapterSettings
from ...system.processes import parent_programs
from .eras import Caller

PROJECT_VARIABLE = "SIDECAR_PROJECT"
"""The project, where a host does not start its servers in it."""


class Agents:
    """Finds the chat of a request's session. `settings` are those of the user: what is set for agents applies to all
    projects.
    """

    def __init__(self, ready: Callable[[], Awaitable[Chats]], settings: Callable[[], Settings]) -> None:
        self._ready = ready
        self._settings = settings
        self._started_in = _real_folder(os.environ.get(PROJECT_VARIABLE))
        self._adapters: dict[str, Adapter] = {}

    async def session(self, caller: Caller) -> Session:
        """The chat of the agent's session, in the project."""
        adapter, project = self.adapter(caller), self.require_project(caller)
        title = f"{adapter.title} in {os.path.basename(project)}"
        return await open_agent_chat(await self._ready(), self.chat_id(caller), project, title)

    def adapter(self, caller: Caller) -> Adapter:
        """The agent that the caller is; each client of the connection is recognised once."""
        if caller.name not in self._adapters:
            chosen = self._settings().adapters
            folders = (self._started_in, os.path.expanduser("~"))
            self._adapters[caller.name] = detect(
                caller.name,
                os.environ,
                chosen.default,
                guess=chosen.auto_detect,
                folders=(_names(folder) for folder in folders),
                parents=parent_programs(),
            )
        return self._adapters[caller.name]

    def chosen(self, caller: Caller) -> AdapterSettings:
        """What is set for the agent that the caller is."""
        return self._settings().for_adapter(self.adapter(caller).name)

    def chat_id(self, caller: Caller) -> str:
        """The agent and its session; without an id of the session, the agent and its project."""
        adapter = self.adapter(caller)
        found = session_id(adapter, caller.meta) or self.project(caller) or "session"
        return f"{adapter.name}:{found}".encode()[:MAX_ID_BYTES].decode(errors="ignore")

    def project(self, caller: Caller) -> str | None:
        """The folder that the user has named, that the agent names, or in which it has started this process; None when
        that one was removed.
        """
        variable = self.adapter(caller).project_variable
        named = os.environ.get(PROJECT_VARIABLE) or (variable and os.environ.get(variable))
        return _real_folder(named) if named else self._started_in

    def require_project(self, caller: Caller) -> str:
        project = self.project(caller)
        if project is None or not os.path.isdir(project):
            raise Failure(
                "precondition_failed",
                f"The project folder {project or '(none)'} does not exist",
                hint=f"Start the agent in a folder that exists, or set {PROJECT_VARIABLE}",
            )
        return project


def _real_folder(named: str | None) -> str | None:
    try:
        return os.path.realpath(named or os.getcwd())
    except OSError:
        return None


def _names(folder: str | None) -> list[str]:
    try:
        return os.listdir(folder) if folder else []
    except OSError:
        return []
