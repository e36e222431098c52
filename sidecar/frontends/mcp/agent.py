"""The agent behind a request: which one it is, its session's chat, and its project."""

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
from .eras import Caller

PROJECT_VARIABLES = ("SIDECAR_PROJECT",)
"""The project, where a host does not start its servers in it."""


class Agents:
    """Finds the chat of a request's session. `project` is the folder in which the host started this process."""

    def __init__(self, ready: Callable[[], Awaitable[Chats]], project: str | None) -> None:
        self._ready = ready
        self.project = project

    async def session(self, caller: Caller) -> Session:
        """The chat of the agent's session, in the project."""
        adapter = detect(caller.name, os.environ)
        title = f"{adapter.title} in {os.path.basename(self.project)}" if self.project else adapter.title
        return await open_agent_chat(
            await self._ready(), self.chat_id(adapter, caller), self.require_project(), title
        )

    def chat_id(self, adapter: Adapter, caller: Caller) -> str:
        """The agent and its session; without an id of the session, the agent and its project."""
        found = session_id(adapter, caller.meta) or self.project or "session"
        return f"{adapter.name}:{found}".encode()[:MAX_ID_BYTES].decode(errors="ignore")

    def require_project(self) -> str:
        if self.project is None or not os.path.isdir(self.project):
            raise Failure(
                "precondition_failed",
                f"The project folder {self.project or '(none)'} does not exist",
                hint="Start the agent in a folder that exists, or set SIDECAR_PROJECT",
            )
        return self.project


def project_folder() -> str | None:
    """The folder that the host has started this process in; None when it was removed."""
    for name in PROJECT_VARIABLES:
        if os.environ.get(name):
            return os.path.realpath(os.environ[name])
    try:
        return os.path.realpath(os.getcwd())
    except OSError:
        return None
