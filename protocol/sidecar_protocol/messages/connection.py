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


class ClientInfo(Wire, kw_only=True, frozen=True):
    """Who the client is. Members that the sidecar does not know are ignored, as apps describe themselves further."""

    name: str
    """The app's name; other processes see it as the owner of a chat."""
    version: str = ""
    """The app's version."""


class ClientCapabilities(Params, kw_only=True, frozen=True):
    """Requests of the sidecar that the client can answer."""

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
    """The description that the model gets."""
    input_schema: Json
    """JSON Schema of its arguments."""
    kind: str = "other"
    """read, edit, delete, move, search, execute, think, fetch or other."""
    timeout_ms: int | None = None
    """Maximum duration of a call."""


class InitializeParams(Params, kw_only=True, frozen=True):
    protocol: Literal["sidecar"]
    """The name of this contract."""
    versions: list[int]
    """The versions that the client speaks; the newest common one is chosen."""
    client: ClientInfo
    """Who connects."""
    process_id: int | None = None
    """The client's process: when it is gone, the sidecar exits."""
    capabilities: ClientCapabilities = ClientCapabilities()
    """Requests of the sidecar that the client can answer."""
    tools: list[OfferedTool] = []
    """Tools of the app that the model may call."""
    delta_ms: int = 0
    """Combine deltas: at most one frame per item in this many milliseconds; 0 sends each at once."""


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
    """Maximum number of waiting prompts of a chat; more get -32001."""
    max_delta_bytes: int
    """Maximum text of one combined delta."""
    max_meta_bytes: int
    """Maximum size of `meta` in a chat's configuration, as JSON."""
    max_image_bytes: int | None = None
    """Maximum size of an image of a prompt."""
    max_image_side: int | None = None
    """Maximum width and height of an image in pixels."""
    max_image_pixels: int | None = None
    """Maximum number of pixels of an image."""
    max_audio_bytes: int | None = None
    """Maximum size of an audio block of a prompt."""


class InitializeResult(Wire, kw_only=True, frozen=True):
    version: int
    """The version that both sides use."""
    server: ServerInfo
    """Who answers."""
    instance_id: str
    """Random for each process: changes with a restart."""
    capabilities: Json
    """What this sidecar can do."""
    limits: Limits
    """The limits for the client."""


class PingResult(Wire, kw_only=True, frozen=True):
    now: int
    """Milliseconds since 1970."""
    uptime_ms: int
    """Since the process started."""
    instance_id: str
    """As in the result of `initialize`."""
    inflight: int
    """How many requests are running, without this one."""


class ShutdownParams(Params, kw_only=True, frozen=True):
    """`graceMs`: how long running turns may continue before they are ended as interrupted."""

    grace_ms: int = 0
    """How long running turns may continue."""


class ShutdownChat(Wire, kw_only=True, frozen=True):
    session_id: str
    """The chat's session id."""
    chat_id: str | None
    """The app's name for the chat, or null."""
    state: str
    """The final state of the chat."""
    last_seq: int
    """The seq of its newest event."""


class ShutdownResult(Wire, kw_only=True, frozen=True):
    chats: list[ShutdownChat]
    """The chats that were open."""


class CancelRequestParams(Params, kw_only=True, frozen=True):
    id: str | int
    """The id of the request to cancel."""
