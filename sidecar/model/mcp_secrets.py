"""Secrets of a chat's MCP servers: removed from its configuration before it is stored or shown, and restored
in the copy that starts the servers. Secret are the values of `env` and `headers`, and the query of `url`.

Does no IO. `store/tables/mcp_secrets` stores the values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from ..settings.tables import MASK
from . import JsonObject

SecretKey = tuple[str, str, str]
"""The server's name, the member of its entry (`env`, `headers` or `url`), and the name within that member."""

McpServerEntry = JsonObject

_PAIRS = ("env", "headers")


class Secrets(msgspec.Struct, frozen=True):
    """The values by their keys. Never shown: the repr has only the keys."""

    values: dict[SecretKey, str] = {}

    def __repr__(self) -> str:
        return f"Secrets({', '.join('.'.join(key) for key in self.values)})"


def split(servers: Sequence[McpServerEntry]) -> tuple[list[McpServerEntry], Secrets]:
    """Return the servers with every secret masked, and the secrets. A value that is already masked is none."""
    values = {key: value for server in servers for key, value in _values(server) if value != MASK}
    return [mask(server) for server in servers], Secrets(values)


def mask(server: McpServerEntry) -> McpServerEntry:
    """Return the entry as it may be stored and shown."""
    masked = dict(server)
    for part in _PAIRS:
        if isinstance(pairs := server.get(part), dict):
            masked[part] = dict.fromkeys(pairs, MASK)
    url = server.get("url")
    if isinstance(url, str) and "?" in url:
        masked["url"] = f"{url.partition('?')[0]}?{MASK}"
    return masked


def mask_config(config: JsonObject) -> JsonObject:
    """Return a chat's configuration with the secrets of its servers masked."""
    servers = config.get("mcpServers")
    if not isinstance(servers, list):
        return config
    return {
        **config,
        "mcpServers": [mask(server) if isinstance(server, dict) else server for server in servers],
    }


def missing_keys(server: McpServerEntry, kept: Secrets) -> list[SecretKey]:
    """Return the masked values of an entry that have no stored value."""
    return [key for key, value in _values(server) if value == MASK and key not in kept.values]


def join(server: McpServerEntry, kept: Secrets) -> McpServerEntry:
    """Return the entry for starting the server. Every masked value must be in `kept`."""
    whole = dict(server)
    for key, value in _values(server):
        _, part, name = key
        found = kept.values[key] if value == MASK else value
        before = whole[part]
        if isinstance(before, dict):
            whole[part] = {**before, name: found}
        else:
            whole[part] = f"{str(before).partition('?')[0]}?{found}"
    return whole


def _values(server: McpServerEntry) -> Iterator[tuple[SecretKey, str]]:
    name = server.get("name")
    if not isinstance(name, str):
        return
    for part in _PAIRS:
        pairs = server.get(part)
        if isinstance(pairs, dict):
            yield from (((name, part, key), value) for key, value in pairs.items() if isinstance(value, str))
    url = server.get("url")
    if isinstance(url, str) and "?" in url:
        yield (name, "url", ""), url.partition("?")[2]
