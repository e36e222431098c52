"""OpenClaw."""

from __future__ import annotations

from .base import Adapter, ServerFile

ADAPTER = Adapter(
    name="openclaw",
    title="OpenClaw",
    clients=("openclaw-bundle-mcp",),
    servers=ServerFile(user=".openclaw/openclaw.json", project=None, container=("mcp", "servers")),
    program="openclaw",
)
