"""`sidecar serve` with options that need the parser: passes them to the early responder. Knows nothing of serving."""

from __future__ import annotations

from argparse import Namespace
from typing import NoReturn

from sidecar.server.bootstrap import serve
from sidecar.system.launch import ServeOptions


def serve_options(options: Namespace) -> NoReturn:
    given = {name: getattr(options, name, None) for name in ("data_dir", "config", "log_level", "chat_id")}
    serve(ServeOptions(framing=options.framing, **given))


def serve_agent(options: Namespace) -> NoReturn:
    """Serve a coding agent by MCP."""
    given = {name: getattr(options, name, None) for name in ("data_dir", "config", "log_level")}
    serve(ServeOptions(framing="lines", frontend="mcp", **given))
