"""The tables `[mcp.NAME]`: servers of tools that are started or reached, their keys, and what is never shown.

What a chat is given of them has the shape that its own configuration has (`mcpServers`). Starts nothing.
"""

from __future__ import annotations

from .errors import SettingsError
from .key import is_plain
from .tables import MASK, Field, Tables, are_headers, is_address, mask_each

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

MAX_VALUES = 256
"""Arguments or variables of one server."""

MAX_TEXT = 32 * 1024
"""Of one of them; the kernel takes 128 KiB."""

_STARTED = ("args", "env", "cwd")
_REACHED = ("headers",)


def entries(tables: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The servers as a chat's configuration would name them: times in milliseconds, and what is not set left out."""
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


def _one_way(name: str, table: Mapping[str, object]) -> SettingsError | None:
    """A server is started or reached, and what belongs to the one way has no place in the other."""
    dotted = f"mcp.{name}"
    if ("command" in table) == ("url" in table):
        which = "both `command` and `url` are" if "url" in table else "neither `command` nor `url` is"
        return SettingsError(
            dotted, f"{which} there", hint="Set `command` for a server to start, or `url` for one to reach"
        )
    strange, way = (_REACHED, "url") if "command" in table else (_STARTED, "command")
    for field in strange:
        if field in table:
            return SettingsError(f"{dotted}.{field}", f"goes with `{way}` only")
    return None


def _are_args(value: object) -> bool:
    return isinstance(value, list) and len(value) <= MAX_VALUES and all(map(_is_value, value))


def _is_environment(value: object) -> bool:
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
    """Keys often stand in it."""
    address, query, _ = url.partition("?")
    return f"{address}?{MASK}" if query else address


SERVERS = Tables(
    "mcp",
    "server",
    (
        Field(
            "command",
            "text",
            None,
            "The program that is the server: a name to be found on PATH, or its full path.",
        ),
        Field(
            "args",
            "texts",
            (),
            "Its arguments. They are shown; what is secret belongs into `env`.",
            words='a list of texts, such as ["-y", "some-server"]',
            fits=_are_args,
        ),
        Field(
            "env",
            "text",
            None,
            "Variables of its environment, which has little else. Their values are never shown.",
            words="a table of variables and their text",
            fits=_is_environment,
            masked=mask_each,
        ),
        Field("cwd", "path", None, "The folder that it starts in.", shown="the chat's project"),
        Field(
            "url",
            "text",
            None,
            "Where a server that runs already is reached. What follows a `?` is never shown.",
            words="an http or https address without user and password",
            fits=_is_url,
            masked=_without_query,
        ),
        Field(
            "headers",
            "text",
            None,
            "Headers to send with every request. Their values are never shown.",
            words="a table of header names and their text",
            fits=are_headers,
            masked=mask_each,
        ),
        Field("timeout", "seconds", 60.0, "How long one call of a tool may take.", low=1, high=3600),
        Field("start_timeout", "seconds", 30.0, "How long the start may take.", low=1, high=3600),
        Field("enabled", "flag", True, "Whether it is used."),
    ),
    _one_way,
    project="trusted",
    replaces=True,
)
