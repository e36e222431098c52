"""The MCP session as far as tools need it: initialize, list, call. The only module that drives the SDK's session.

Importing the SDK takes most of a second: `connection` imports this module and the links in a thread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from httpx2 import TransportError
from mcp.client.session import ClientSession
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    METHOD_NOT_FOUND,
    UNSUPPORTED_PROTOCOL_VERSION,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    Implementation,
    PaginatedRequestParams,
    ToolListChangedNotification,
)
from pydantic import ValidationError

from ... import __version__
from ...model import JsonObject
from ..base import ToolOutcome
from .links import ServerLink, innermost_error
from .offers import ToolOffer, clean_text, outcome_of, parse_offers

MAX_LISTED = 2000
MAX_PAGES = 100
"""Pages of a list of tools: an endless list is read no further."""

MAX_REASON = 300
"""Characters of the SDK's message about a wrong answer, which may quote all of it."""

NOISY_LOGGERS = ("mcp", "client", "httpx2", "httpcore2")
"""Loggers of the SDK whose lower levels log messages, addresses and session ids."""

ToolListing = tuple[list[ToolOffer], list[str]]


class ConnectionLost(Exception):
    """The connection ended before the answer came."""


def silence_loggers() -> None:
    """Let the SDK log no more than warnings."""
    for name in NOISY_LOGGERS:
        logger = logging.getLogger(name)
        logger.setLevel(max(logging.WARNING, logger.level))


def make_session(link: ServerLink, tools_changed: Callable[[], None]) -> ClientSession:
    """Return a session over this link, to be entered and exited by one task."""

    async def on_message(message: Any) -> None:
        if isinstance(message, ToolListChangedNotification):
            tools_changed()

    info = Implementation(name="sidecar", version=__version__)
    return ClientSession(link.read, link.write, message_handler=on_message, client_info=info)


async def initialize(session: ClientSession) -> ToolListing:
    """Initialize the session, with the older handshake first since all servers support it, and list the tools."""
    try:
        await session.initialize()
    except MCPError as error:
        # Only these mean that the server knows the newer handshake alone; after another error it would fail
        # again.
        if error.code not in (METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION):
            raise
        await session.discover()
    return await list_tools(session)


async def list_tools(session: ClientSession) -> ToolListing:
    """Return the tools of all pages, and the names of those that are not mounted."""
    capabilities = session.server_capabilities
    if capabilities is None or capabilities.tools is None:
        return [], []
    tools: list[Any] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor) if cursor else None)
        tools += page.tools
        cursor = page.next_cursor
        if not cursor or len(tools) >= MAX_LISTED:
            break
    return parse_offers(tools[:MAX_LISTED])


async def call_tool(
    session: ClientSession, name: str, arguments: JsonObject, progress: ProgressFnT
) -> ToolOutcome:
    """Call a tool. A cancelled call sends the cancellation to the server. Raises ConnectionLost when the connection
    ends.

    Not with the SDK's `call_tool`: that validates the answer against a schema of the server, whose patterns may take
    forever, and discards the answer when it does not fit.
    """
    request = CallToolRequest(params=CallToolRequestParams(name=name, arguments=arguments))
    try:
        result = await session.send_request(request, CallToolResult, progress_callback=progress)
        return outcome_of(result)
    except MCPError as error:
        if error.code == CONNECTION_CLOSED:
            raise ConnectionLost(error.message) from error
        return ToolOutcome(f"The server refused the call: {_truncate(error.message)}", failed=True)
    except (ValueError, RuntimeError) as error:
        return ToolOutcome(f"The call failed: {error_reason(error)}", failed=True)


def error_reason(error: BaseException) -> str:
    """Return the message of an SDK exception, without the exception groups around it."""
    error = innermost_error(error)
    if isinstance(error, MCPError):
        return _truncate(error.message)
    if isinstance(error, ValidationError):
        flaw = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(step) for step in flaw["loc"])
        return f"the server's answer is not what MCP allows: `{_truncate(place)}`: {_truncate(flaw['msg'])}"
    said = _truncate(str(error)) or type(error).__name__
    return f"it cannot be reached: {said}" if isinstance(error, TransportError) else said


def _truncate(text: str) -> str:
    text = clean_text(" ".join(text.split()))
    return text if len(text) <= MAX_REASON else f"{text[:MAX_REASON]}…"
