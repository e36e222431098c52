"""Zed."""

from __future__ import annotations

from .base import Adapter, ServerFile

ADAPTER = Adapter(
    name="zed",
    title="Zed",
    clients=("Zed",),
    checked="documentation of November 2026",
    servers=ServerFile(
        user=".config/zed/settings.json",
        project=".zed/settings.json",
        container=("context_servers",),
        moved=("XDG_CONFIG_HOME", "zed/settings.json"),
    ),
    program="zed",
    instructions="AGENTS.md",
    cannot=("Zed has no hooks: it gets the tools, and with `--project` a block of instructions.",),
)
