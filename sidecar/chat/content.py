"""A prompt's content, made fit to keep: media and attached files become blobs at send time, text stays text."""

from __future__ import annotations

import base64
import binascii
import os
from typing import Any

import anyio.to_thread
import msgspec

from ..model.content import Block
from ..model.failures import invalid
from ..store import Store
from ..system.files import FileRefused, read_regular

MAX_ATTACHED_BYTES = 24 * 1024 * 1024
"""As much as base64 of it fits into one frame, so that what came by path can be read back."""

_NEEDS = {"text": "text", "resource_link": "uri", "resource": "uri"}


async def keep(store: Store, content: list[dict[str, Any]]) -> list[Block]:
    """The blocks as history carries them: bytes by `blobId`, never inline."""
    if not content:
        raise invalid("content", "at least one block")
    return [await _kept(store, block, f"content[{place}]") for place, block in enumerate(content)]


def decoded(data: str, field: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise invalid(field, "base64") from error


async def _kept(store: Store, block: dict[str, Any], field: str) -> Block:
    needed = _NEEDS.get(block["type"])
    if needed and needed not in block:
        raise invalid(f"{field}.{needed}", f"required in a {block['type']} block")
    if block["type"] not in ("image", "audio"):
        return msgspec.convert({key: value for key, value in block.items() if key not in _BYTES}, Block)
    sources = [key for key in _BYTES if key in block]
    if len(sources) != 1:
        raise invalid(field, "exactly one of `data`, `path` and `blobId`")
    if sources[0] == "blobId":
        found = await store.blob_info(block["blobId"])
    else:
        data, name, guessed = await _bytes_of(block, field)
        mime_type = block.get("mimeType") or guessed or "application/octet-stream"
        found = await store.put_blob(data, mime_type, block.get("name") or name)
    return Block(
        type=block["type"],
        blob_id=found.id,
        mime_type=block.get("mimeType") or found.mime_type,
        name=block.get("name") or found.name,
        size=found.size,
    )


_BYTES = ("data", "path", "blobId")


async def _bytes_of(block: dict[str, Any], field: str) -> tuple[bytes, str | None, str | None]:
    if "data" in block:
        return decoded(block["data"], f"{field}.data"), None, None
    path = block["path"]
    data = await anyio.to_thread.run_sync(_read_file, path, f"{field}.path")
    from mimetypes import guess_type  # 3 ms of import, for a prompt that names a file

    return data, os.path.basename(path), guess_type(path)[0]


def _read_file(path: str, field: str) -> bytes:
    if not os.path.isabs(path):
        raise invalid(field, "an absolute path")
    try:
        return read_regular(path, MAX_ATTACHED_BYTES)
    except FileRefused as refusal:
        raise invalid(field, f"a file that can be read: {refusal}") from refusal
