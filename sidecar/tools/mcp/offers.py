"""What a server offers and answers, taken out of the SDK's types and made bounded and well-formed. Does not wait."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from ..base import Outcome

if TYPE_CHECKING:
    from mcp_types import CallToolResult
    from mcp_types import Tool as ForeignTool

MAX_TOOLS = 128
"""Of one server. Every tool costs tokens in every request, and providers take no more than this many."""

MAX_NAME = 256
"""A longer name of a tool would fill the permission dialogs; the tool is left out."""

MAX_DESCRIPTION = 1000
MAX_SCHEMA = 16 * 1024
"""What the model is told of a tool stands in every request."""

MAX_RESULT = 1024 * 1024
"""Of what a tool answers, in characters. The toolbox shows the model less, and keeps this."""

ANY_OBJECT = {"type": "object"}


class Offer(msgspec.Struct, frozen=True):
    """A tool as its server describes it."""

    name: str
    title: str
    description: str
    input_schema: dict[str, Any]
    reads_only: bool


def offers_of(tools: Iterable[ForeignTool]) -> tuple[list[Offer], list[str]]:
    """The tools that can be mounted, and the names of those that are left out: too many, or twice the same name."""
    offers: dict[str, Offer] = {}
    left_out: list[str] = []
    for tool in tools:
        if not tool.name or len(tool.name) > MAX_NAME or tool.name in offers or len(offers) >= MAX_TOOLS:
            left_out.append(well_formed(tool.name[:MAX_NAME]))
        else:
            offers[tool.name] = _offer(tool)
    return list(offers.values()), left_out


def outcome_of(result: CallToolResult) -> Outcome:
    """The answer in words: its texts, what else there is by type and size, and its data when there are no texts."""
    texts = [block.text for block in result.content if block.type == "text"]
    parts = [_described(block) for block in result.content]
    if result.structured_content is not None and not any(texts):
        parts.append(json.dumps(result.structured_content, ensure_ascii=False))
    whole = well_formed("\n".join(part for part in parts if part))
    if len(whole) > MAX_RESULT:
        whole = f"{whole[:MAX_RESULT]}\n… {len(whole) - MAX_RESULT} more characters are left out"
    return Outcome(whole or "(no output)", failed=bool(result.is_error))


def well_formed(text: str) -> str:
    """Half an emoji in a request makes a provider refuse it, now and ever after."""
    return text.encode(errors="replace").decode()


def _offer(tool: ForeignTool) -> Offer:
    hints = tool.annotations
    title = tool.title or (hints.title if hints else None) or tool.name
    description = well_formed(tool.description or "").strip()
    if len(description) > MAX_DESCRIPTION:
        description = f"{description[: MAX_DESCRIPTION - 1]}…"
    schema, note = _schema(tool.input_schema)
    return Offer(
        name=tool.name,
        title=well_formed(" ".join(title.split()))[:80],
        description=f"{description}\n{note}".strip(),
        input_schema=schema,
        reads_only=bool(hints and hints.read_only_hint),
    )


def _schema(schema: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The schema as providers take it, or any object with a note when it is too large."""
    size = len(json.dumps(schema, ensure_ascii=False))
    if size > MAX_SCHEMA:
        return ANY_OBJECT, f"(The description of its parameters is too long to be shown: {size} characters.)"
    clean: dict[str, Any] = json.loads(well_formed(json.dumps(schema, ensure_ascii=False)))
    return {**clean, "type": "object"}, ""


def _described(block: Any) -> str:
    """A piece of content; what is no text is named with its type and size."""
    match block.type:
        case "text":
            return str(block.text)
        case "image" | "audio":
            return f"[{block.type}: {block.mime_type}, {_decoded_size(block.data)} bytes]"
        case "resource_link":
            return f"[resource: {block.uri}, {block.mime_type or 'unknown type'}]"
        case "resource":
            return _resource(block.resource)
        case _:
            return f"[{block.type}]"


def _resource(resource: Any) -> str:
    text = getattr(resource, "text", None)
    kind = resource.mime_type or "unknown type"
    if isinstance(text, str):
        return f"[resource: {resource.uri}, {kind}, {len(text)} characters]\n{text}"
    return f"[resource: {resource.uri}, {kind}, {_decoded_size(resource.blob)} bytes]"


def _decoded_size(base64: str) -> int:
    return len(base64) * 3 // 4 - base64[-2:].count("=")
