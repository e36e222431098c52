"""OpenCode."""

from __future__ import annotations

from ..system.lazy import lazy_module
from .base import Adapter, Connected, HookFile, ServerFile, list_entry
from .hook_formats import ScriptFormat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import scripts
    from .base import Problem
else:
    scripts = lazy_module("sidecar.adapters.scripts")


def _problems(connected: Connected) -> list[Problem]:
    """What its plugins need is installed by itself, which fails slowly without a network."""
    folder = (connected.hooks or "").removesuffix("/plugins/sidecar.js")
    if connected.hooks is None or connected.exists(f"{folder}/node_modules/@opencode-ai/plugin"):
        return []
    said = "OpenCode installs what plugins need at its next start, which takes 70 s without a network"
    return [(said, "Start it once with a network, or connect it with `--no-hooks`")]


ADAPTER = Adapter(
    name="opencode",
    title="OpenCode",
    clients=("opencode",),
    checked="1.18.34",
    marks=("OPENCODE",),
    servers=ServerFile(
        user=".config/opencode/opencode.json",
        project="opencode.json",
        container=("mcp",),
        entry=list_entry,
        moved=("XDG_CONFIG_HOME", "opencode/opencode.json"),
    ),
    hooks=HookFile(
        user=".config/opencode/plugins/sidecar.js",
        project=".opencode/plugins/sidecar.js",
        format=ScriptFormat(),
        syntax="script",
        own=True,
        moved=("XDG_CONFIG_HOME", "opencode/plugins/sidecar.js"),
        script=lambda command: scripts.opencode_plugin(command),
    ),
    program="opencode",
    instructions="AGENTS.md",
    cannot=(
        "OpenCode gives its MCP servers no session id: calls of the tools are in a chat of the project, beside those"
        " of the sessions.",
    ),
    notes=(
        "A plugin makes OpenCode install `@opencode-ai/plugin` at its next start; without a network that start, and"
        " each one until it is installed, takes 70 s. `--no-hooks` connects the tools alone.",
    ),
    problems=_problems,
)
