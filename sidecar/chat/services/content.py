"""Converts the content of prompts and tool results for storage: media and attached files become blobs.

Media are checked here by their bytes: what does not decode is refused before anything is stored, so that no chat
contains it. The declared type is corrected by the bytes. docs/media.md lists the formats and limits.
"""

from __future__ import annotations

import base64
import binascii
import os
from typing import TYPE_CHECKING

import anyio.to_thread
import msgspec

from ...media import BadMedia, inspect
from ...model.content import Block, GivenBlock
from ...model.failures import Refused, invalid_param
from ...model.limits import MAX_TEXT_BYTES
from ...store import Store
from .named_files import read_client_file

if TYPE_CHECKING:
    from ...media import Facts, MediaKind

MAX_ATTACHED_BYTES = 24 * 1024 * 1024
"""The base64 of this size fits into one frame, so that a client can read back what came by path."""

MAX_BLOCKS = 1000
"""Of one prompt: more than a person attaches. Other chats wait while all of them are checked and encoded."""

_EXPECTED = {
    "image": "a PNG, JPEG, GIF or WebP image that decodes, within 20 MiB, 16384 pixels a side and 67108864 in all",
    "audio": "WAV, MP3, FLAC, Ogg, AAC or AIFF audio within 20 MiB",
}

_REQUIRED_MEMBER = {"text": "text", "resource_link": "uri", "resource": "uri"}


async def store_content(store: Store, content: list[GivenBlock]) -> list[Block]:
    """The blocks as the history stores them: bytes by `blobId`, never inline."""
    if not content:
        raise invalid_param("content", "at least one block")
    if len(content) > MAX_BLOCKS:
        raise _too_long(MAX_BLOCKS, f"at most {MAX_BLOCKS} blocks")
    if sum(len((block.text or "").encode("utf-8", "surrogatepass")) for block in content) > MAX_TEXT_BYTES:
        raise _too_long(MAX_TEXT_BYTES, f"at most {MAX_TEXT_BYTES} bytes of text in all blocks together")
    return [
        await _store_block(store, block, f"content[{position}]") for position, block in enumerate(content)
    ]


def _too_long(limit: int, expected: str) -> Refused:
    return Refused(
        "invalid_params",
        f"`content`: {expected}. Shorten it, or name files that tools can read in part",
        reason="too_long",
        params={"field": "content", "limit": limit, "expected": expected},
    )


def decode_base64(data: str, field: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        expected = "base64 with + and /, padded with =, without line breaks, spaces or `data:` in front"
        raise invalid_param(field, expected) from error


async def _store_block(store: Store, block: GivenBlock, field: str) -> Block:
    needed = _REQUIRED_MEMBER.get(block.type)
    if needed and getattr(block, needed) is None:
        raise invalid_param(f"{field}.{needed}", f"required in a {block.type} block")
    if block.type not in ("image", "audio"):
        return msgspec.convert(msgspec.structs.replace(block, blob_id=None), Block, from_attributes=True)
    return await store_medium(store, block, field)


async def store_medium(store: Store, block: GivenBlock, field: str) -> Block:
    """Check an image or audio by its bytes and store it; raises -32602 that names the field and the problem."""
    given = {"data": block.data, "path": block.path, "blobId": block.blob_id}
    sources = [name for name, value in given.items() if value is not None]
    if len(sources) != 1:
        raise invalid_param(field, "exactly one of `data`, `path` and `blobId`")
    kind: MediaKind = "image" if block.type == "image" else "audio"
    if block.blob_id is not None:
        found = await store.blobs.info(block.blob_id)
        _, data = await store.blobs.read(found.id, 0, found.size)
        facts = await _check(data, kind, f"{field}.blobId")
    else:
        data, name = await _read_bytes(block, field)
        facts = await _check(data, kind, f"{field}.{sources[0]}")
        found = await store.blobs.put(data, facts.mime_type, block.name or name)
    return Block(
        type=kind,
        blob_id=found.id,
        mime_type=facts.mime_type,
        name=block.name or found.name,
        size=found.size,
    )


async def _read_bytes(block: GivenBlock, field: str) -> tuple[bytes, str | None]:
    if block.data is not None:
        return decode_base64(block.data, f"{field}.data"), None
    path = block.path or ""
    return await read_client_file(path, MAX_ATTACHED_BYTES, f"{field}.path"), os.path.basename(path)


async def _check(data: bytes, kind: MediaKind, field: str) -> Facts:
    """The media type and size of the bytes; raises -32602 with the error and what is allowed."""
    try:
        return await anyio.to_thread.run_sync(inspect, data, kind)
    except BadMedia as error:
        raise Refused(
            "invalid_params",
            f"`{field}`: the {kind} cannot be sent: {error}",
            reason="bad_media",
            action="edit_prompt",
            params={"field": field, "expected": _EXPECTED[kind], "found": str(error)},
        ) from error
