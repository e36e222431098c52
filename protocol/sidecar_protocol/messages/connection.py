"""The life of a connection: `initialize`, `ping`, `rpc.discover`, `shutdown`, `exit`, `$/cancelRequest`."""

from __future__ import annotations

from typing import Literal

from .base import Json, Params, Wire

__all__ = [
    "CancelRequestParams",
    "ClientCapabilities",
    "ClientInfo",
    "InitializeParams",
    "InitializeResult",
    "Limits",
    "OfferedTool",
    "PingResult",
    "ServerInfo",
    "ShutdownChat",
    "ShutdownParams",
    "ShutdownResult",
]


class ClientInfo(Params, kw_only=True, frozen=True):
    name: str
    """The app's name; other processes see it as the owner of a chat."""
    version: str = ""
    """The app's version."""


class ClientCapabilities(Params, kw_only=True, frozen=True):
    """What the client can answer when the sidecar asks."""

    permissions: bool = False
    """Answers `permission/request`."""
    input: bool = False
    """Answers `input/request`."""
    buffers: bool = False
    """Answers `fs/readBuffer`."""


class OfferedTool(Params, kw_only=True, frozen=True):
    """A tool of the app that the model may call."""

    name: str
    """The name that the model calls."""
    description: str
    """What the model is told of it."""
    input_schema: Json
    """JSON Schema of its arguments."""
    kind: str = "other"
    """read, edit, delete, move, search, execute, think, fetch or other."""
    timeout_ms: int | None = None
    """How long a call may take."""


class InitializeParams(Params, kw_only=True, frozen=True):
    protocol: Literal["sidecar"]
    """The name of this contract."""
    versions: list[int]
    """The versions that the client speaks; the newest common one is chosen."""
    client: ClientInfo
    """Who connects."""
    process_id: int | None = None
    """The client's process: when it is gone, the sidecar leaves."""
    capabilities: ClientCapabilities = ClientCapabilities()
    """What the client can answer when the sidecar asks."""
    tools: list[OfferedTool] = []
    """Tools of the app that the model may call."""
    delta_ms: int = 0
    """Pace deltas: at most one frame an item in so many milliseconds; 0 sends each at once."""


class ServerInfo(Wire, kw_only=True, frozen=True):
    name: str
    """The program's name."""
    version: str
    """The program's version."""


class Limits(Wire, kw_only=True, frozen=True):
    max_frame_bytes: int
    """A longer frame is skipped and answered with -32007."""
    max_chat_id_bytes: int
    """The longest `chatId`, in bytes of UTF-8."""
    max_queued_prompts: int
    """How many prompts of a chat may wait; then -32001."""
    max_delta_bytes: int
    """The most text that one coalesced delta carries."""
    max_meta_bytes: int
    """The most that `meta` of a chat's configuration may hold, as JSON."""


class InitializeResult(Wire, kw_only=True, frozen=True):
    version: int
    """The version that both now speak."""
    server: ServerInfo
    """Who answers."""
    instance_id: str
    """Random for each process: tells a restart."""
    capabilities: Json
    """What this sidecar can do."""
    limits: Limits
    """The bounds that it holds the client to."""


class PingResult(Wire, kw_only=True, frozen=True):
    now: int
    """Milliseconds since 1970."""
    uptime_ms: int
    """Since the process started."""
    instance_id: str
    """As `initialize` told it."""
    inflight: int
    """How many requests are under way, this one not counted."""


class ShutdownParams(Params, kw_only=True, frozen=True):
    """`graceMs`: how long running turns may go on before they are ended as interrupted."""

    grace_ms: int = 0
    """How long running turns may go on."""


class ShutdownChat(Wire, kw_only=True, frozen=True):
    session_id: str
    """The chat's session id."""
    chat_id: str | None
    """The app's name for the chat, or null."""
    state: str
    """What the chat was left as."""
    last_seq: int
    """The seq of its newest event."""


class ShutdownResult(Wire, kw_only=True, frozen=True):
    chats: list[ShutdownChat]
    """The chats that were open."""


class CancelRequestParams(Params, kw_only=True, frozen=True):
    id: str | int
    """The id of the request to cancel."""
