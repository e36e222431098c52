"""MCP on the connection: both eras of its messages, and the table of its handlers. Decides nothing about tools."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import anyio
from sidecar_protocol.errors import RpcError
from sidecar_protocol.framing import Frame
from sidecar_protocol.jsonrpc import Notification
from sidecar_protocol.peer import Call, Cancelling, Peer

from ...chat.services.client_app import ClientApp
from ...rpc.dispatch import Dispatcher, Handler
from ...settings import SettingsError
from ...system.lazy import lazy_module
from .eras import CAPABILITIES, INSTRUCTIONS, SERVER_INFO, Caller, Handshake, complete, discovered
from .messages import METHODS, InitializeParams, ListParams, McpMethod, McpResult, Params
from .tool_table import SANDBOX_TOOLS, TOOLS

if TYPE_CHECKING:
    from ...chat.sessions.session import Session
    from ..base import StatusData
    from ..registry import FrontendConnection
    from . import agent, calls, library, questions
else:
    agent = lazy_module("sidecar.frontends.mcp.agent")
    calls = lazy_module("sidecar.frontends.mcp.calls")
    library = lazy_module("sidecar.frontends.mcp.library")
    questions = lazy_module("sidecar.frontends.mcp.questions")

logger = logging.getLogger(__name__)

FIRST_STORE_S = 1.0
"""The host lists the tools first; what that loads would delay its answer."""

CANCELLING = Cancelling("notifications/cancelled", "requestId", answers=False)


class McpFrontend:
    """Implements `Frontend` by the Model Context Protocol."""

    def __init__(self, connection: FrontendConnection) -> None:
        self._host = connection.host
        self._handshake = Handshake()
        self._app: ClientApp | None = None
        self._calls: calls.ToolCalls | None = None
        self._agents: agent.Agents | None = None
        self._tasks = connection.tasks
        self._connected = False
        self._peer = Peer(
            connection.wire.send,
            self._dispatcher().serve,
            self._on_notification,
            connection.tasks,
            CANCELLING,
        )

    @property
    def app(self) -> ClientApp:
        if self._app is None:
            self._app = questions.AgentApp(None)
        return self._app

    def receive(self, frame: Frame) -> None:
        self._peer.receive(frame)

    def send_status(self, type: str, data: StatusData) -> None:
        """MCP has no such message."""

    def report_access(self, session: Session) -> None:
        """MCP has no such message."""

    def reset(self) -> None:
        """Nothing to detach: every call finds its chat again."""

    def refuse(self) -> None:
        self._peer.refuse(_shutting_down())
        self._peer.cancel_calls()

    async def idle(self) -> None:
        await self._peer.idle()

    def abandon(self) -> None:
        self._peer.abandon()

    def _dispatcher(self) -> Dispatcher[McpMethod]:
        handlers: Mapping[str, Handler] = {
            "initialize": self._initialize,
            "server/discover": self._discover,
            "ping": self._ping,
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
            "resources/list": self._list_resources,
            "resources/templates/list": self._list_templates,
            "resources/read": self._read_resource,
            "prompts/list": self._list_prompts,
            "prompts/get": self._get_prompt,
        }
        return Dispatcher(METHODS, handlers, lambda method: None, lambda params: {})

    def _caller(self, call: Call) -> Caller:
        return self._handshake.caller_of(call.params)

    def _on_notification(self, message: Notification) -> None:
        if message.method not in ("notifications/initialized", "notifications/roots/list_changed"):
            logger.info("ignored a notification", extra={"method": message.method[:80]})

    async def _initialize(self, call: Call, params: InitializeParams) -> McpResult:
        version = self._handshake.begin(params.protocol_version, params.client_info, params.capabilities)
        caller = self._handshake.caller
        assert caller is not None
        self._connect(caller)
        return {
            "protocolVersion": version,
            "capabilities": CAPABILITIES,
            "serverInfo": SERVER_INFO,
            "instructions": INSTRUCTIONS,
        }

    async def _discover(self, call: Call, params: Params) -> McpResult:
        self._connect(self._caller(call))
        return discovered()

    async def _ping(self, call: Call, params: Params) -> McpResult:
        caller = self._handshake.caller
        return {} if caller else complete(self._caller(call), {})

    async def _list_tools(self, call: Call, params: ListParams) -> McpResult:
        caller = self._caller(call)
        hidden = self._hidden_tools(caller)
        tools = [tool.describe() for tool in TOOLS.values() if tool.name not in hidden]
        return complete(caller, {"tools": tools}, listed=True)

    def _hidden_tools(self, caller: Caller) -> Collection[str]:
        """The tools that the settings keep from this agent. To find out which agent it is takes a while, so only when
        something is set for one.
        """
        try:
            if not self._host.system.settings(None).agents:
                return ()
        except SettingsError:
            return ()  # a call says what is wrong
        chosen = self._known_agents().chosen(caller)
        if not chosen.enabled:
            return TOOLS
        return () if chosen.sandbox_tools else SANDBOX_TOOLS

    async def _call_tool(self, call: Call, params: Any) -> McpResult:
        caller = self._caller(call)
        return await self._tool_calls().run(caller, params)

    def _tool_calls(self) -> calls.ToolCalls:
        if self._calls is None:
            self._calls = calls.ToolCalls(self._known_agents(), self._host, self._peer, self._tasks)
        return self._calls

    def _known_agents(self) -> agent.Agents:
        if self._agents is None:
            self._agents = agent.Agents(self._host.opened_chats, lambda: self._host.system.settings(None))
        return self._agents

    def _connect(self, caller: Caller) -> None:
        """Take the name of the client, once; from now on the events of its hooks are stored."""
        if not self._connected:
            self._connected = True
            self._host.client_connected(f"{caller.name} {caller.client_version}".strip(), os.getppid())
            self._tasks.start_soon(self._store_events)

    async def _store_events(self) -> None:
        await anyio.sleep(FIRST_STORE_S)
        await self._tool_calls().store_events_forever()

    async def _list_resources(self, call: Call, params: ListParams) -> McpResult:
        caller, chats = self._caller(call), await self._host.opened_chats()
        found = await library.list_resources(chats, self._known_agents().project(caller), params.cursor)
        return complete(caller, found, listed=True)

    async def _list_templates(self, call: Call, params: ListParams) -> McpResult:
        return complete(self._caller(call), {"resourceTemplates": library.TEMPLATES}, listed=True)

    async def _read_resource(self, call: Call, params: Any) -> McpResult:
        caller, chats = self._caller(call), await self._host.opened_chats()
        found = await library.read_resource(chats, self._known_agents().project(caller), params.uri)
        return complete(caller, found, listed=True)

    async def _list_prompts(self, call: Call, params: ListParams) -> McpResult:
        return complete(self._caller(call), {"prompts": library.PROMPTS}, listed=True)

    async def _get_prompt(self, call: Call, params: Any) -> McpResult:
        return complete(self._caller(call), library.get_prompt(params.name, params.arguments))


def _shutting_down() -> RpcError:
    return RpcError.named("shutting_down", "The sidecar is shutting down", retryable=True)
