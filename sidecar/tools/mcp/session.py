"""The MCP conversation as far as tools need it: greeting, listing, calling. Only here is the SDK's session driven.

Importing the SDK takes most of a second, so nothing of it is imported before `load` has done so in a thread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..base import Outcome
from .links import Link
from .offers import Offer, offers_of, outcome_of, well_formed

if TYPE_CHECKING:
    from mcp.client.session import ClientSession
    from mcp.shared.dispatcher import ProgressFnT

MAX_LISTED = 2000
MAX_PAGES = 100
"""A list of tools that goes on for ever is read no further."""

MAX_REASON = 300
"""Of the words in which the SDK says what is wrong with an answer; they may quote the whole of it."""

TALKATIVE = ("mcp", "client", "httpx2", "httpcore2")
"""Loggers of the SDK whose lower lines carry messages, addresses and session ids."""

Listed = tuple[list[Offer], list[str]]


class Lost(Exception):
    """The connection ended before the answer came."""


def load() -> None:
    """Import the SDK."""
    import mcp.client.session
    import mcp.client.streamable_http  # noqa: F401

    for name in TALKATIVE:
        logger = logging.getLogger(name)
        logger.setLevel(max(logging.WARNING, logger.level))


def session_over(link: Link, tools_changed: Callable[[], None]) -> ClientSession:
    """A conversation over this link, to be entered and left by one task."""
    from mcp.client.session import ClientSession
    from mcp_types import Implementation, ToolListChangedNotification

    from ... import __version__

    async def heard(message: Any) -> None:
        if isinstance(message, ToolListChangedNotification):
            tools_changed()

    info = Implementation(name="sidecar", version=__version__)
    return ClientSession(link.read, link.write, message_handler=heard, client_info=info)


async def greet(session: ClientSession) -> Listed:
    """Shake hands, the older way first since all servers in the field know it, and list the tools."""
    from mcp.shared.exceptions import MCPError
    from mcp_types import METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION

    try:
        await session.initialize()
    except MCPError as error:
        if error.code not in (METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION):
            raise
        await session.discover()
    return await listed(session)


async def listed(session: ClientSession) -> Listed:
    """The tools of all pages, and the names of those that are left out."""
    from mcp_types import PaginatedRequestParams

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
    return offers_of(tools[:MAX_LISTED])


async def ask(session: ClientSession, name: str, arguments: dict[str, Any], progress: ProgressFnT) -> Outcome:
    """Call a tool. Cancelled, it tells the server so. Raises Lost when the connection ends.

    Not by the SDK's `call_tool`: that checks the answer against a schema of the server's, whose patterns may take
    for ever, and throws the answer away when it does not fit.
    """
    from mcp.shared.exceptions import MCPError
    from mcp_types import CONNECTION_CLOSED, CallToolRequest, CallToolRequestParams, CallToolResult

    request = CallToolRequest(params=CallToolRequestParams(name=name, arguments=arguments))
    try:
        result = await session.send_request(request, CallToolResult, progress_callback=progress)
        return outcome_of(result)
    except MCPError as error:
        if error.code == CONNECTION_CLOSED:
            raise Lost(error.message) from error
        return Outcome(f"The server refused the call: {_cut(error.message)}", failed=True)
    except (ValueError, RuntimeError) as error:
        return Outcome(f"The call failed: {reason(error)}", failed=True)


def reason(error: BaseException) -> str:
    """What an exception of the SDK says, without the groups around it."""
    from httpx2 import TransportError
    from mcp.shared.exceptions import MCPError
    from pydantic import ValidationError

    error = innermost(error)
    if isinstance(error, MCPError):
        return _cut(error.message)
    if isinstance(error, ValidationError):
        flaw = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(step) for step in flaw["loc"])
        return f"the server's answer is not what MCP allows: `{_cut(place)}`: {_cut(flaw['msg'])}"
    said = _cut(str(error)) or type(error).__name__
    return f"it cannot be reached: {said}" if isinstance(error, TransportError) else said


def innermost(error: BaseException) -> BaseException:
    """The first exception in a group that is none itself."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _cut(text: str) -> str:
    text = well_formed(" ".join(text.split()))
    return text if len(text) <= MAX_REASON else f"{text[:MAX_REASON]}…"
