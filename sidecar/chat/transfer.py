"""Chats in and out: an export that imports as it was, Markdown for people, and plain turns from elsewhere."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from typing import Any, Literal

import anyio
import anyio.to_thread
import msgspec

from ..model.chats import Chat
from ..model.content import Item, Turn
from ..model.events import encode
from ..model.failures import Refused, invalid
from ..model.files import Patch
from ..store import Store
from ..store.work import LedgerEntry
from ..system.files import FileRefused, read_regular, write_whole
from .chats import Chats
from .history_import import Imported, parse, to_events
from .identity import Address
from .library import kept_anew
from .session import Session

MAX_INLINE_BYTES = 24 * 1024 * 1024
"""What surely fits into a frame once it is a JSON string; more goes to a file."""


MAX_IMPORT_BYTES = 1024 * 1024 * 1024
"""A gigabyte of chat is a mistake, or an attack."""


class Exported(msgspec.Struct, frozen=True):
    turns: int
    size: int
    path: str | None
    text: str | None


async def export(
    store: Store, session: Session, format: Literal["jsonl", "markdown"], path: str | None
) -> Exported:
    """The whole chat, hidden turns too, to a file or inline."""
    chat, turns = await store.all_turns(session.chat.id)
    patches = await store.patches(session.chat.id)
    lines = (
        _markdown(chat, turns)
        if format == "markdown"
        else [line async for line in _jsonl(store, chat, turns, patches)]
    )
    data = "\n".join([*lines, ""]).encode()
    if path is not None:
        await write_file(path, data)
        return Exported(len(turns), len(data), path, None)
    check_inline(len(data))
    return Exported(len(turns), len(data), None, data.decode())


async def write_file(path: str, data: bytes) -> None:
    """Write what a client asked for to the file that it named."""
    await anyio.to_thread.run_sync(_write, _absolute(path), data)


def check_inline(size: int) -> None:
    """Refuse to send what does not fit a frame."""
    if size > MAX_INLINE_BYTES:
        raise Refused(
            "message_too_large",
            f"The export has {size} bytes: give `path` to write it to a file",
            params={"size": size, "field": "path"},
        )


async def read_source(path: str | None, data: str | None) -> str:
    """The text that is to be imported."""
    if (path is None) == (data is None):
        raise invalid("path", "exactly one of `path` and `data`")
    if data is not None:
        return data
    assert path is not None
    return await anyio.to_thread.run_sync(_read, _absolute(path))


async def import_into(chats: Chats, address: Address, source: str, append: bool) -> tuple[Session, Imported]:
    """Make a chat of what was read; into one that has turns only when asked to append."""
    imported = await anyio.to_thread.run_sync(parse, source)
    opened = await chats.open(address, create=True)
    session = opened.session
    if session.chat.turns and not append:
        raise Refused(
            "already_exists",
            "The chat has turns: import with append: true, or into another chat",
            params={"sessionId": session.chat.key.session_id, "field": "append"},
        )
    for blob in imported.blobs:
        await chats.store.put_blob(blob.data, blob.mime_type, blob.name)
    await session.append(to_events(imported, session.chat, renumber=append))
    session.beside(kept_anew, session.desk, imported.turns_read)
    return session, imported


async def _jsonl(store: Store, chat: Chat, turns: list[Turn], patches: list[LedgerEntry]) -> Any:
    header = {
        "sidecar": "chat",
        "version": 1,
        "title": chat.title,
        "titleBy": chat.title_by,
        "head": chat.head,
    }
    yield encode({**header, "config": chat.config}).decode()
    for id in _blob_ids(turns, [entry.patch for entry in patches]):
        info, data = await store.read_blob(id, 0, 2**31 - 1)
        blob = {
            "id": id,
            "mimeType": info.mime_type,
            "name": info.name,
            "data": base64.b64encode(data).decode(),
        }
        yield encode({"blob": blob}).decode()
    for turn in turns:
        yield encode({"turn": msgspec.structs.replace(turn, siblings=[])}).decode()
    for entry in patches:
        cleared = {"cleared": True} if entry.cleared else {}
        yield encode({"patch": entry.patch, **cleared}).decode()
    if chat.open_files:
        yield encode({"openFiles": chat.open_files}).decode()


def _blob_ids(turns: list[Turn], patches: list[Patch]) -> list[str]:
    items = [item for turn in turns for item in turn.items]
    found = [block.blob_id for item in items for block in item.content or []]
    found += [(item.output or {}).get("ref") for item in items]
    found += [
        change.get(side) for item in items for change in item.changes or [] for side in ("oldRef", "newRef")
    ]
    found += [ref for patch in patches for ref in (patch.old_ref, patch.new_ref)]
    return list(dict.fromkeys(id for id in found if id))


def _markdown(chat: Chat, turns: list[Turn]) -> list[str]:
    lines = [f"# {chat.title or chat.key.value}"]
    for turn in turns:
        if not turn.hidden:
            for item in turn.items:
                lines += _markdown_item(item)
    return lines


def _markdown_item(item: Item) -> Iterator[str]:
    headings = {"user": item.name or "You", "message": "Assistant", "thought": "Thinking"}
    yield ""
    yield f"## {headings.get(item.type, item.title or item.type)}"
    yield ""
    if item.status not in ("completed", "running"):
        yield f"*({item.status})*"
    yield item.text or (item.output or {}).get("text") or ""
    for change in item.changes or []:
        yield f"\n````diff\n{change.get('unifiedDiff') or change['path']}\n````"
    for block in item.content or []:
        if block.type != "text":
            yield f"- {block.type}: {block.name or block.uri or block.blob_id}"


def _absolute(path: str) -> str:
    if not os.path.isabs(path) or "\0" in path:
        raise invalid("path", "an absolute path")
    return path


def _write(path: str, data: bytes) -> None:
    try:
        write_whole(path, data)
    except FileRefused as refusal:
        raise invalid("path", f"a file that can be written: {refusal}") from refusal


def _read(path: str) -> str:
    try:
        return read_regular(path, MAX_IMPORT_BYTES).decode("utf-8-sig")
    except FileRefused as refusal:
        raise invalid("path", f"a file that can be read: {refusal}") from refusal
    except UnicodeDecodeError as error:
        raise invalid("path", f"a file in UTF-8 ({error.reason} at byte {error.start})") from error
