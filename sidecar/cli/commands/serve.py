"""`sidecar serve` with options that need the parser: passes them to the early responder. Knows nothing of serving."""

from __future__ import annotations

from argparse import Namespace
from typing import Any, NoReturn

from sidecar.server.bootstrap import serve
from sidecar.system.launch import ServeOptions


def serve_options(options: Namespace) -> NoReturn:
    serve(ServeOptions(framing=options.framing, **_given(options)))


def serve_agent(options: Namespace) -> NoReturn:
    """Serve a coding agent by MCP."""
    serve(ServeOptions(framing="lines", frontend="mcp", **_given(options)))


def serve_editor(options: Namespace) -> NoReturn:
    """Serve an editor by the Agent Client Protocol."""
    serve(ServeOptions(framing="lines", frontend="acp", **_given(options)))


def _given(options: Namespace) -> dict[str, Any]:
    return {name: getattr(options, name, None) for name in ("data_dir", "config", "log_level", "chat_id")}
