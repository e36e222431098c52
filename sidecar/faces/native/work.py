"""Handlers of what tools leave behind in a chat: `files/*`, `patches/*`, `git/diff`."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Mapping

import anyio
import msgspec
from sidecar_protocol import messages as m
from sidecar_protocol.messages.base import Key
from sidecar_protocol.peer import Call

from ...chat import files, patches, transfer
from ...chat.chats import Chats
from ...chat.patches import Chosen
from ...chat.session import Session
from ...model.failures import invalid
from ...rpc.dispatch import Handler
from ...workspace import git
from ...workspace.diff import clipped
from .wire import address_of, as_wire, chat_ref

DIFF_BYTES = 24 * 1024
BYTES_A_TOKEN = 3
"""A diff is bounded in bytes; an app that counts in tokens gets no more than it asked for."""


class WorkHandlers:
    def __init__(self, ready: Callable[[], Awaitable[Chats]]) -> None:
        self._ready = ready

    def table(self) -> Mapping[str, Handler]:
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

    async def _session(self, params: Key) -> Session:
        return await (await self._ready()).known(address_of(params))

    async def _open(self, call: Call, params: m.FilesOpenParams) -> m.FilesResult:
        session = await self._session(params)
        with anyio.CancelScope(shield=True):
            changed = await files.opened(session, params.path, params.glob, params.pinned)
        return _files(session, changed)

    async def _close(self, call: Call, params: m.FilesCloseParams) -> m.FilesResult:
        session = await self._session(params)
        with anyio.CancelScope(shield=True):
            changed = await files.closed(session, params.path, params.glob)
        return _files(session, changed)

    async def _pin(self, call: Call, params: m.FilesPinParams) -> m.FilesResult:
        session = await self._session(params)
        with anyio.CancelScope(shield=True):
            changed = await files.pinned(session, params.path)
        return _files(session, changed)

    async def _unpin(self, call: Call, params: m.FilesUnpinParams) -> m.FilesResult:
        session = await self._session(params)
        with anyio.CancelScope(shield=True):
            changed = await files.unpinned(session, params.path)
        return _files(session, changed)

    async def _list(self, call: Call, params: Key) -> m.FilesResult:
        session = await self._session(params)
        await session.look()
        return _files(session, await files.listed(session))

    async def _clear(self, call: Call, params: Key) -> m.FilesResult:
        session = await self._session(params)
        with anyio.CancelScope(shield=True):
            changed = await files.cleared(session)
        return _files(session, changed)

    async def _patches(self, call: Call, params: m.PatchesListParams) -> m.PatchesListResult:
        session = await self._session(params)
        found = await patches.listed(session, Chosen(path=params.path, turn_id=params.turn_id))
        start = _offset(params.cursor)
        if params.limit < 1:
            raise invalid("limit", "at least 1")
        end = start + params.limit
        return m.PatchesListResult(
            **chat_ref(session.chat.key),
            items=[as_wire(patch, m.PatchInfo) for patch in found[start:end]],
            next_cursor=str(end) if end < len(found) else None,
        )

    async def _show(self, call: Call, params: m.PatchesShowParams) -> m.PatchesShowResult:
        session = await self._session(params)
        items = [as_wire(patch, m.Patch) for patch in await patches.shown(session, _chosen(params))]
        return m.PatchesShowResult(**chat_ref(session.chat.key), items=items)

    async def _clear_patches(self, call: Call, params: Key) -> m.PatchesClearResult:
        session = await self._session(params)
        with anyio.CancelScope(shield=True):
            count, seq = await patches.cleared(session)
        return m.PatchesClearResult(**chat_ref(session.chat.key), cleared=count, seq=seq)

    async def _revert(self, call: Call, params: m.PatchesRevertParams) -> m.PatchesChanged:
        session = await self._session(params)
        with anyio.CancelScope(shield=True):
            changed = await patches.reverted(session, _chosen(params), params.dry_run)
        return _changed(session, changed)

    async def _apply(self, call: Call, params: m.PatchesApplyParams) -> m.PatchesChanged:
        session = await self._session(params)
        with anyio.CancelScope(shield=True):
            changed = await patches.applied(session, _chosen(params), params.dry_run)
        return _changed(session, changed)

    async def _export(self, call: Call, params: m.PatchesExportParams) -> m.PatchesExportResult:
        session = await self._session(params)
        exported = await patches.exported(session, params.turn_id)
        data = exported.patch
        result = m.PatchesExportResult(
            **chat_ref(session.chat.key),
            files=exported.files,
            bytes=len(data),
            path=params.path,
            left_out=exported.left_out,
        )
        if params.path is not None:
            await transfer.write_file(params.path, data)
            return result
        transfer.check_inline(len(data))
        try:
            return msgspec.structs.replace(result, patch=data.decode())
        except UnicodeDecodeError:
            return msgspec.structs.replace(result, data=base64.b64encode(data).decode())

    async def _diff(self, call: Call, params: m.GitDiffParams) -> m.GitDiffResult:
        session = await self._session(params)
        if params.max_tokens is not None and params.max_tokens < 1:
            raise invalid("maxTokens", "a positive number")
        workspace = session.desk.needed_workspace()
        most = DIFF_BYTES if params.max_tokens is None else params.max_tokens * BYTES_A_TOKEN
        found = await git.diff(workspace, staged=params.staged)
        text, cut = clipped(found.text, most)
        return m.GitDiffResult(
            **chat_ref(session.chat.key),
            summary=found.summary,
            diff=text,
            truncated=found.truncated or cut,
            files=[as_wire(file, m.GitDiffFile) for file in found.files],
            untracked=list(found.untracked),
        )


def open_files(viewed: list[files.Viewed]) -> list[m.OpenFile]:
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


def _files(session: Session, changed: files.FilesChanged) -> m.FilesResult:
    return m.FilesResult(
        **chat_ref(session.chat.key),
        files=open_files(changed.files),
        seq=changed.seq,
        not_pinned=changed.not_pinned,
        left=changed.left,
    )


def _changed(session: Session, changed: patches.PatchesChanged) -> m.PatchesChanged:
    return m.PatchesChanged(
        **chat_ref(session.chat.key),
        items=[as_wire(patch, m.PatchInfo) for patch in changed.items],
        file_changes=[as_wire(change, m.FileRestore) for change in changed.files],
        seq=changed.seq,
    )


def _chosen(params: m.PatchesShowParams) -> Chosen:
    if params.id is params.path is params.turn_id is None:
        raise invalid("id", "one of `id`, `path` and `turnId`")
    return Chosen(id=params.id, path=params.path, turn_id=params.turn_id)


def _offset(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not (cursor.isdecimal() and len(cursor) < 10):
        raise invalid("cursor", "a `nextCursor` of an earlier answer")
    return int(cursor)
