"""Content blocks of the protocol: prompts as we send them, and what an agent sends as text."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

from ...model import JsonObject
from ...model.content import Block
from ...text.surrogates import well_formed

MAX_RESULT = 256 * 1024
"""Characters of a tool's result that are taken from an agent; the journal keeps a part of that."""

CONTINUE = "Go on with the answer that was interrupted."
"""The prompt for an unfinished turn: the agent has what it said so far."""


def prompt_blocks(
    background: str, prompt: Iterable[Block], media: Mapping[str, bytes], capabilities: Mapping[str, Any]
) -> list[JsonObject]:
    """A prompt as the agent takes it: what it cannot take becomes a line of text."""
    found = [_block(block, media, capabilities) for block in prompt]
    if not found:
        found = [text_block(CONTINUE)]
    return [text_block(background), *found] if background else found


def text_block(text: str) -> JsonObject:
    return {"type": "text", "text": well_formed(text)}


def text_of(content: Any) -> str:
    """The text of a content block of an agent; a line for what is no text."""
    if not isinstance(content, dict):
        return ""
    kind = content.get("type")
    if kind == "text":
        text = content.get("text")
        return well_formed(text) if isinstance(text, str) else ""
    if kind == "resource_link":
        return f"[{content.get('name') or content.get('uri')}]({content.get('uri')})"
    if kind == "resource" and isinstance(content.get("resource"), dict):
        text = content["resource"].get("text")
        return well_formed(text) if isinstance(text, str) else f"[{content['resource'].get('uri')}]"
    return f"[{kind}]" if isinstance(kind, str) else ""


def result_text(call: Mapping[str, Any], terminals: Mapping[str, str]) -> str:
    """What a finished call returned: its content, or else its raw output."""
    parts: list[str] = []
    for entry in call.get("content") or ():
        if not isinstance(entry, dict):
            continue
        if entry.get("type") == "content":
            parts.append(text_of(entry.get("content")))
        elif entry.get("type") == "diff":
            parts.append(f"Changed {entry.get('path')}")
        elif entry.get("type") == "terminal":
            parts.append(terminals.get(str(entry.get("terminalId")), ""))
    text = "\n".join(part for part in parts if part)
    return (text or _raw_text(call.get("rawOutput")))[:MAX_RESULT]


def _raw_text(raw: Any) -> str:
    if isinstance(raw, str):
        return well_formed(raw)
    if isinstance(raw, dict):
        for name in ("output", "stdout", "text", "result", "formatted_output", "aggregated_output", "error"):
            if isinstance(raw.get(name), str) and raw[name]:
                return well_formed(raw[name])
    return ""


def _block(block: Block, media: Mapping[str, bytes], capabilities: Mapping[str, Any]) -> JsonObject:
    if block.type == "text":
        return text_block(block.text or "")
    if block.type in ("image", "audio"):
        data = media.get(block.blob_id or "")
        if data is not None and capabilities.get(block.type):
            encoded = base64.b64encode(data).decode()
            return {
                "type": block.type,
                "data": encoded,
                "mimeType": block.mime_type or "application/octet-stream",
            }
        return text_block(block.text or f"[{block.type} {block.name or ''}: the agent takes none]")
    if block.type == "resource" and block.text is not None:
        if capabilities.get("embeddedContext"):
            resource = {
                "uri": block.uri or f"file:///{block.name or 'attachment'}",
                "text": well_formed(block.text),
            }
            return {"type": "resource", "resource": resource}
        return text_block("\n".join(part for part in (block.name, block.uri, block.text) if part))
    return {"type": "resource_link", "uri": block.uri or "", "name": block.name or block.uri or "resource"}
