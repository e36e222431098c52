"""The connection to the client of this process. Chooses its frontend: by the command, or by the first message."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from sidecar_protocol.framing import Frame

from ..chat.services.client_app import ClientApp
from ..chat.sessions.session import Session
from ..frontends.registry import FrontendConnection, FrontendEntry, FrontendRegistry

if TYPE_CHECKING:
    from ..frontends.base import Frontend, StatusData

logger = logging.getLogger(__name__)

MAX_HELD_STATUSES = 64
"""Statuses that wait for the first message; a client that is late needs the newest ones."""

Connect = Callable[[Mapping[str, object] | None], FrontendConnection]
"""Makes what a frontend is created with, from the `initialize` that the bootstrap has answered."""


def load_frontend(frontends: FrontendRegistry, chosen: str | None) -> None:
    """Import the modules of the frontend that will probably be created, before the event loop runs."""
    (frontends.default if chosen is None else frontends.find(chosen)).load()


class ClientConnection:
    """`chosen` names the frontend of the command; None lets the first message choose."""

    def __init__(self, frontends: FrontendRegistry, chosen: str | None, connect: Connect) -> None:
        self._frontends = frontends
        self._chosen = chosen
        self._connect = connect
        self._greeting: Mapping[str, object] | None = None
        self._frontend: Frontend | None = None
        self._held_statuses: deque[tuple[str, StatusData]] = deque(maxlen=MAX_HELD_STATUSES)

    def begin(self, greeting: Mapping[str, object] | None, dialect: str | None = None) -> None:
        """Create the frontend, unless its dialect depends on a message that has not arrived yet. `greeting` is the
        `initialize` that the bootstrap has answered in this `dialect`.
        """
        self._greeting = greeting
        chosen = self._chosen or dialect
        if chosen is not None:
            self._create(self._frontends.find(chosen))
        elif greeting is not None or not self._frontends.needs_first_message:
            self._create(self._frontends.default)

    def receive(self, frames: Sequence[Frame]) -> None:
        for frame in frames:
            frontend = self._frontend or self._create(self._frontends.choose(frame))
            frontend.receive(frame)

    @property
    def app(self) -> ClientApp:
        return self._require().app

    def send_status(self, type: str, data: StatusData) -> None:
        if type == "storage":
            logger.info("storage", extra={"state": data.get("state")})
        if self._frontend:
            self._frontend.send_status(type, data)
        else:
            self._held_statuses.append((type, data))

    def report_access(self, session: Session) -> None:
        if self._frontend:
            self._frontend.report_access(session)

    def reset(self) -> None:
        if self._frontend:
            self._frontend.reset()

    def refuse(self) -> None:
        """Refuse new requests, the first one included."""
        self._require().refuse()

    async def idle(self) -> None:
        if self._frontend:
            await self._frontend.idle()

    def abandon(self) -> None:
        if self._frontend:
            self._frontend.abandon()

    def _require(self) -> Frontend:
        return self._frontend or self._create(self._frontends.default)

    def _create(self, entry: FrontendEntry) -> Frontend:
        frontend = self._frontend = entry.load()(self._connect(self._greeting))
        while self._held_statuses:
            frontend.send_status(*self._held_statuses.popleft())
        return frontend
