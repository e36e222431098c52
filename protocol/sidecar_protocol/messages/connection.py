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


class ClientInfo(Params, kw_only=True):
    name: str
    version: str = ""


class ClientCapabilities(Params, kw_only=True):
    """What the client can answer when the sidecar asks."""

    permissions: bool = False
    input: bool = False
    buffers: bool = False


class OfferedTool(Params, kw_only=True):
    """A tool of the app that the model may call."""

    name: str
    description: str
    input_schema: Json
    kind: str = "other"
    timeout_ms: int | None = None


class InitializeParams(Params, kw_only=True):
    protocol: Literal["sidecar"]
    versions: list[int]
    client: ClientInfo
    process_id: int | None = None
    capabilities: ClientCapabilities = ClientCapabilities()
    tools: list[OfferedTool] = []
    delta_ms: int = 0


class ServerInfo(Wire, kw_only=True):
    name: str
    version: str


class Limits(Wire, kw_only=True):
    max_frame_bytes: int
    max_chat_id_bytes: int
    max_queued_prompts: int
    max_delta_bytes: int
    max_meta_bytes: int


class InitializeResult(Wire, kw_only=True):
    version: int
    server: ServerInfo
    instance_id: str
    capabilities: Json
    limits: Limits


class PingResult(Wire, kw_only=True):
    now: int
    uptime_ms: int
    instance_id: str
    inflight: int


class ShutdownParams(Params, kw_only=True):
    """`graceMs`: how long running turns may go on before they are ended as interrupted."""

    grace_ms: int = 0


class ShutdownChat(Wire, kw_only=True):
    session_id: str
    chat_id: str | None
    state: str
    last_seq: int


class ShutdownResult(Wire, kw_only=True):
    chats: list[ShutdownChat]


class CancelRequestParams(Params, kw_only=True):
    id: str | int
