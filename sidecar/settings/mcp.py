"""The tables `[mcp.NAME]`: MCP servers that are started or connected to, their keys, and what is never shown.

Chats get them in the format of their own configuration (`mcpServers`). Starts nothing.
"""

from __future__ import annotations

from .errors import SettingsError
from .key import is_plain
from .tables import MASK, Field, NamedTables, headers_field, is_address, mask_each

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

MAX_VALUES = 256
"""Arguments or variables of one server."""

MAX_TEXT = 32 * 1024
"""Characters of one of them; the kernel accepts 128 KiB."""

_PROCESS_FIELDS = ("args", "env", "cwd")
_HTTP_FIELDS = ("headers",)


def server_entries(tables: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the servers as the configuration of a chat names them: times in milliseconds, without unset keys."""
    return [
        {"name": name, **dict(_entry(field, value) for field, value in table.items())}
        for name, table in tables.items()
    ]


def _entry(field: str, value: Any) -> tuple[str, Any]:
    if field == "timeout":
        return "timeoutMs", round(value * 1000)
    if field == "start_timeout":
        return "startTimeoutMs", round(value * 1000)
    return field, value


def _transport_error(name: str, table: Mapping[str, object]) -> SettingsError | None:
    """Check that a server is either started or connected to, and has no keys of the other transport."""
    dotted = f"mcp.{name}"
    if ("command" in table) == ("url" in table):
        which = "both `command` and `url` are" if "url" in table else "neither `command` nor `url` is"
        return SettingsError(
            dotted, f"{which} there", hint="Set `command` for a server to start, or `url` for one to reach"
        )
    strange, way = (_HTTP_FIELDS, "url") if "command" in table else (_PROCESS_FIELDS, "command")
    for field in strange:
        if field in table:
            return SettingsError(f"{dotted}.{field}", f"goes with `{way}` only")
    return None


def are_arguments(value: object) -> bool:
    return isinstance(value, list) and len(value) <= MAX_VALUES and all(map(_is_value, value))


def is_environment(value: object) -> bool:
    return (
        isinstance(value, dict)
        and len(value) <= MAX_VALUES
        and all(name and "=" not in name and _is_value(name) for name in value)
        and all(_is_value(text) and text != MASK for text in value.values())
    )


def _is_value(text: object) -> bool:
    return isinstance(text, str) and len(text) <= MAX_TEXT and is_plain(text)


def _is_url(value: object) -> bool:
    return is_address(value) and MASK not in str(value)


def _without_query(url: str) -> str:
    """Remove the query, which often contains keys."""
    address, query, _ = url.partition("?")
    return f"{address}?{MASK}" if query else address


SERVER_TABLES = NamedTables(
    "mcp",
    "server",
    (
        Field(
            "command",
            "text",
            None,
            "The program of the server: a name on PATH, or a full path.",
        ),
        Field(
            "args",
            "texts",
            (),
            "The arguments of the program. They are shown; put secrets into `env`.",
            words='a list of texts, such as ["-y", "some-server"]',
            fits=are_arguments,
        ),
        Field(
            "env",
            "text",
            None,
            "Environment variables of the server, which gets few others. Their values are never shown.",
            words="a table of variables and their text",
            fits=is_environment,
            masked=mask_each,
        ),
        Field("cwd", "path", None, "The working directory of the server.", shown="the chat's project"),
        Field(
            "url",
            "text",
            None,
            "The address of a running server. The query (after `?`) is never shown.",
            words="an http or https address without user and password",
            fits=_is_url,
            masked=_without_query,
        ),
        headers_field(),
        Field("timeout", "seconds", 60.0, "Maximum duration of one tool call.", low=1, high=3600),
        Field("start_timeout", "seconds", 30.0, "Maximum duration of the start.", low=1, high=3600),
        Field("enabled", "flag", True, "Use this server."),
    ),
    _transport_error,
    project="trusted",
    replaces=True,
)
