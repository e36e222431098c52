"""The two eras of MCP: versions with a handshake (`initialize`), and those that name the version in each request.

A client of the newer era sends `server/discover` first and no `initialize`. Everything that a request says about its
client is in `Caller`, whichever era it is of.
"""

from __future__ import annotations

from typing import Any

import msgspec
from sidecar_protocol.errors import CODES, RpcError

from ... import __version__
from ...model import JsonObject
from .messages import McpResult, ServerInfo

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSIONS = ("2026-07-28",)
SUPPORTED = (*reversed(MODERN_VERSIONS), *reversed(HANDSHAKE_VERSIONS))

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CLIENT_KEY = "io.modelcontextprotocol/clientInfo"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"

LIST_TTL_MS = 3_600_000
"""How long a client may keep a list: the tools change only with the program."""

SERVER_INFO: ServerInfo = {"name": "sidecar", "title": "Sidecar", "version": __version__}

CAPABILITIES = {
    "tools": {"listChanged": False},
    "resources": {"listChanged": False, "subscribe": False},
    "prompts": {"listChanged": False},
}

INSTRUCTIONS = (
    "Sidecar keeps long output out of your context and finds it again. Run code that prints a lot with run_code or "
    "run_batch, add files and pages with index_path or fetch_url, then look up what you need with search_context. "
    "search_chats finds what was said and decided in earlier sessions, also of other agents."
)


class Caller(msgspec.Struct, frozen=True):
    """Who sends a request, and in which version of the protocol."""

    version: str
    name: str = ""
    client_version: str = ""
    capabilities: JsonObject = {}
    meta: JsonObject = {}

    @property
    def is_modern(self) -> bool:
        return self.version in MODERN_VERSIONS

    @property
    def can_elicit(self) -> bool:
        """Whether the host shows a form to its user."""
        offered = self.capabilities.get("elicitation")
        return isinstance(offered, dict) and (not offered or "form" in offered)


class Handshake:
    """What the client said in `initialize`; the requests of the newer era bring their own."""

    def __init__(self) -> None:
        self.caller: Caller | None = None

    def begin(self, version: str, client: JsonObject, capabilities: JsonObject) -> str:
        """Take the client's `initialize`; return the version that is spoken."""
        spoken = version if version in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
        self.caller = Caller(spoken, *_identity(client), capabilities=capabilities)
        return spoken

    def caller_of(self, params: JsonObject) -> Caller:
        """Return who sends this request; refuses a version that is not spoken here."""
        meta = params.get("_meta")
        meta = meta if isinstance(meta, dict) else {}
        version = meta.get(VERSION_KEY)
        if version is None:
            if self.caller is None:
                raise _unknown_version(None)
            return msgspec.structs.replace(self.caller, meta=meta)
        if version not in MODERN_VERSIONS:
            raise _unknown_version(version)
        client, capabilities = meta.get(CLIENT_KEY), meta.get(CAPABILITIES_KEY)
        if not isinstance(capabilities, dict):
            raise RpcError(
                CODES["invalid_params"], f"`_meta.{CAPABILITIES_KEY}`: an object of the client's capabilities"
            )
        return Caller(
            version,
            *_identity(client if isinstance(client, dict) else {}),
            capabilities=capabilities,
            meta=meta,
        )


def complete(caller: Caller, result: McpResult, *, listed: bool = False) -> McpResult:
    """The result with the members that the caller's version asks for. `listed`: a client may cache it."""
    if not caller.is_modern:
        return result
    cached = {"ttlMs": LIST_TTL_MS, "cacheScope": "private"} if listed else {}
    return {"resultType": "complete", **result, **cached}


def discovered() -> McpResult:
    """The result of `server/discover`."""
    return {
        "resultType": "complete",
        "supportedVersions": list(SUPPORTED),
        "capabilities": CAPABILITIES,
        "instructions": INSTRUCTIONS,
        "ttlMs": LIST_TTL_MS,
        "cacheScope": "private",
        "_meta": {SERVER_KEY: SERVER_INFO},
    }


def _identity(client: JsonObject) -> tuple[str, str]:
    return str(client.get("name") or ""), str(client.get("version") or "")


def _unknown_version(requested: Any) -> RpcError:
    words = (
        f"`_meta.{VERSION_KEY}`: {str(requested)[:40]!r} is not spoken here; one of {', '.join(MODERN_VERSIONS)}"
        if requested is not None
        else "Send `initialize` first, or name the protocol version in `_meta` of each request"
    )
    data = {"supported": list(SUPPORTED), "requested": requested if isinstance(requested, str) else ""}
    return RpcError(CODES["unsupported_version"], words, data)
