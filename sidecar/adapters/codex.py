"""Codex."""

from __future__ import annotations

from .base import Adapter, Connected, HookFile, ServerFile
from .hook_formats import CLAUDE_EVENTS, HookFormat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .base import Problem


def _problems(connected: Connected) -> list[Problem]:
    found: list[Problem] = []
    user = connected.servers if connected.scope == "user" else f"{connected.home}/.codex/config.toml"
    if connected.scope == "project":
        level = connected.value(user, "projects", connected.project, "trust_level")
        if level != "trusted":
            found.append(
                ("Codex does not read the files of a project that is not trusted", "Trust it in Codex")
            )
    if connected.hooks is None:
        return found
    if connected.value(user, "features", "hooks") is False:
        found.append(("Codex runs no hooks", f"Remove `hooks = false` from [features] in {user}"))
    state = connected.value(user, "hooks", "state") or {}
    known = [dict(state[name]) for name in state if str(name).startswith(f"{connected.hooks}:")]
    if sum("trusted_hash" in one for one in known) < len(CLAUDE_EVENTS):
        action = "Start Codex and trust them when it asks, or use /hooks in it"
        found.append(("Codex runs no hook that you have not trusted, and has no trust for ours", action))
    if any(one.get("enabled") is False for one in known):
        found.append(("Hooks of ours are switched off in Codex", "Switch them on with /hooks in it"))
    return found


ADAPTER = Adapter(
    name="codex",
    title="Codex",
    clients=("codex-mcp-client",),
    checked="0.169.0",
    session_meta=("x-codex-turn-metadata", "session_id"),
    servers=ServerFile(
        user=".codex/config.toml",
        project=".codex/config.toml",
        container=("mcp_servers",),
        syntax="toml",
        moved=("CODEX_HOME", "config.toml"),
    ),
    hooks=HookFile(
        user=".codex/hooks.json",
        project=".codex/hooks.json",
        format=HookFormat(),
        moved=("CODEX_HOME", "hooks.json"),
    ),
    program="codex",
    instructions="AGENTS.md",
    notes=(
        "Codex runs no hook that you have not trusted: it asks when it starts, or use /hooks in it.",
        "Codex reads `.codex/` of a project only when the project is trusted.",
    ),
    problems=_problems,
)
