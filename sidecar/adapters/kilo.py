"""Kilo."""

from __future__ import annotations

from ..system.lazy import lazy_module
from .base import Adapter, HookFile, ServerFile, list_entry
from .hook_formats import ScriptFormat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import scripts
else:
    scripts = lazy_module("sidecar.adapters.scripts")

ADAPTER = Adapter(
    name="kilo",
    title="Kilo",
    clients=("kilo*",),
    checked="documentation of November 2026",
    servers=ServerFile(
        user=".config/kilo/kilo.json",
        project="kilo.json",
        container=("mcp",),
        entry=list_entry,
        moved=("XDG_CONFIG_HOME", "kilo/kilo.json"),
    ),
    hooks=HookFile(
        user=".config/kilo/plugins/sidecar.js",
        project=".kilo/plugins/sidecar.js",
        format=ScriptFormat(),
        syntax="script",
        own=True,
        moved=("XDG_CONFIG_HOME", "kilo/plugins/sidecar.js"),
        script=lambda command: scripts.opencode_plugin(command),
    ),
    program="kilo",
    instructions="AGENTS.md",
    cannot=("Kilo gives its MCP servers no session id: calls of the tools are in a chat of the project.",),
)
