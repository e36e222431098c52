"""Zed."""

from __future__ import annotations

from .base import Adapter, ServerFile

ADAPTER = Adapter(
    name="zed",
    title="Zed",
    clients=("Zed",),
    servers=ServerFile(
        user=".config/zed/settings.json", project=".zed/settings.json", container=("context_servers",)
    ),
    program="zed",
    instructions="AGENTS.md",
)
