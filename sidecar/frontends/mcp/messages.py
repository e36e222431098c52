"""The parameters of MCP's requests. Members that are not named here are ignored, as the protocol asks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypedDict

import msgspec

from ...model import JsonObject


class Params(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    meta: Any = msgspec.field(default=None, name="_meta")


class InitializeParams(Params, frozen=True, kw_only=True):
    protocol_version: str
    client_info: JsonObject = {}
    capabilities: JsonObject = {}


class ListParams(Params, frozen=True, kw_only=True):
    cursor: str | None = None


class CallToolParams(Params, frozen=True, kw_only=True):
    name: str
    arguments: Any = None
    """An object; models also send its JSON as text."""
    input_responses: JsonObject | None = None
    """The answers to the questions of an earlier result."""
    request_state: str | None = None


class ReadResourceParams(Params, frozen=True, kw_only=True):
    uri: str


class GetPromptParams(Params, frozen=True, kw_only=True):
    name: str
    arguments: JsonObject = {}


class Schema(TypedDict, total=False):
    """A JSON Schema that we write: of a tool's arguments, or of a form."""

    type: str
    title: str
    description: str
    enum: list[str]
    enumNames: list[str]
    properties: Mapping[str, Schema]
    items: Schema
    required: list[str]


McpResult = Mapping[str, object]
"""The result of a request, as it is encoded; nothing reads it."""


class TextContent(TypedDict):
    type: Literal["text"]
    text: str


class McpToolResult(TypedDict):
    content: list[TextContent]
    isError: NotRequired[bool]


class ListedTool(TypedDict):
    name: str
    description: str
    inputSchema: Schema
    annotations: dict[str, bool]


class ListedResource(TypedDict):
    uri: str
    name: str
    mimeType: str
    size: NotRequired[int]


class ResourceTemplate(TypedDict):
    uriTemplate: str
    name: str
    title: str
    mimeType: str


class PromptArgument(TypedDict):
    name: str
    required: bool


class ListedPrompt(TypedDict):
    name: str
    title: str
    description: str
    arguments: NotRequired[list[PromptArgument]]


class ServerInfo(TypedDict):
    name: str
    title: str
    version: str


class McpMethod(msgspec.Struct, frozen=True):
    """A method of MCP, for the dispatcher."""

    name: str
    params: type[Params]


_PARAMS: dict[str, type[Params]] = {
    "initialize": InitializeParams,
    "server/discover": Params,
    "ping": Params,
    "tools/list": ListParams,
    "tools/call": CallToolParams,
    "resources/list": ListParams,
    "resources/templates/list": ListParams,
    "resources/read": ReadResourceParams,
    "prompts/list": ListParams,
    "prompts/get": GetPromptParams,
}

METHODS: Mapping[str, McpMethod] = {name: McpMethod(name, params) for name, params in _PARAMS.items()}
