"""One connection in the native dialect: its greeting, what it follows, and the table of its handlers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
from anyio.abc import TaskGroup
from sidecar_protocol import messages as m
from sidecar_protocol.catalog import METHODS, VERSIONS, Method
from sidecar_protocol.errors import RpcError
from sidecar_protocol.messages.base import Empty, Key
from sidecar_protocol.peer import Call

from ...chat.chats import Chats
from ...rpc.dispatch import Dispatcher, Handler
from ...rpc.wire import Wire
from .attachments import Attachments
from .chats import ChatHandlers
from .client import Client, checked_tools
from .lazy import lazily
from .prompts import PromptHandlers
from .providers import ProviderHandlers
from .system import System, SystemHandlers
from .wire import address_of

_WORK = [
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
        "rules",
        "index",
        "snapshots",
        "hooks",
    )
] + ["chat/fork", "chat/rewind", "chat/context", "chat/compact", "chat/uncompact"]

_CUSTODY = ["data/purge", "projects/rebind", "stats/read"]


class Greeter(msgspec.Struct, frozen=True):
    """What the connection's own methods ask of the process."""

    hello: Callable[[], dict[str, Any]]
    ping: Callable[[], dict[str, Any]]
    greeted: Callable[[m.InitializeParams], None]
    shutdown: Callable[[int], Awaitable[m.ShutdownResult]]


class NativeFace:
    def __init__(
        self,
        ready: Callable[[], Awaitable[Chats]],
        system: System,
        greeter: Greeter,
        wire: Wire,
        tasks: TaskGroup,
        client: Client,
    ) -> None:
        self._greeter = greeter
        self._client = client
        self._greeting: m.InitializeParams | None = None
        self._attachments = Attachments(wire, tasks)
        chats = ChatHandlers(ready, self._attachments)
        prompts = PromptHandlers(ready, self._attachments)
        self.dispatcher = Dispatcher(
            {
                **self._own(),
                **chats.table(),
                **prompts.table(),
                **lazily(_WORK, lambda: _work(ready, self._attachments, client)),
                **lazily(_CUSTODY, lambda: _custody(ready)),
                **ProviderHandlers(system).table(),
                **SystemHandlers(ready, system).table(),
            },
            self._admit,
            lambda params: system.describe(address_of(params)) if isinstance(params, Key) else {},
        )

    def start_over(self) -> None:
        """The chats were made anew beneath the connection; the app opens them again."""
        self._attachments.detach_all()

    def greet(self, params: m.InitializeParams) -> None:
        """The client has said who it is, here or at the door."""
        self._greeting = params
        self._attachments.delta_ms = params.delta_ms
        self._client.greeted(params)
        self._greeter.greeted(params)

    def _own(self) -> Mapping[str, Handler]:
        return {
            "initialize": self._initialize,
            "ping": self._ping,
            "rpc.discover": self._discover,
            "shutdown": self._shutdown,
        }

    def _admit(self, method: Method) -> None:
        if self._greeting is None and not method.early:
            raise RpcError.named("not_initialized", "Send `initialize` first")

    async def _initialize(self, call: Call, params: m.InitializeParams) -> dict[str, Any]:
        if self._greeting is not None:
            raise RpcError.named("already_initialized", "`initialize` was answered before")
        if not set(params.versions) & set(VERSIONS):
            message = f"`versions`: this sidecar speaks {VERSIONS}"
            raise RpcError.named("unsupported_version", message, supported=VERSIONS)
        if params.delta_ms < 0 or (params.process_id is not None and params.process_id < 1):
            raise RpcError.named("invalid_params", "`deltaMs` and `processId` must not be negative")
        checked_tools(params.tools)
        self.greet(params)
        return self._greeter.hello()

    async def _ping(self, call: Call, params: Empty) -> dict[str, Any]:
        return self._greeter.ping()

    async def _discover(self, call: Call, params: Empty) -> dict[str, Any]:
        from sidecar_protocol.export import openrpc

        return openrpc()

    async def _shutdown(self, call: Call, params: m.ShutdownParams) -> m.ShutdownResult:
        return await self._greeter.shutdown(params.grace_ms)


def _work(
    ready: Callable[[], Awaitable[Chats]], attachments: Attachments, client: Client
) -> Mapping[str, Handler]:
    """The handlers of what has to do with tools."""
    from .branches import BranchHandlers
    from .context import ContextHandlers
    from .hooks import HookHandlers
    from .index import IndexHandlers
    from .permissions import PermissionHandlers
    from .snapshots import SnapshotHandlers
    from .tools import ToolHandlers
    from .work import WorkHandlers

    return {
        **BranchHandlers(ready, attachments).table(),
        **ContextHandlers(ready).table(),
        **IndexHandlers(ready).table(),
        **HookHandlers(ready).table(),
        **PermissionHandlers(ready).table(),
        **SnapshotHandlers(ready).table(),
        **ToolHandlers(ready, client).table(),
        **WorkHandlers(ready).table(),
    }


def _custody(ready: Callable[[], Awaitable[Chats]]) -> Mapping[str, Handler]:
    """The handlers of what is kept and for whom."""
    from .custody import CustodyHandlers

    return CustodyHandlers(ready).table()
