"""The agents that are known by name: how each is started, installed and logged in. Starts none."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import msgspec

from ...settings.engine_keys import DEFAULT_WINDOW
from ...system.programs import find_program

START_S = 60.0


class AgentCommand(msgspec.Struct, frozen=True):
    """How an agent is started. `variables` are (name, value) pairs; a value is compared with those of an engine that
    is open, so that a changed setting starts the agent again.
    """

    name: str
    title: str
    command: str
    args: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    install: str = ""
    """The command that installs it; empty for one of the user's own."""
    login: str = ""
    """What the user does to log in."""
    key_variables: tuple[str, ...] = ()
    """Environment variables with a key that it takes."""
    login_files: tuple[str, ...] = ()
    """Files below the home that a login leaves; any of them is enough."""
    method: str | None = None
    """The authentication method to ask for when the agent wants a login."""
    method_variable: str | None = None
    """The environment variable without which that method cannot work."""
    mode: str | None = None
    """The agent's own mode, where its default would act without asking."""
    model: str | None = None
    window: int = DEFAULT_WINDOW
    start_s: float = START_S

    def program(self, environ: Mapping[str, str]) -> str | None:
        """The absolute path of its program; None when it is not installed. Blocking."""
        if os.path.isabs(self.command):
            return self.command if os.access(self.command, os.X_OK) else None
        return find_program(self.command, environ.get("PATH", os.defpath))


_PRESETS = (
    AgentCommand(
        "claude-code",
        "Claude Code",
        "claude-agent-acp",
        # Claude Code refuses to start as root outside of a sandbox, with an error about its own options.
        variables=(("IS_SANDBOX", "1"),) if hasattr(os, "geteuid") and os.geteuid() == 0 else (),
        install="npm install -g @agentclientprotocol/claude-agent-acp",
        login="Run `claude` once and log in, or set ANTHROPIC_API_KEY",
        key_variables=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
        login_files=(".claude/.credentials.json",),
    ),
    AgentCommand(
        "codex",
        "Codex",
        "codex-acp",
        install="npm install -g @agentclientprotocol/codex-acp",
        login="Run `codex login`, or set OPENAI_API_KEY",
        key_variables=("OPENAI_API_KEY", "CODEX_API_KEY"),
        login_files=(".codex/auth.json",),
        # By default another model reviews what needs an approval, and the user is not asked.
        mode="read-only",
        method="openai-api-key",
        method_variable="OPENAI_API_KEY",
    ),
    AgentCommand(
        "gemini",
        "Gemini CLI",
        "gemini",
        ("--acp",),
        install="npm install -g @google/gemini-cli",
        login="Run `gemini` once and log in, or set GEMINI_API_KEY",
        key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        login_files=(".gemini/oauth_creds.json",),
        method="gemini-api-key",
        method_variable="GEMINI_API_KEY",
    ),
    AgentCommand(
        "opencode",
        "opencode",
        "opencode",
        ("acp",),
        install="npm install -g opencode-ai",
        login="Run `opencode auth login`",
    ),
    AgentCommand(
        "copilot",
        "GitHub Copilot CLI",
        "copilot",
        ("--acp", "--no-auto-update"),
        install="npm install -g @github/copilot",
        login="Run `copilot` once and type /login",
    ),
    AgentCommand(
        "qwen-code",
        "Qwen Code",
        "qwen",
        ("--acp",),
        install="npm install -g @qwen-code/qwen-code",
        login="Run `qwen` once and log in, or set OPENAI_API_KEY",
        key_variables=("OPENAI_API_KEY",),
        login_files=(".qwen/oauth_creds.json",),
        method="openai",
        method_variable="OPENAI_API_KEY",
    ),
    AgentCommand(
        "goose",
        "goose",
        "goose",
        ("acp",),
        install="Install goose (block.github.io/goose)",
        login="Run `goose configure`",
    ),
)

PRESETS: Mapping[str, AgentCommand] = {preset.name: preset for preset in _PRESETS}
"""The agents that need no settings. `[engines.NAME]` of the same name changes one."""


def configured_agents(tables: Mapping[str, Mapping[str, Any]]) -> dict[str, AgentCommand]:
    """The presets and the agents of the tables `[engines.NAME]`, by name."""
    found = dict(PRESETS)
    for name, table in tables.items():
        base = found.get(name)
        command = table.get("command")
        if base is None and not command:
            continue  # a table without a command that is no preset names nothing to start
        base = base or AgentCommand(name, name, "")
        found[name] = AgentCommand(
            name=name,
            title=base.title,
            command=command or base.command,
            args=tuple(table.get("args", ())) if command or "args" in table else base.args,
            variables=(*base.variables, *sorted((table.get("env") or {}).items())),
            install=base.install if not command else "",
            login=base.login,
            key_variables=base.key_variables,
            login_files=base.login_files,
            method=table.get("login") or base.method,
            method_variable=None if table.get("login") else base.method_variable,
            mode=table.get("mode") or base.mode,
            model=table.get("model") or base.model,
            window=table.get("window") or base.window,
            start_s=table.get("start_timeout") or base.start_s,
        )
    return found


def copilot_runtime(tables: Mapping[str, Mapping[str, Any]]) -> AgentCommand:
    """The runtime of the Copilot engine, with what `[engines.copilot]` sets; its `command` is empty unless set."""
    table = tables.get("copilot", {})
    return AgentCommand(
        "copilot",
        "GitHub Copilot",
        table.get("command") or "",
        tuple(table.get("args", ())),
        variables=tuple(sorted((table.get("env") or {}).items())),
        model=table.get("model"),
        window=table.get("window") or DEFAULT_WINDOW,
        start_s=table.get("start_timeout") or START_S,
    )
