"""The values of options and settings that several layers name. Imports nothing: settings are read before `typing` is
needed. Where messages are decoded by these types, `Literal[MODES]` makes one.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    Mode = Literal["ask", "accept-edits", "read-only", "auto"]
    Sandbox = Literal["auto", "require", "off"]
    GateSwitch = Literal["auto", "always", "never"]
    LogLevel = Literal["error", "warn", "info", "debug", "trace"]

MODES: tuple[Mode, ...] = ("ask", "accept-edits", "read-only", "auto")
SANDBOXES: tuple[Sandbox, ...] = ("auto", "require", "off")
GATE_SWITCHES: tuple[GateSwitch, ...] = ("auto", "always", "never")
LOG_LEVELS: tuple[LogLevel, ...] = ("error", "warn", "info", "debug", "trace")

AGENTS = (
    *(
        "claude-code",
        "codex",
        "gemini-cli",
        "opencode",
        "copilot",
        "qwen-code",
        "openclaw",
        "cursor",
        "vscode",
    ),
    *("zed", "windsurf", "kiro", "jetbrains", "codebuddy", "kilo", "kimi", "pi", "omp"),
)
"""The coding agents that a command or a setting may name. `sidecar/adapters/registry.py` has them: a test compares
both."""

HELPER_FLAG = "--helper"
"""The first argument of a frozen program that runs as one of its helpers; see `helper_programs`."""
