"""The Agent Client Protocol on the connection: its `initialize`, its two versions, and the table of its handlers."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from sidecar_protocol.errors import RpcError
from sidecar_protocol.framing import Frame
from sidecar_protocol.jsonrpc import Notification
from sidecar_protocol.peer import Call, Cancelling, Peer

from ...chat.services.client_app import ClientApp
from ...model.failures import invalid_param, repaired_meanwhile
from ...rpc.dispatch import Dispatcher, Handler, to_error
from ..attachments import Attachments
from . import errors, greeting
from .client import AcpClientApp
from .messages import METHODS, AcpMethod, AcpResult, AuthenticateParams, Empty, InitializeParams, Params
from .prompts import PromptHandlers
from .sessions import Sessions

if TYPE_CHECKING:
    from ...chat.sessions.session import Session
    from ..base import StatusData
    from ..registry import FrontendConnection

logger = logging.getLogger(__name__)

CANCELLING = Cancelling("$/cancel_request", "requestId")


class AcpFrontend:
    """Implements `Frontend` by the Agent Client Protocol."""

    def __init__(self, connection: FrontendConnection) -> None:
        self._host = connection.host
        self._tasks = connection.tasks
        self._sessions = Sessions(
            connection.host,
            connection.wire,
            lambda wire, sink_of: Attachments(wire, connection.tasks, sink_of),
        )
        self._client = AcpClientApp(lambda method, params: self._peer.request(method, params), self._sessions)
        self._sessions.client = self._client
        self._prompts = PromptHandlers(self._sessions)
        self._initialized = False
        self._dispatcher = self._make_dispatcher(self._sessions.version)
        self._peer = Peer(
            connection.wire.send, self._serve, self._on_notification, connection.tasks, CANCELLING
        )
        if connection.greeting is not None:
            self._on_initialize(msgspec.convert(connection.greeting, InitializeParams))

    @property
    def app(self) -> ClientApp:
        return self._client

    def receive(self, frame: Frame) -> None:
        self._peer.receive(frame)

    def send_status(self, type: str, data: StatusData) -> None:
        """Models that changed are asked for again; a server that failed is a notice. The rest has no message."""
        if type == "models":
            self._sessions.models_changed()
        elif type == "mcp" and data.get("state") == "failed":
            error = str(data.get("error") or "")
            self._sessions.notify(("warning", f"The MCP server {data.get('name')} failed", error or None))

    def report_access(self, session: Session) -> None:
        """The protocol has no such message."""

    def reset(self) -> None:
        self._sessions.fail_all(errors.acp_error(to_error(repaired_meanwhile())))

    def refuse(self) -> None:
        closing = RpcError.named("shutting_down", "The sidecar is shutting down", retryable=True)
        self._peer.refuse(errors.acp_error(closing))

    async def idle(self) -> None:
        await self._peer.idle()

    def abandon(self) -> None:
        self._peer.abandon()

    async def _serve(self, call: Call) -> Any:
        if not self._initialized and call.method != "initialize":
            raise errors.acp_error(RpcError.named("not_initialized", "Send `initialize` first"))
        if call.method not in METHODS[self._sessions.version]:
            raise errors.unknown_method(call.method)
        try:
            return await self._dispatcher.serve(call)
        except RpcError as error:
            raise errors.acp_error(error) from error

    def _make_dispatcher(self, version: int) -> Dispatcher[AcpMethod]:
        handlers: Mapping[str, Handler] = {
            "initialize": self._initialize,
            "authenticate": self._authenticate,
            "auth/login": self._authenticate,
            "logout": self._log_out,
            "auth/logout": self._log_out,
            **self._sessions.handlers(),
            **self._prompts.handlers(),
        }
        known = {name: handlers[name] for name in METHODS[version]}
        return Dispatcher(METHODS[version], known, lambda method: None, lambda params: {})

    def _on_initialize(self, params: InitializeParams) -> None:
        """Apply the client's `initialize`, whether this or the bootstrap answered it."""
        version = greeting.spoken_version(
            greeting.requested_version({"protocolVersion": params.protocol_version}) or 1
        )
        about = (params.client_info if version == 1 else params.info) or {}
        self._initialized = True
        self._sessions.version = version
        self._client.on_initialize(version, params)
        self._dispatcher = self._make_dispatcher(version)
        name = f"{about.get('name') or 'editor'} {about.get('version') or ''}".strip()
        self._host.client_connected(name, None)

    def _on_notification(self, message: Notification) -> None:
        session_id = message.params.get("sessionId")
        if message.method == "session/cancel" and isinstance(session_id, str):
            self._tasks.start_soon(self._prompts.cancel, session_id)
        else:
            logger.info("ignored a notification", extra={"method": message.method[:80]})

    async def _initialize(self, call: Call, params: InitializeParams) -> AcpResult:
        asked = greeting.requested_version({"protocolVersion": params.protocol_version})
        if asked is None:
            raise invalid_param("protocolVersion", "a whole number, such as 1")
        self._on_initialize(params)
        return greeting.initialize_result(asked)

    async def _authenticate(self, call: Call, params: AuthenticateParams) -> AcpResult:
        raise invalid_param("methodId", "none: Sidecar has no login; keys of providers are in its settings")

    async def _log_out(self, call: Call, params: Params) -> AcpResult:
        return Empty
