"""VS Code, with GitHub Copilot."""

from __future__ import annotations

import sys

from .base import Adapter, HookFile, ServerFile, stdio_entry
from .hook_formats import HookFormat

_FOLDERS = {"darwin": "Library/Application Support/Code/User", "win32": "AppData/Roaming/Code/User"}

ADAPTER = Adapter(
    name="vscode",
    title="VS Code",
    clients=("Visual-Studio-Code", "Visual Studio Code*"),
    checked="documentation of October 2026",
    hook_marks=("hookEventName",),
    servers=ServerFile(
        user=f"{_FOLDERS.get(sys.platform, '.config/Code/User')}/mcp.json",
        project=".vscode/mcp.json",
        container=("servers",),
        entry=stdio_entry,
        moved=("XDG_CONFIG_HOME", "Code/User/mcp.json") if sys.platform == "linux" else None,
    ),
    hooks=HookFile(
        user=".claude/settings.json",
        project=".github/hooks/sidecar-vscode.json",
        format=HookFormat(),
        shared={"user": ".claude/settings.json", "project": ".claude/settings.json"},
    ),
    program="code",
    instructions="AGENTS.md",
    notes=("Hooks are a preview in VS Code, and an organization can switch them off.",),
)
