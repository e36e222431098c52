"""Oh My Pi."""

from __future__ import annotations

from ..system.lazy import lazy_module
from .base import Adapter, HookFile, ServerFile
from .hook_formats import ScriptFormat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import scripts
else:
    scripts = lazy_module("sidecar.adapters.scripts")

ADAPTER = Adapter(
    name="omp",
    title="Oh My Pi",
    clients=("omp-coding-agent",),
    checked="documentation of November 2026",
    servers=ServerFile(user=".omp/agent/mcp.json", project=".omp/mcp.json"),
    hooks=HookFile(
        user=".omp/agent/hooks/pre/sidecar.ts",
        project=".omp/hooks/pre/sidecar.ts",
        format=ScriptFormat(),
        syntax="script",
        own=True,
        script=lambda command: scripts.pi_extension(command),
    ),
    program="omp",
    instructions="AGENTS.md",
    cannot=(
        "Oh My Pi gives its MCP servers no session id: calls of the tools are in a chat of the project.",
    ),
)
