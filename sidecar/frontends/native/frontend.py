"""The native dialect on the connection: its `initialize`, its attachments, and the table of its handlers."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

import msgspec
from sidecar_protocol import messages as m
from sidecar_protocol.catalog import METHODS, Method
from sidecar_protocol.errors import RpcError
from sidecar_protocol.framing import Frame
from sidecar_protocol.jsonrpc import Notification, notification
from sidecar_protocol.limits import VERSIONS
from sidecar_protocol.messages.base import Empty, Key
from sidecar_protocol.peer import Call, Peer

from ...chat.services.client_app import ClientApp
from ...chat.sessions.chats import Chats
from ...chat.sessions.session import Session
from ...model.failures import Failure, StorageFailed
from ...rpc.dispatch import Dispatcher, Handler
from ...rpc.wire import MessageWriter
from ...system.lazy import lazy_module
from .chats import ChatHandlers
from .client import NativeClientApp, checked_tools
from .events import NativeAttachments, native_attachments
from .lazy import lazy_handlers
from .prompts import PromptHandlers
from .providers import ProviderHandlers
from .system import SystemHandlers
from .wire import address_of, owner_of

if TYPE_CHECKING:
    from sidecar_protocol import export

    from ..base import InitializeResult, PingResult, StatusData
    from ..registry import FrontendConnection
    from . import branches, context, data, files, history, hooks, index, permissions, snapshots, tools
else:
    branches = lazy_module("sidecar.frontends.native.branches")
    context = lazy_module("sidecar.frontends.native.context")
    data = lazy_module("sidecar.frontends.native.data")
    files = lazy_module("sidecar.frontends.native.files")
    history = lazy_module("sidecar.frontends.native.history")
    hooks = lazy_module("sidecar.frontends.native.hooks")
    index = lazy_module("sidecar.frontends.native.index")
    permissions = lazy_module("sidecar.frontends.native.permissions")
    snapshots = lazy_module("sidecar.frontends.native.snapshots")
    tools = lazy_module("sidecar.frontends.native.tools")
    export = lazy_module("sidecar_protocol.export")

logger = logging.getLogger(__name__)

_TOOL_METHODS = [
    name
    for name, method in METHODS.items()
    if method.name.partition("/")[0]
    in (
        "files",
        "patches",
        "git",
        "permission",
        "input",
        "permissionRules",
        "tools",
        "commands",
        "engines",
        "rules",
        "index",
        "snapshots",
        "hooks",
    )
] + ["chat/fork", "chat/rewind", "chat/context", "chat/compact", "chat/uncompact"]

_DATA_METHODS = ["data/purge", "history/import", "projects/rebind", "stats/read"]


class NativeFrontend:
    """Implements `Frontend` by the wire contract."""

    def __init__(self, connection: FrontendConnection) -> None:
        self._host = connection.host
        self._early = connection.early
        self._send = connection.wire.send
        self._initialize_params: m.InitializeParams | None = None
        self._app = NativeClientApp(lambda method, params: self._peer.request(method, params))
        self._attachments = native_attachments(connection.wire, connection.tasks)
        self._peer = Peer(
            self._send, self._dispatcher(connection).serve, self._on_notification, connection.tasks
        )
        if connection.greeting is not None:
            self._on_initialize(msgspec.convert(connection.greeting, m.InitializeParams))

    @property
    def app(self) -> ClientApp:
        return self._app

    def receive(self, frame: Frame) -> None:
        self._peer.receive(frame)

    def send_status(self, type: str, data: StatusData) -> None:
        self._send(notification("status", {"type": type, "data": data}))

    def report_access(self, session: Session) -> None:
        if self._attachments.get(session):
            key, owner = session.chat.key, owner_of(session.holder)
            data = {"sessionId": key.session_id, "chatId": key.chat_id}
            data["access"] = "reader" if owner else "writer"
            self.send_status("access", {**data, **({"owner": owner} if owner else {})})

    def reset(self) -> None:
        """Detach everything, because the database was replaced; the app opens its chats again."""
        self._attachments.detach_all()

    def refuse(self) -> None:
        self._peer.refuse(RpcError.named("shutting_down", "The sidecar is shutting down", retryable=True))

    async def idle(self) -> None:
        await self._peer.idle()

    def abandon(self) -> None:
        self._peer.abandon()

    def _dispatcher(self, connection: FrontendConnection) -> Dispatcher[Method]:
        host, attachments, app = self._host, self._attachments, self._app
        ready = host.opened_chats
        return Dispatcher(
            METHODS,
            {
                **self._connection_handlers(),
                **ChatHandlers(ready, attachments, connection.wire).handlers(),
                **PromptHandlers(ready, attachments).handlers(),
                **lazy_handlers(
                    _TOOL_METHODS, lambda: _tool_handlers(ready, attachments, app, connection.wire)
                ),
                **lazy_handlers(_DATA_METHODS, lambda: _data_handlers(ready, connection.wire)),
                **ProviderHandlers(host.system, connection.wire).handlers(),
                **SystemHandlers(ready, host.system).handlers(),
            },
            self._check_initialized,
            lambda params: host.system.describe(address_of(params)) if isinstance(params, Key) else {},
            self._await_repair,
        )

    async def _await_repair(self, failure: Failure) -> bool:
        """Wait for the repair of a damaged database that a request met; False when there is none."""
        if not isinstance(failure, StorageFailed) or failure.reason != "corrupt":
            return False
        return await (await self._host.opened_chats()).store.await_repair()

    def _on_initialize(self, params: m.InitializeParams) -> None:
        """Apply the client's `initialize`, whether this or the bootstrap answered it."""
        self._initialize_params = params
        self._attachments.delta_ms = params.delta_ms
        self._app.on_initialize(params)
        self._host.client_connected(
            f"{params.client.name} {params.client.version}".strip(), params.process_id
        )

    def _on_notification(self, message: Notification) -> None:
        if message.method == "exit":
            self._host.begin_exit(0)
        elif message.method == "$/cancelRequest":
            self._host.system.cancel_loading(str(message.params.get("id")))
        else:
            logger.info("ignored a notification", extra={"method": message.method[:80]})

    def _connection_handlers(self) -> Mapping[str, Handler]:
        return {
            "initialize": self._initialize,
            "ping": self._ping,
            "rpc.discover": self._discover,
            "shutdown": self._shutdown,
        }

    def _check_initialized(self, method: Method) -> None:
        if self._initialize_params is None and not method.early:
            raise RpcError.named("not_initialized", "Send `initialize` first")

    async def _initialize(self, call: Call, params: m.InitializeParams) -> InitializeResult:
        if self._initialize_params is not None:
            raise RpcError.named("already_initialized", "`initialize` was answered before")
        if not set(params.versions) & set(VERSIONS):
            message = f"`versions`: this sidecar speaks {[*VERSIONS]}"
            raise RpcError.named("unsupported_version", message, supported=[*VERSIONS])
        if params.delta_ms < 0 or (params.process_id is not None and params.process_id < 1):
            raise RpcError.named("invalid_params", "`deltaMs` and `processId` must not be negative")
        checked_tools(params.tools)
        self._on_initialize(params)
        return self._early.initialize_result()

    async def _ping(self, call: Call, params: Empty) -> PingResult:
        return self._early.ping(self._peer.inflight - 1)

    async def _discover(self, call: Call, params: Empty) -> Mapping[str, object]:
        return export.openrpc()

    async def _shutdown(self, call: Call, params: m.ShutdownParams) -> m.ShutdownResult:
        return m.ShutdownResult(
            chats=[
                m.ShutdownChat(
                    session_id=session.chat.key.session_id,
                    chat_id=session.chat.key.chat_id,
                    state=session.chat.state,
                    last_seq=session.recorder.last_seq,
                )
                for session in await self._host.shut_down(params.grace_ms)
            ]
        )


def _tool_handlers(
    ready: Callable[[], Awaitable[Chats]],
    attachments: NativeAttachments,
    client: NativeClientApp,
    wire: MessageWriter,
) -> Mapping[str, Handler]:
    """The handlers of methods about tools."""
    return {
        **branches.BranchHandlers(ready, attachments, wire).handlers(),
        **context.ContextHandlers(ready).handlers(),
        **index.IndexHandlers(ready, wire).handlers(),
        **hooks.HookHandlers(ready).handlers(),
        **permissions.PermissionHandlers(ready).handlers(),
        **snapshots.SnapshotHandlers(ready).handlers(),
        **tools.ToolHandlers(ready, client).handlers(),
        **files.FileHandlers(ready).handlers(),
    }


def _data_handlers(ready: Callable[[], Awaitable[Chats]], wire: MessageWriter) -> Mapping[str, Handler]:
    """The handlers of methods about stored data."""
    return {**data.DataHandlers(ready).handlers(), **history.HistoryHandlers(ready, wire).handlers()}
