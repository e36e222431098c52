"""Imports and exports chats: a lossless format, Markdown for people, and plain turns from other programs."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from io import BytesIO
from typing import Literal

import anyio.to_thread
import msgspec

from ...foreign import writing
from ...foreign.base import Attachment
from ...model.chats import Chat
from ...model.content import Item, Turn, output_media
from ...model.events import encode
from ...model.failures import Refused, invalid_param
from ...model.files import Patch
from ...store import Store
from ...store.tables.blobs import BlobInfo
from ...store.tables.work import LedgerEntry
from ...workspace.names import RealNames
from ...workspace.paths import Workspace
from ..journal.identity import ChatAddress
from ..services.named_files import check_absolute, open_named, write_client_file
from ..sessions.chats import Chats
from ..sessions.session import Session
from ..tool_calls.output_index import index_outputs
from . import import_filter, import_slices
from .history_import import ImportedHistory
from .import_slices import ImportFile, ReportBytes, Slices

MAX_INLINE_BYTES = 24 * 1024 * 1024
"""What certainly fits into a frame as a JSON string; more goes to a file."""


MAX_IMPORT_BYTES = 1024 * 1024 * 1024
"""A gigabyte of chat is a mistake, or an attack."""


ExportFormat = Literal["jsonl", "markdown", "claude-code", "codex"]


class ExportResult(msgspec.Struct, frozen=True):
    turns: int
    size: int
    path: str | None
    text: str | None


async def export(
    store: Store,
    session: Session,
    format: ExportFormat,
    path: str | None,
    overwrite: bool,
) -> ExportResult:
    """Export the whole chat, including hidden turns, to a file or inline."""
    if path is not None:
        check_absolute(path)
    chat, turns = await store.turns.all(session.chat.id)
    if format in writing.FORMATS:
        data = await _session_file(store, chat, turns, format, path)
    else:
        patches = await store.patches.all(session.chat.id)
        blobs = await _blob_lines(store, turns, patches) if format == "jsonl" else []

        def encode_all() -> bytes:
            lines = _markdown(chat, turns) if format == "markdown" else _jsonl(chat, turns, patches, blobs)
            return "\n".join([*lines, ""]).encode()

        data = await anyio.to_thread.run_sync(encode_all)
    if path is not None:
        await write_client_file(path, data, overwrite=overwrite)
        return ExportResult(len(turns), len(data), path, None)
    check_inline(len(data))
    return ExportResult(len(turns), len(data), None, data.decode())


async def _session_file(store: Store, chat: Chat, turns: list[Turn], format: str, path: str | None) -> bytes:
    """The chat as a session of another program, which finds it by the id in the file's name."""
    blobs: dict[str, Attachment] = {}
    for id in writing.blob_ids(turns):
        info, data = await store.blobs.read(id, 0, 2**31 - 1)
        blobs[id] = Attachment(data, info.mime_type, info.name)

    def encode_all() -> bytes:
        id = writing.session_id(path)
        return b"".join(
            line + b"\n" for line in writing.session_lines(format, id, turns, chat.project_path, blobs)
        )

    return await anyio.to_thread.run_sync(encode_all)


def check_inline(size: int) -> None:
    """Refuse to send what does not fit a frame."""
    if size > MAX_INLINE_BYTES:
        raise Refused(
            "message_too_large",
            f"The export has {size} bytes: give `path` to write it to a file",
            params={"size": size, "field": "path"},
        )


async def open_source(path: str | None, data: str | None) -> ImportFile:
    """Open the source of an import; the caller closes it."""
    if (path is None) == (data is None):
        raise invalid_param("path", "exactly one of `path` and `data`")
    if data is not None:
        return ImportFile(BytesIO(data.encode()), "data")
    assert path is not None
    return ImportFile(await open_named(path, MAX_IMPORT_BYTES), "path")


class ImportedChat(msgspec.Struct, frozen=True):
    """A chat that was imported into, what was read, and the names of what was left out."""

    session: Session
    imported: ImportedHistory
    ignored: list[str]


async def import_into(
    chats: Chats, address: ChatAddress, source: ImportFile, append: bool, report: ReportBytes
) -> ImportedChat:
    """Create a chat from a source; a chat that has turns only gets more with `append`."""
    # Everything is read once before a chat is created: a file with one wrong line changes nothing.
    imported = await import_slices.survey(source, report)
    opened = await chats.open(address, create=True)
    session = opened.session
    if session.chat.turns and not append:
        raise Refused(
            "already_exists",
            "The chat has turns: import with append: true, or into another chat",
            params={"sessionId": session.chat.key.session_id, "field": "append"},
        )
    ignored = await _filter(chats, session.chat, imported)
    slices = Slices(source, imported, session.chat, renumber=append)
    try:
        await import_slices.write(session, slices, source, report, created=opened.created)
    finally:
        # The undo of a failed import has removed the chat that it had created.
        if session.deleted:
            chats.forget(session.chat.key.session_id)
    session.run_in_background(index_outputs, session.environment, slices.outputs)
    return ImportedChat(session, imported, ignored)


async def _filter(chats: Chats, chat: Chat, imported: ImportedHistory) -> list[str]:
    """Leave out what a file may not set; a chat that has a configuration keeps it."""
    if chat.config:
        own, imported.config = imported.config, {}
    else:
        own = {}
    model = imported.config.get("model")
    configured = (
        isinstance(model, str)
        and not import_filter.names_path(model)
        and await chats.providers.is_configured(model)
    )

    def work() -> list[str]:
        names = all_names(chat.project_path, chats.store)
        return import_filter.filter_import(imported, chat.project_path, names, model_is_configured=configured)

    ignored = await anyio.to_thread.run_sync(work)
    return sorted({*ignored, *(key for key, value in own.items() if chat.config.get(key) != value)})


def all_names(project: str | None, store: Store) -> import_filter.AllNames:
    """A function that looks up the names of the project's files. Blocking."""
    if project is None or not os.path.isdir(project):
        return lambda path: ()
    real_names = RealNames(Workspace(project, (), store.own_files))

    def names_of(path: str) -> tuple[str, ...]:
        return (*real_names(path), *real_names.aliases(path))

    return names_of


async def _blob_lines(store: Store, turns: list[Turn], patches: list[LedgerEntry]) -> list[str]:
    """The lines of the blobs that turns and patches refer to."""
    ids = await anyio.to_thread.run_sync(_blob_ids, turns, [entry.patch for entry in patches])
    lines = []
    for id in ids:
        info, data = await store.blobs.read(id, 0, 2**31 - 1)
        lines.append(await anyio.to_thread.run_sync(_blob_line, info, data))
    return lines


def _blob_line(info: BlobInfo, data: bytes) -> str:
    blob = {
        "id": info.id,
        "mimeType": info.mime_type,
        "name": info.name,
        "data": base64.b64encode(data).decode(),
    }
    return encode({"blob": blob}).decode()


def _jsonl(chat: Chat, turns: list[Turn], patches: list[LedgerEntry], blobs: list[str]) -> Iterator[str]:
    header = {
        "sidecar": "chat",
        "version": 1,
        "title": chat.title,
        "titleBy": chat.title_by,
        "head": chat.head,
    }
    yield encode({**header, "config": chat.config}).decode()
    yield from blobs
    for turn in turns:
        yield encode({"turn": msgspec.structs.replace(turn, siblings=[])}).decode()
    for entry in patches:
        cleared = {"cleared": True} if entry.cleared else {}
        yield encode({"patch": entry.patch, **cleared}).decode()
    if chat.open_files:
        files = [{key: entry[key] for key in entry if key != "imported"} for entry in chat.open_files]
        yield encode({"openFiles": files}).decode()


def _blob_ids(turns: list[Turn], patches: list[Patch]) -> list[str]:
    items = [item for turn in turns for item in turn.items]
    found = [block.blob_id for item in items for block in (*(item.content or ()), *output_media(item))]
    found += [item.output_ref for item in items]
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
    yield item.text or item.output_text
    for change in item.changes or []:
        yield f"\n````diff\n{change.get('unifiedDiff') or change['path']}\n````"
    for block in (*(item.content or ()), *output_media(item)):
        if block.type != "text":
            yield f"- {block.type}: {block.name or block.uri or block.blob_id}"
