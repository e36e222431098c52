"""The answer to the `initialize` of an editor. Standard library only: it is given before the rest is loaded."""

from __future__ import annotations

from collections.abc import Mapping

from ... import __version__

NAME = "acp"
"""The Agent Client Protocol, for editors; a command or the first message chooses it."""

VERSIONS = (1, 2)

MAX_VERSION = 2**31
"""Far above any version; a longer number is no version."""

META = "sidecar"
"""Our member of every `_meta`."""


def requested_version(params: object) -> int | None:
    """The protocol version that the parameters of an `initialize` ask for; None when they are not of this dialect."""
    version = params.get("protocolVersion") if isinstance(params, dict) else None
    if isinstance(version, str) and version.isascii() and version.isdecimal() and len(version) < 10:
        version = int(version)
    return version if type(version) is int and 0 <= version < MAX_VERSION else None


def spoken_version(asked: int) -> int:
    """The version that is spoken with a client that asks for this one: the nearest."""
    return min(max(asked, VERSIONS[0]), VERSIONS[-1])


def is_plain(params: object) -> bool:
    """Whether the parameters are those of an ordinary `initialize` of this dialect."""
    return (
        isinstance(params, dict)
        and requested_version(params) is not None
        and all(
            isinstance(params.get(name) or {}, dict)
            for name in ("clientCapabilities", "clientInfo", "capabilities", "info", "_meta")
        )
    )


def initialize_result(asked: int) -> Mapping[str, object]:
    """The result of `initialize` for a client that asks for this version."""
    version = spoken_version(asked)
    about = {"name": "sidecar", "title": "Sidecar", "version": __version__}
    if version == 1:
        return {
            "protocolVersion": 1,
            "agentInfo": about,
            "agentCapabilities": {
                "loadSession": True,
                "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
                "mcpCapabilities": {"http": True, "sse": False},
                "sessionCapabilities": {
                    name: {} for name in ("list", "resume", "close", "delete", "additionalDirectories")
                },
            },
            "authMethods": [],
        }
    return {
        "protocolVersion": 2,
        "info": about,
        "capabilities": {
            "session": {
                "prompt": {"image": {}, "audio": {}, "embeddedContext": {}},
                "mcp": {"stdio": {}, "http": {}},
                "delete": {},
                "additionalDirectories": {},
            }
        },
        "authMethods": [],
    }
