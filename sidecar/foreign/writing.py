"""Writes a chat as a session file that another program resumes. Pure: returns lines, and opens nothing.

Thoughts are left out: both programs send them back to the model, which takes only those that its provider has signed.
"""

from __future__ import annotations

import base64
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from ..model import JsonObject
from ..model.content import Block, Item, Turn, output_media
from .base import Attachment

FORMATS = ("claude-code", "codex")

CLAUDE_VERSION = "2.1.0"
"""The version that a record of Claude Code names: one since which its format has not changed."""

CODEX_VERSION = "0.100.0"

_SESSION = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

Blobs = Mapping[str, Attachment]


def session_id(path: str | None) -> str:
    """The id that the name of the file has, as both programs find a session by it; else a new one."""
    found = _SESSION.search(path or "")
    return found[0] if found else str(uuid.uuid4())


def session_lines(
    format: str, id: str, turns: Sequence[Turn], project: str | None, blobs: Blobs
) -> Iterator[bytes]:
    """The visible turns as the lines of a session file."""
    shown = [turn for turn in turns if not turn.hidden]
    records = (
        _claude(id, shown, project, blobs) if format == "claude-code" else _codex(id, shown, project, blobs)
    )
    for record in records:
        yield msgspec.json.encode(record)


def blob_ids(turns: Sequence[Turn]) -> list[str]:
    """The blobs that the lines embed."""
    items = [item for turn in turns if not turn.hidden for item in turn.items]
    blocks = (block for item in items for block in (*(item.content or ()), *output_media(item)))
    return list(dict.fromkeys(block.blob_id for block in blocks if block.blob_id and block.type == "image"))


def _claude(id: str, turns: Sequence[Turn], project: str | None, blobs: Blobs) -> Iterator[JsonObject]:
    parent: str | None = None
    for turn in turns:
        for item in turn.items:
            for role, content, at in _claude_messages(item, blobs):
                message: JsonObject = {"role": role, "content": content}
                own = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{id}:{item.id}:{role}"))
                if role == "assistant":
                    message |= _claude_reply(own, turn, content)
                yield {
                    "parentUuid": parent,
                    "isSidechain": False,
                    "userType": "external",
                    "cwd": project or "/",
                    "sessionId": id,
                    "version": CLAUDE_VERSION,
                    "type": role,
                    "message": message,
                    "uuid": own,
                    "timestamp": _iso(at),
                }
                parent = own


def _claude_messages(item: Item, blobs: Blobs) -> Iterator[tuple[str, object, int]]:
    ended = item.ended_at or item.started_at
    if item.type == "user":
        content = [_claude_block(block, blobs) for block in item.content or ()]
        yield "user", content or [{"type": "text", "text": item.text or ""}], item.started_at
    elif item.type == "message" and item.text:
        yield "assistant", [{"type": "text", "text": item.text}], ended
    elif item.type == "tool":
        call = f"toolu_{_plain(item.id)}"
        use = {"type": "tool_use", "id": call, "name": item.name or "tool", "input": item.input or {}}
        yield "assistant", [use], item.started_at
        media = [_claude_block(block, blobs) for block in output_media(item)]
        result: JsonObject = {
            "type": "tool_result",
            "tool_use_id": call,
            "content": [{"type": "text", "text": _output(item)}, *media],
        }
        yield "user", [result | ({} if item.status == "completed" else {"is_error": True})], ended


def _claude_reply(id: str, turn: Turn, content: object) -> JsonObject:
    calls = isinstance(content, list) and content and content[0].get("type") == "tool_use"
    return {
        "id": f"msg_{_plain(id)}",
        "type": "message",
        "model": turn.model or "unknown",
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }


def _claude_block(block: Block, blobs: Blobs) -> JsonObject:
    blob = blobs.get(block.blob_id or "")
    if blob is None:
        return {"type": "text", "text": _block_text(block)}
    data = base64.b64encode(blob.data).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": blob.mime_type, "data": data}}


def _codex(id: str, turns: Sequence[Turn], project: str | None, blobs: Blobs) -> Iterator[JsonObject]:
    first = turns[0].started_at if turns else 0
    meta: JsonObject = {"id": id, "timestamp": _iso(first), "cwd": project or "/", "originator": "sidecar"}
    meta |= {"cli_version": CODEX_VERSION, "source": "cli"}
    yield {"timestamp": _iso(first), "type": "session_meta", "payload": meta}
    for turn in turns:
        for item in turn.items:
            ended = item.ended_at or item.started_at
            for type, payload in _codex_records(item, blobs):
                yield {"timestamp": _iso(ended), "type": type, "payload": payload}


def _codex_records(item: Item, blobs: Blobs) -> Iterator[tuple[str, JsonObject]]:
    if item.type == "user":
        content = [_codex_block(block, blobs) for block in item.content or ()]
        text = item.text or ""
        content = content or [{"type": "input_text", "text": text}]
        yield "response_item", {"type": "message", "role": "user", "content": content}
        yield "event_msg", {"type": "user_message", "message": text, "images": []}
    elif item.type == "message" and item.text:
        said = [{"type": "output_text", "text": item.text}]
        yield "response_item", {"type": "message", "role": "assistant", "content": said}
        yield "event_msg", {"type": "agent_message", "message": item.text}
    elif item.type == "tool":
        call = f"call_{_plain(item.id)}"
        arguments = msgspec.json.encode(item.input or {}).decode()
        made: JsonObject = {
            "type": "function_call",
            "name": item.name or "tool",
            "arguments": arguments,
            "call_id": call,
        }
        yield "response_item", made
        media = [_codex_block(block, blobs) for block in output_media(item)]
        output: object = _output(item)
        if media:
            output = [{"type": "input_text", "text": output}, *media]
        yield "response_item", {"type": "function_call_output", "call_id": call, "output": output}


def _codex_block(block: Block, blobs: Blobs) -> JsonObject:
    blob = blobs.get(block.blob_id or "")
    if blob is None:
        return {"type": "input_text", "text": _block_text(block)}
    data = base64.b64encode(blob.data).decode()
    return {"type": "input_image", "image_url": f"data:{blob.mime_type};base64,{data}"}


def _block_text(block: Block) -> str:
    if block.type == "text":
        return block.text or ""
    label = block.name or block.uri or block.type
    return f"{label}\n{block.text}" if block.text else f"({label})"


def _output(item: Item) -> str:
    text = (item.output or {}).get("text")
    return text if isinstance(text, str) and text else f"The tool call was {item.status}."


def _plain(id: str) -> str:
    return re.sub(r"[^A-Za-z0-9]", "", id)[:48]


def _iso(milliseconds: int) -> str:
    moment = datetime.fromtimestamp(max(milliseconds, 0) / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
