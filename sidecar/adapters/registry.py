"""All adapters, and which one a client of MCP is.

The name that a client gives counts first, then the user's choice: an agent that another one started inherits the
other's variables, and works in folders that others have been in too.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping

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

_SHARED = {".config", ".github", ".mcp.json", ".vscode"}
"""Names that say nothing: several agents use them."""

UNKNOWN = Adapter(name="mcp", title="MCP client", clients=(), checked="documentation of the protocol")
"""A client that no adapter knows."""


def detect(
    client: str,
    environ: Mapping[str, str],
    chosen: str | None = None,
    *,
    guess: bool = True,
    folders: Iterable[Collection[str]] = (),
    parents: Iterable[str] = (),
) -> Adapter:
    """The adapter for a client: by its name, then by the user's choice; with `guess` also by the environment, by what
    is in the project and in the home (`folders` has the names in each), and by the names of the parent processes.
    """
    named = _by_client(client) or (ADAPTERS.get(chosen) if chosen else None)
    if named is not None:
        return named
    if not guess:
        return UNKNOWN
    by_folder = (found for names in folders if (found := _by_names(names)))
    by_program = (one for name in parents for one in ADAPTERS.values() if one.program == name)
    return _by_marks(environ) or next(by_folder, None) or next(by_program, None) or UNKNOWN


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


def _by_marks(environ: Mapping[str, str]) -> Adapter | None:
    """The one agent whose variables are set; several are set when one agent has started another."""
    return _only(one for one in ADAPTERS.values() if any(mark in environ for mark in one.marks))


def _by_names(names: Collection[str]) -> Adapter | None:
    """The one agent that keeps something in a folder with these names."""
    return _only(one for one in ADAPTERS.values() if not _own_names(one).isdisjoint(names))


def _own_names(adapter: Adapter) -> set[str]:
    """The names of what the agent alone keeps in a home or a project."""
    files = [file for file in (adapter.servers, adapter.hooks) if file]
    shared = set(adapter.hooks.shared.values()) if adapter.hooks else set()
    paths = {path for file in files for path in (file.user, file.project) if path} - shared
    return {name for path in paths if (name := path.partition("/")[0]).startswith(".")} - _SHARED


def _only(found: Iterable[Adapter]) -> Adapter | None:
    listed = list(found)
    return listed[0] if len(listed) == 1 else None
