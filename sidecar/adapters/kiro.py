"""Kiro."""

from __future__ import annotations

from .base import Adapter, ServerFile

ADAPTER = Adapter(
    name="kiro",
    title="Kiro",
    clients=("Kiro CLI", "Kiro*"),
    servers=ServerFile(user=".kiro/settings/mcp.json", project=".kiro/settings/mcp.json"),
    program="kiro-cli",
)
