"""Handlers of methods about the files of a chat: `files/*`, `patches/*`, `git/diff`."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec
from sidecar_protocol import messages as m
from sidecar_protocol.messages.base import Key
from sidecar_protocol.peer import Call

from ...chat.actions import files, import_export, patches
from ...chat.actions.patches import PatchSelector
from ...chat.services.named_files import write_client_file
from ...chat.sessions.chats import Chats
from ...chat.sessions.session import Session
from ...model.events import StoredEvent, decode, encode
from ...model.failures import invalid_param
from ...rpc.dispatch import Handler, run_to_end
from ...text.token_estimate import BYTES_PER_TOKEN
from ...workspace import git
from ...workspace.diff_shares import clip_files
from .wire import as_wire, chat_ref, session_of

DIFF_BYTES = 24 * 1024
"""A diff is bounded in bytes; an app that counts in tokens gets no more than it asked for."""


class FileHandlers:
    def __init__(self, ready: Callable[[], Awaitable[Chats]]) -> None:
        self._chats = ready

    def handlers(self) -> Mapping[str, Handler]:
        return {
            "files/open": self._open,
            "files/close": self._close,
            "files/pin": self._pin,
            "files/unpin": self._unpin,
            "files/list": self._list,
            "files/clear": self._clear,
            "patches/list": self._patches,
            "patches/show": self._show,
            "patches/clear": self._clear_patches,
            "patches/revert": self._revert,
            "patches/apply": self._apply,
            "patches/export": self._export,
            "git/diff": self._diff,
        }

    async def _open(self, call: Call, params: m.FilesOpenParams) -> m.FilesResult:
        session = await session_of(self._chats, params)
        changed = await run_to_end(files.open_matching(session, params.path, params.glob, params.pinned))
        return _files(session, changed)

    async def _close(self, call: Call, params: m.FilesCloseParams) -> m.FilesResult:
        session = await session_of(self._chats, params)
        changed = await run_to_end(files.close_matching(session, params.path, params.glob))
        return _files(session, changed)

    async def _pin(self, call: Call, params: m.FilesPinParams) -> m.FilesResult:
        session = await session_of(self._chats, params)
        changed = await run_to_end(files.pin_file(session, params.path))
        return _files(session, changed)

    async def _unpin(self, call: Call, params: m.FilesUnpinParams) -> m.FilesResult:
        session = await session_of(self._chats, params)
        changed = await run_to_end(files.unpin_file(session, params.path))
        return _files(session, changed)

    async def _list(self, call: Call, params: Key) -> m.FilesResult:
        session = await session_of(self._chats, params)
        await session.refresh_unless_owner()
        return _files(session, await files.list_files(session))

    async def _clear(self, call: Call, params: Key) -> m.FilesResult:
        session = await session_of(self._chats, params)
        changed = await run_to_end(files.close_all(session))
        return _files(session, changed)

    async def _patches(self, call: Call, params: m.PatchesListParams) -> m.PatchesListResult:
        session = await session_of(self._chats, params)
        found = await patches.list_patches(session, PatchSelector(path=params.path, turn_id=params.turn_id))
        start = _offset(params.cursor)
        if params.limit < 1:
            raise invalid_param("limit", "at least 1")
        end = start + params.limit
        return m.PatchesListResult(
            **chat_ref(session.chat.key),
            items=[as_wire(patch, m.PatchInfo) for patch in found[start:end]],
            next_cursor=str(end) if end < len(found) else None,
        )

    async def _show(self, call: Call, params: m.PatchesShowParams) -> m.PatchesShowResult:
        session = await session_of(self._chats, params)
        items = [
            as_wire(patch, m.Patch) for patch in await patches.show_patches(session, _patch_selector(params))
        ]
        return m.PatchesShowResult(**chat_ref(session.chat.key), items=items)

    async def _clear_patches(self, call: Call, params: Key) -> m.PatchesClearResult:
        session = await session_of(self._chats, params)
        count, seq = await run_to_end(patches.clear_patches(session))
        return m.PatchesClearResult(**chat_ref(session.chat.key), cleared=count, seq=seq)

    async def _revert(self, call: Call, params: m.PatchesRevertParams) -> m.PatchesChanged:
        session = await session_of(self._chats, params)
        changed = await run_to_end(patches.revert_patches(session, _patch_selector(params), params.dry_run))
        return _encode_changed(session, changed)

    async def _apply(self, call: Call, params: m.PatchesApplyParams) -> m.PatchesChanged:
        session = await session_of(self._chats, params)
        changed = await run_to_end(patches.apply_patches(session, _patch_selector(params), params.dry_run))
        return _encode_changed(session, changed)

    async def _export(self, call: Call, params: m.PatchesExportParams) -> m.PatchesExportResult:
        session = await session_of(self._chats, params)
        exported = await patches.export_patches(session, params.turn_id)
        data = exported.patch
        result = m.PatchesExportResult(
            **chat_ref(session.chat.key),
            files=exported.files,
            bytes=len(data),
            path=params.path,
            left_out=exported.left_out,
        )
        if params.path is not None:
            await write_client_file(params.path, data, overwrite=params.overwrite)
            return result
        import_export.check_inline(len(data))
        try:
            return msgspec.structs.replace(result, patch=data.decode())
        except UnicodeDecodeError:
            return msgspec.structs.replace(result, data=base64.b64encode(data).decode())

    async def _diff(self, call: Call, params: m.GitDiffParams) -> m.GitDiffResult:
        session = await session_of(self._chats, params)
        if params.max_tokens is not None and params.max_tokens < 1:
            raise invalid_param("maxTokens", "a positive number")
        workspace = session.environment.require_workspace()
        most = DIFF_BYTES if params.max_tokens is None else params.max_tokens * BYTES_PER_TOKEN
        found = await git.diff(workspace, staged=params.staged)
        text, cut = clip_files(found.text, most)
        return m.GitDiffResult(
            **chat_ref(session.chat.key),
            summary=found.summary,
            diff=text,
            truncated=found.truncated or cut,
            files=[as_wire(file, m.GitDiffFile) for file in found.files],
            untracked=list(found.untracked),
        )


def open_files(viewed: list[files.ViewedFile]) -> list[m.OpenFile]:
    return [
        m.OpenFile(
            path=found.file.path,
            pinned=found.file.pinned,
            last_viewed_at=found.file.last_viewed_at,
            added_at=found.file.added_at,
            opened_by=found.file.opened_by,
            state=found.state,
        )
        for found in viewed
    ]


async def with_open_files(session: Session, events: Sequence[StoredEvent]) -> list[StoredEvent]:
    """The events with the open files of each `files.updated` as `files/list` shows them."""
    return [
        await _with_open_files(session, event) if event.type == "files.updated" else event for event in events
    ]


async def _with_open_files(session: Session, event: StoredEvent) -> StoredEvent:
    viewed = await files.stored_files(session, decode(event.data)["files"])
    return msgspec.structs.replace(event, data=encode({"files": open_files(viewed)}))


def _files(session: Session, changed: files.FilesChanged) -> m.FilesResult:
    return m.FilesResult(
        **chat_ref(session.chat.key),
        files=open_files(changed.files),
        seq=changed.seq,
        not_pinned=changed.not_pinned,
        left=changed.left,
    )


def _encode_changed(session: Session, changed: patches.PatchesChanged) -> m.PatchesChanged:
    return m.PatchesChanged(
        **chat_ref(session.chat.key),
        items=[as_wire(patch, m.PatchInfo) for patch in changed.items],
        file_changes=[as_wire(change, m.FileRestore) for change in changed.files],
        seq=changed.seq,
    )


def _patch_selector(params: m.PatchesShowParams) -> PatchSelector:
    if params.id is params.path is params.turn_id is None:
        raise invalid_param("id", "one of `id`, `path` and `turnId`")
    return PatchSelector(id=params.id, path=params.path, turn_id=params.turn_id)


def _offset(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not (cursor.isdecimal() and len(cursor) < 10):
        raise invalid_param("cursor", "a `nextCursor` of an earlier answer")
    return int(cursor)
