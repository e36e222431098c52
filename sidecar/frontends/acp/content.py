"""Content blocks of editors and of chats. Pure: the bytes of stored media are arguments."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

from ...model import JsonObject
from ...model.content import Block, GivenBlock
from ...model.failures import invalid_param

TYPES = ("text", "image", "audio", "resource_link", "resource")


def read_blocks(given: Sequence[JsonObject]) -> list[GivenBlock]:
    """The blocks of a prompt as chats store them; raises with the member that is wrong."""
    return [_read_block(block, f"prompt[{position}]") for position, block in enumerate(given)]


def command_line(blocks: Sequence[GivenBlock]) -> str | None:
    """The text of a prompt that may be a slash command: files that it mentions count as their paths."""
    if not blocks or blocks[0].type != "text" or not (blocks[0].text or "").startswith("/"):
        return None
    words = [block.text if block.type == "text" else _quoted(file_path(block.uri or "")) for block in blocks]
    return "".join(word or "" for word in words).rstrip()


def file_path(uri: str) -> str:
    """The path of a `file:` address; any other address as it is."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return uri
    return unquote(parts.path) if parts.scheme == "file" and parts.path else uri


def text_block(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def written_block(block: Block, media: Mapping[str, bytes]) -> JsonObject:
    """A stored block for the editor; a medium without bytes is replaced by a line that names it."""
    if block.type == "resource_link":
        return _present(
            type="resource_link",
            name=block.name or block.uri or "link",
            uri=block.uri or "",
            mimeType=block.mime_type,
            size=block.size,
        )
    if block.type == "resource":
        inside = _present(uri=block.uri or "", text=block.text or "", mimeType=block.mime_type)
        return {"type": "resource", "resource": inside}
    if block.type in ("image", "audio"):
        data = media.get(block.blob_id or "")
        if data is not None and block.mime_type:
            return {
                "type": block.type,
                "data": base64.b64encode(data).decode(),
                "mimeType": block.mime_type,
            }
        return text_block(block.text or f"[{block.type} {block.name or block.mime_type or ''}]")
    return text_block(block.text or "")


def _read_block(block: JsonObject, field: str) -> GivenBlock:
    kind = block.get("type")
    if kind not in TYPES:
        raise invalid_param(f"{field}.type", f"one of {', '.join(TYPES)}")
    if kind == "text":
        return GivenBlock(type="text", text=_text(block, "text", field))
    if kind in ("image", "audio"):
        uri = block.get("uri")
        name = _base_name(uri) if isinstance(uri, str) else None
        return GivenBlock(
            type="image" if kind == "image" else "audio", data=_text(block, "data", field), name=name
        )
    if kind == "resource_link":
        size = block.get("size")
        return GivenBlock(
            type="resource_link",
            uri=_text(block, "uri", field),
            name=_optional(block, "title") or _optional(block, "name"),
            mime_type=_optional(block, "mimeType"),
            size=size if type(size) is int and size >= 0 else None,
        )
    return _read_resource(block.get("resource"), f"{field}.resource")


def _read_resource(resource: Any, field: str) -> GivenBlock:
    """An embedded resource: its text, or an image or audio by its bytes."""
    if not isinstance(resource, dict):
        raise invalid_param(field, "an object with `uri`, and `text` or `blob`")
    uri, mime = _text(resource, "uri", field), _optional(resource, "mimeType")
    if "text" in resource:
        return GivenBlock(type="resource", uri=uri, text=_text(resource, "text", field), mime_type=mime)
    data = _text(resource, "blob", field)
    family = (mime or "").partition("/")[0]
    if family == "image":
        return GivenBlock(type="image", data=data, name=_base_name(uri))
    if family == "audio":
        return GivenBlock(type="audio", data=data, name=_base_name(uri))
    # No provider takes other bytes: the model gets the address, and can read a file of the project by a tool.
    return GivenBlock(type="resource_link", uri=uri, name=_base_name(uri), mime_type=mime)


def _base_name(uri: str) -> str | None:
    return file_path(uri).rstrip("/").rpartition("/")[2] or None


def _text(block: JsonObject, name: str, field: str) -> str:
    value = block.get(name)
    if not isinstance(value, str):
        raise invalid_param(f"{field}.{name}", "a text")
    return value


def _optional(block: JsonObject, name: str) -> str | None:
    value = block.get(name)
    return value if isinstance(value, str) and value else None


def _quoted(path: str) -> str:
    return f'"{path}"' if any(mark in path for mark in " '\\") else path


def _present(**members: Any) -> JsonObject:
    return {name: value for name, value in members.items() if value is not None}
