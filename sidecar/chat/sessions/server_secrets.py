"""Takes the secrets of MCP servers out of a configuration change. `ToolEnvironment.mcp_servers` puts them back."""

from __future__ import annotations

from ...model import mcp_secrets
from ...model.chats import OwnConfig
from ...model.failures import Refused
from ...model.mcp_secrets import Secrets
from ...settings.tables import MASK
from ...store import Store


async def take_secrets(store: Store, chat: int, changes: OwnConfig) -> tuple[OwnConfig, Secrets | None]:
    """The changes with masked secrets, and the chat's secrets from now on; None when those stay as they are.

    A masked value that is sent back keeps its secret. It is refused when no secret is stored for it.
    """
    if "mcpServers" not in changes:
        return {**changes}, None
    servers = changes["mcpServers"] or []
    kept = await store.mcp_secrets(chat)
    for place, server in enumerate(servers):
        if missing := mcp_secrets.missing_keys(server, kept):
            raise _no_stored_secret(place, missing[0])
    masked, _ = mcp_secrets.split(servers)
    whole = [mcp_secrets.join(server, kept) for server in servers]
    secrets = mcp_secrets.split(whole)[1]
    changed: OwnConfig = {**changes, "mcpServers": masked if changes["mcpServers"] is not None else None}
    return changed, None if secrets == kept else secrets


def _no_stored_secret(place: int, key: mcp_secrets.SecretKey) -> Refused:
    _, part, name = key
    field = f"set.mcpServers[{place}].{part}" + (f".{name}" if name else "")
    return Refused(
        "invalid_params",
        f"`{field}` is {MASK!r}, which stands for the stored value, and none is stored; send the value",
        params={"field": field},
    )
