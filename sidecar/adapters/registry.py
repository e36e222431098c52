"""All adapters, and which one a client of MCP is.

The name that a client gives counts first: an agent that another one started inherits the other's variables.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from ..model import JsonObject
from . import (
    claude_code,
    codebuddy,
    codex,
    copilot,
    cursor,
    gemini_cli,
    jetbrains,
    kilo,
    kimi,
    kiro,
    omp,
    openclaw,
    opencode,
    pi,
    qwen_code,
    vscode,
    windsurf,
    zed,
)
from .base import Adapter

ADAPTERS: dict[str, Adapter] = {
    module.ADAPTER.name: module.ADAPTER
    for module in (
        claude_code,
        codex,
        gemini_cli,
        opencode,
        copilot,
        qwen_code,
        openclaw,
        cursor,
        vscode,
        zed,
        windsurf,
        kiro,
        jetbrains,
        codebuddy,
        kilo,
        kimi,
        pi,
        omp,
    )
}
"""An agent is supported because it is in this table."""

UNKNOWN = Adapter(name="mcp", title="MCP client", clients=())
"""A client that no adapter knows."""


def detect(client: str, environ: Mapping[str, str], chosen: str | None = None) -> Adapter:
    """The adapter for a client: by its name, by the user's choice, by the environment."""
    return (
        _by_client(client)
        or (ADAPTERS.get(chosen) if chosen else None)
        or next((one for one in ADAPTERS.values() if any(mark in environ for mark in one.marks)), None)
        or UNKNOWN
    )


def session_id(adapter: Adapter, meta: JsonObject, environ: Mapping[str, str] = os.environ) -> str | None:
    """The id that the agent gives its session; None when it gives its MCP servers none."""
    found: object = meta
    for name in adapter.session_meta:
        found = found.get(name) if isinstance(found, dict) else None
    if adapter.session_meta and isinstance(found, str) and found:
        return found
    return environ.get(adapter.session_variable or "") or None


def _by_client(client: str) -> Adapter | None:
    return next(
        (one for one in ADAPTERS.values() if any(_matches(client, name) for name in one.clients)), None
    )


def _matches(client: str, name: str) -> bool:
    return client.startswith(name[:-1]) if name.endswith("*") else client == name
