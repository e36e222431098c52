"""Pi."""

from __future__ import annotations

from ..system.lazy import lazy_module
from .base import Adapter, HookFile, ServerFile, plain_entry
from .hook_formats import ScriptFormat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from . import scripts
else:
    scripts = lazy_module("sidecar.adapters.scripts")


def _entry(command: list[str]) -> dict[str, Any]:
    """Declared to the model; by default Pi shows the tools of a server to its scripts alone."""
    return {**plain_entry(command), "exposure": "direct"}


ADAPTER = Adapter(
    name="pi",
    title="Pi",
    clients=("pi-coding-agent", "pi"),
    checked="documentation of November 2026",
    servers=ServerFile(user=".pi/agent/mcp.json", project=".pi/mcp.json", entry=_entry),
    hooks=HookFile(
        user=".pi/agent/extensions/sidecar.ts",
        project=".pi/extensions/sidecar.ts",
        format=ScriptFormat(),
        syntax="script",
        own=True,
        script=lambda command: scripts.pi_extension(command),
    ),
    program="pi",
    instructions="AGENTS.md",
    cannot=("Pi gives its MCP servers no session id: calls of the tools are in a chat of the project.",),
    notes=(
        "Versions of Pi without MCP servers ignore the first file; the second one works there too.",
        "Pi reads the files of a project only when the project is trusted.",
    ),
)
