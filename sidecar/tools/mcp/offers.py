"""What a server offers and answers, converted from the SDK's types, bounded and well-formed. Never waits."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from ...model import JsonObject
from ...model.content import GivenBlock
from ...system.redact import redact_text
from ...text.surrogates import well_formed
from ..base import ToolOutcome

if TYPE_CHECKING:
    from mcp_types import CallToolResult
    from mcp_types import Tool as ForeignTool

MAX_TOOLS = 128
"""Tools per server. Every tool costs tokens in every request, and providers accept no more than this many."""

MAX_NAME = 256
"""Characters: a longer tool name would fill the permission dialogs; the tool is not mounted."""

MAX_DESCRIPTION = 1000
MAX_SCHEMA = 16 * 1024
"""Characters: the description of a tool is part of every request."""

MAX_RESULT = 1024 * 1024
"""Characters of a tool's result. The toolbox shows the model less, and stores this."""

ANY_OBJECT: JsonObject = {"type": "object"}


class ToolOffer(msgspec.Struct, frozen=True):
    """A tool as its server describes it."""

    name: str
    title: str
    description: str
    input_schema: JsonObject
    reads_only: bool


def parse_offers(tools: Iterable[ForeignTool]) -> tuple[list[ToolOffer], list[str]]:
    """Return the tools that can be mounted, and the names of the others: too many, or duplicates."""
    offers: dict[str, ToolOffer] = {}
    left_out: list[str] = []
    for tool in tools:
        if not tool.name or len(tool.name) > MAX_NAME or tool.name in offers or len(offers) >= MAX_TOOLS:
            left_out.append(clean_text(tool.name[:MAX_NAME]))
        else:
            offers[tool.name] = _parse_offer(tool)
    return list(offers.values()), left_out


def outcome_of(result: CallToolResult) -> ToolOutcome:
    """Return the answer as text (its texts, other content by type and size, and its data when there are no texts), and
    its images and audio.
    """
    texts = [block.text for block in result.content if block.type == "text"]
    parts = [_describe_block(block) for block in result.content]
    if result.structured_content is not None and not any(texts):
        parts.append(json.dumps(result.structured_content, ensure_ascii=False))
    whole = clean_text("\n".join(part for part in parts if part))
    if len(whole) > MAX_RESULT:
        whole = f"{whole[:MAX_RESULT]}\n… {len(whole) - MAX_RESULT} more characters are left out"
    media = tuple(block for piece in result.content if (block := _medium(piece)) is not None)
    return ToolOutcome(whole or "(no output)", failed=bool(result.is_error), media=media)


def clean_text(text: str) -> str:
    """Remove secrets, which a server may repeat, and lone surrogates: a provider would refuse the request and every
    later one that contains them.
    """
    return redact_text(well_formed(text))


def _parse_offer(tool: ForeignTool) -> ToolOffer:
    hints = tool.annotations
    title = tool.title or (hints.title if hints else None) or tool.name
    description = clean_text(tool.description or "").strip()
    if len(description) > MAX_DESCRIPTION:
        description = f"{description[: MAX_DESCRIPTION - 1]}…"
    schema, note = _bounded_schema(tool.input_schema)
    return ToolOffer(
        name=tool.name,
        title=clean_text(" ".join(title.split()))[:80],
        description=f"{description}\n{note}".strip(),
        input_schema=schema,
        reads_only=bool(hints and hints.read_only_hint),
    )


def _bounded_schema(schema: JsonObject) -> tuple[JsonObject, str]:
    """Return the schema as providers accept it, or any object with a note when it is too large."""
    size = len(json.dumps(schema, ensure_ascii=False))
    if size > MAX_SCHEMA:
        return ANY_OBJECT, f"(The description of its parameters is too long to be shown: {size} characters.)"
    clean: JsonObject = json.loads(clean_text(json.dumps(schema, ensure_ascii=False)))
    return {**clean, "type": "object"}, ""


def _describe_block(block: Any) -> str:
    """Return a piece of content as text; other content is named with its type and size."""
    match block.type:
        case "text":
            return str(block.text)
        case "image" | "audio":
            return f"[{block.type}: {block.mime_type}, {_decoded_size(block.data)} bytes]"
        case "resource_link":
            return f"[resource: {block.uri}, {block.mime_type or 'unknown type'}]"
        case "resource":
            return _describe_resource(block.resource)
        case _:
            return f"[{block.type}]"


def _medium(block: Any) -> GivenBlock | None:
    """Return an image or audio block, also one that is embedded as a resource."""
    if block.type in ("image", "audio"):
        return GivenBlock(type=block.type, data=block.data)
    if block.type != "resource" or getattr(block.resource, "blob", None) is None:
        return None
    declared = block.resource.mime_type or ""
    if declared.startswith("image/"):
        return GivenBlock(type="image", data=block.resource.blob)
    return GivenBlock(type="audio", data=block.resource.blob) if declared.startswith("audio/") else None


def _describe_resource(resource: Any) -> str:
    text = getattr(resource, "text", None)
    kind = resource.mime_type or "unknown type"
    if isinstance(text, str):
        return f"[resource: {resource.uri}, {kind}, {len(text)} characters]\n{text}"
    return f"[resource: {resource.uri}, {kind}, {_decoded_size(resource.blob)} bytes]"


def _decoded_size(base64: str) -> int:
    return len(base64) * 3 // 4 - base64[-2:].count("=")
