"""An MCP server by the SDK: on stdio, or with `http PORT` on loopback, where it prints its port first."""

from __future__ import annotations

import socket
import sys

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

server = MCPServer("sdk")


@server.tool(annotations=ToolAnnotations(read_only_hint=True, title="Add up"))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def divide(a: int, b: int) -> float:
    """Divide a number by another."""
    if b == 0:
        raise ToolError("division by nothing")
    return a / b


@server.tool()
async def wait(context: Context) -> str:
    """Say so, then wait for ever."""
    await context.report_progress(1, 2, "waiting")
    await anyio.sleep_forever()
    return "never"


async def serve_http(port: int) -> None:
    import uvicorn

    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen()
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    await uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="error")).serve([listener])


if sys.argv[2:3] == ["http"]:
    anyio.run(serve_http, int(sys.argv[3]))
else:
    server.run()
