"""The answer to the `initialize` of an app. Standard library only: it is given before the rest is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sidecar_protocol import limits

from ... import __version__
from ...media.formats import MAX_AUDIO_BYTES, MAX_IMAGE_BYTES, MAX_IMAGE_PIXELS, MAX_IMAGE_SIDE
from ...tools import names

if TYPE_CHECKING:
    from ..base import InitializeResult

NAME = "native"
"""The dialect of `protocol/`."""

MAX_PROCESS_ID = MAX_TOOL_MS = 2**31 - 1
MAX_DELTA_MS = 60_000
"""Larger numbers are for the server to judge."""

MAX_TOOLS = 128
"""More than a model can choose from; providers accept little more."""


def initialize_result(instance_id: str) -> InitializeResult:
    """The result of `initialize`."""
    return {
        "version": limits.VERSIONS[-1],
        "server": {"name": "sidecar", "version": __version__},
        "instanceId": instance_id,
        "capabilities": {
            "framings": limits.FRAMINGS,
            "deliveries": limits.DELIVERIES,
            **dict.fromkeys(limits.CLIENT_CAPABILITIES, True),
            "tools": True,
            "commands": True,
        },
        "limits": {
            "maxFrameBytes": limits.MAX_FRAME_BYTES,
            "maxChatIdBytes": limits.MAX_ID_BYTES,
            "maxQueuedPrompts": limits.MAX_QUEUED_PROMPTS,
            "maxDeltaBytes": limits.MAX_DELTA_BYTES,
            "maxMetaBytes": limits.MAX_META_BYTES,
            "maxImageBytes": MAX_IMAGE_BYTES,
            "maxImageSide": MAX_IMAGE_SIDE,
            "maxImagePixels": MAX_IMAGE_PIXELS,
            "maxAudioBytes": MAX_AUDIO_BYTES,
        },
    }


def is_plain(params: Any) -> bool:
    """Whether `params` are those of an ordinary `initialize`."""
    if not isinstance(params, dict) or not params.keys() <= limits.INITIALIZE_MEMBERS:
        return False
    client = params.get("client")
    capabilities = params.get("capabilities", {})
    versions = params.get("versions")
    return (
        params.get("protocol") == limits.PROTOCOL
        and isinstance(versions, list)
        and all(type(version) is int for version in versions)
        and not set(limits.VERSIONS).isdisjoint(versions)
        and isinstance(client, dict)
        and "name" in client
        and all(isinstance(client.get(name, ""), str) for name in limits.CLIENT_MEMBERS)
        and isinstance(capabilities, dict)
        and capabilities.keys() <= set(limits.CLIENT_CAPABILITIES)
        and all(isinstance(value, bool) for value in capabilities.values())
        and _is_count(params.get("processId", 1), 1, MAX_PROCESS_ID)
        and _is_count(params.get("deltaMs", 0), 0, MAX_DELTA_MS)
        and _are_plain_tools(params.get("tools", []))
    )


def is_tool_name(name: str) -> bool:
    """Whether every provider accepts this name of a tool."""
    plain = name.replace("_", "").replace("-", "")
    return 1 <= len(name) <= 64 and plain.isascii() and plain.isalnum()


def _are_plain_tools(tools: Any) -> bool:
    if not isinstance(tools, list) or len(tools) > MAX_TOOLS or not all(map(_is_plain_tool, tools)):
        return False
    offered = {tool["name"] for tool in tools}
    return len(offered) == len(tools) and names.BUILT_IN.isdisjoint(offered)


def _is_plain_tool(tool: Any) -> bool:
    return (
        isinstance(tool, dict)
        and tool.keys() <= limits.TOOL_MEMBERS
        and isinstance(tool.get("name"), str)
        and is_tool_name(tool["name"])
        and isinstance(tool.get("description"), str)
        and isinstance(tool.get("inputSchema"), dict)
        and tool.get("kind", "other") in limits.TOOL_KINDS
        and _is_count(tool.get("timeoutMs", 1), 1, MAX_TOOL_MS)
    )


def _is_count(value: Any, low: int, high: int) -> bool:
    return type(value) is int and low <= value <= high
