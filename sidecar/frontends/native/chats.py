"""Handlers of `chat/*` and `events/read`."""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import anyio.to_thread
import msgspec
from sidecar_protocol import messages as m
from sidecar_protocol.messages.base import Cursor, Key
from sidecar_protocol.peer import Call

from ...chat.sessions.chats import Chats, ChatView
from ...chat.sessions.crash_closure import Closure
from ...chat.sessions.session import Session
from ...model.chats import ChatQuery
from ...model.events import coalesce
from ...model.failures import Failure, Refused, invalid_param
from ...rpc.dispatch import Handler, run_to_end
from ...rpc.wire import MessageWriter
from ...store.tables.recoveries import Salvage
from ...system.lazy import lazy_module
from .events import NativeAttachments
from .progress import Progress
from .wire import (
    EventEncoder,
    address_of,
    as_wire,
    chat_ref,
    chat_summary,
    owner_of,
    queue_to_wire,
    session_of,
    turn_to_wire,
    with_changes,
)

if TYPE_CHECKING:
    from ...chat.actions import files as file_actions
    from ...chat.actions import import_export
    from . import files as file_handlers
else:
    file_actions = lazy_module("sidecar.chat.actions.files")
    import_export = lazy_module("sidecar.chat.actions.import_export")
    file_handlers = lazy_module("sidecar.frontends.native.files")

MAX_REPLAY_EVENTS = 200_000
"""Beyond this, a snapshot is faster."""

MAX_PAGE = 500
MAX_PAGE_BYTES = 8 * 1024 * 1024
"""A page must fit well into a frame, whatever the client asks for."""


DEFAULT_TAIL = m.Tail()


class ChatHandlers:
    def __init__(
        self, ready: Callable[[], Awaitable[Chats]], attachments: NativeAttachments, wire: MessageWriter
    ) -> None:
        self._chats = ready
        self._attachments = attachments
        self._wire = wire

    def handlers(self) -> Mapping[str, Handler]:
        return {
            "chat/open": self._open,
            "chat/close": self._close,
            "chat/delete": self._delete,
            "chat/rename": self._rename,
            "chat/archive": self._archive,
            "chat/list": self._list,
            "chat/search": self._search,
            "chat/history": self._history,
            "chat/export": self._export,
            "chat/import": self._import,
            "chat/configure": self._configure,
            "events/read": self._read_events,
        }

    async def _open(self, call: Call, params: m.ChatOpenParams) -> m.ChatOpenResult:
        chats = await self._chats()
        with anyio.CancelScope(shield=True), _name_config():
            opened = await chats.open(
                address_of(params), create=params.if_missing == "create", changes=params.config
            )
            session = opened.session
            view = await chats.view(
                session, _page_size(params.tail.turns), _page_bytes(params.tail.max_bytes)
            )
        # Asked after the last await: a second `chat/open` may have attached meanwhile, and must not replay.
        attached = self._attachments.get(session) is not None
        replay = m.Replay(kind="none") if attached else self._replay(params.after, view)
        if not attached:
            attach(self._attachments, call, session, view, replay)
        recovered = _encode_recovery(opened.closed, view.snapshot.salvage)
        resumed = "recovered" if recovered and recovered.salvage else "resumed"
        return await opened_result(
            session,
            view,
            status="created" if opened.created else "attached" if attached else resumed,
            replay=replay,
            recovered=recovered,
        )

    def _replay(self, after: Cursor | str, view: ChatView) -> m.Replay:
        chat = view.snapshot.chat
        if after == "tail":
            return m.Replay(kind="none")
        seq = after.seq if isinstance(after, Cursor) else 0
        if isinstance(after, Cursor) and after.epoch != chat.epoch:
            return m.Replay(kind="snapshot", reason="unknown_epoch")
        if not 0 <= seq <= chat.last_seq:
            return m.Replay(kind="snapshot", reason="unknown_cursor")
        if chat.last_seq - seq > MAX_REPLAY_EVENTS:
            return m.Replay(kind="snapshot", reason="too_much")
        if seq == chat.last_seq:
            return m.Replay(kind="none")
        return m.Replay(kind="events", from_=seq + 1, to=chat.last_seq)

    async def _close(self, call: Call, params: Key) -> m.ChatCloseResult:
        session = await session_of(self._chats, params)
        closed = self._attachments.detach(session.chat.key.session_id)
        session.recorder.feed.rest()
        session.rest()
        session.end_in_background()
        return m.ChatCloseResult(**chat_ref(session.chat.key), closed=closed)

    async def _delete(self, call: Call, params: Key) -> m.ChatDeleteResult:
        chats = await self._chats()
        session_id, deleted = await run_to_end(chats.delete(address_of(params), self._attachments.detach))
        return m.ChatDeleteResult(session_id=session_id, deleted=deleted)

    async def _rename(self, call: Call, params: m.ChatRenameParams) -> m.ChatChanged:
        if params.title is not None and not 1 <= len(params.title) <= 500:
            raise invalid_param("title", "1 to 500 characters, or null")
        session = await session_of(self._chats, params)
        seq = await run_to_end(session.rename(params.title))
        return _encode_changed(session, seq)

    async def _archive(self, call: Call, params: m.ChatArchiveParams) -> m.ChatChanged:
        chats = await self._chats()
        session = await run_to_end(chats.archive(address_of(params), params.archived))
        return _encode_changed(session, None)

    async def _list(self, call: Call, params: m.ChatListParams) -> m.ChatListResult:
        chats, cursor = await (await self._chats()).page(_page_of(params))
        items = [chat_summary(chat) for chat in chats]
        return m.ChatListResult(items=items, next_cursor=cursor)

    async def _search(self, call: Call, params: m.ChatSearchParams) -> m.ChatSearchResult:
        hits, cursor = await (await self._chats()).search(_page_of(params))
        items = [
            m.SearchHit(
                **msgspec.structs.asdict(chat_summary(hit.chat)),
                turn_id=hit.turn_id,
                item_id=hit.item_id,
                snippet=hit.snippet,
                matches=[m.TextMatch(start=start, end=end) for start, end in hit.matches],
                snippet_start=hit.snippet_start,
            )
            for hit in hits
        ]
        return m.ChatSearchResult(items=items, next_cursor=cursor)

    async def _history(self, call: Call, params: m.ChatHistoryParams) -> m.ChatHistoryResult:
        if sum(given is not None for given in (params.before, params.after, params.around)) > 1:
            raise invalid_param("before/after/around", "at most one of them")
        chats = await self._chats()
        session = await chats.existing_session(address_of(params))
        chat, page = await chats.history(
            session,
            before=params.before,
            after=params.after,
            around=params.around.turn_id if params.around else None,
            limit=_page_size(params.limit),
            max_bytes=_page_bytes(params.max_bytes),
        )
        return m.ChatHistoryResult(
            **chat_ref(chat.key),
            turns=[turn_to_wire(turn) for turn in page.turns],
            before=page.before,
            after=page.after,
            as_of=Cursor(epoch=chat.epoch, seq=chat.last_seq),
        )

    async def _export(self, call: Call, params: m.ChatExportParams) -> m.ChatExportResult:
        chats = await self._chats()
        session = await chats.existing_session(address_of(params))
        exported = await import_export.export(
            chats.store, session, params.format, params.path, params.overwrite
        )
        return m.ChatExportResult(
            **chat_ref(session.chat.key),
            turns=exported.turns,
            bytes=exported.size,
            path=exported.path,
            data=exported.text,
        )

    async def _import(self, call: Call, params: m.ChatImportParams) -> m.ChatImportResult:
        if params.format != "jsonl":
            raise invalid_param("format", "`jsonl`; other formats, such as `markdown`, are only for reading")
        chats = await self._chats()
        source = await import_export.open_source(params.path, params.data)
        progress = Progress(self._wire, str(call.id), "import")
        try:
            brought = await import_export.import_into(
                chats, address_of(params), source, params.append, progress.report
            )
        finally:
            source.close()
        chat = brought.session.chat
        return m.ChatImportResult(
            **chat_ref(chat.key),
            turns=brought.imported.turns,
            items=brought.imported.items,
            epoch=chat.epoch,
            last_seq=chat.last_seq,
            ignored=brought.ignored,
        )

    async def _configure(self, call: Call, params: m.ChatConfigureParams) -> m.ChatConfigureResult:
        chats = await self._chats()
        changes = chats.checked_config(params.set)
        session = await chats.existing_session(address_of(params))
        seq = await run_to_end(session.configure(changes))
        return m.ChatConfigureResult(
            **chat_ref(session.chat.key), config=msgspec.to_builtins(session.config), seq=seq
        )

    async def _read_events(self, call: Call, params: m.EventsReadParams) -> dict[str, Any]:
        session = await session_of(self._chats, params)
        chat, events = await session.read_events(
            params.after.epoch,
            params.after.seq,
            _page_size(params.limit, 10_000),
            _page_bytes(params.max_bytes),
        )
        encoder = EventEncoder(chat.key, chat.epoch)
        has_files = any(event.type == "files.updated" for event in events)
        shown = await file_handlers.with_open_files(session, events) if has_files else events
        wait_sent = events[-1].seq if events else params.after.seq
        return {
            "sessionId": chat.key.session_id,
            "chatId": chat.key.chat_id,
            "events": [encoder.params(event) for event in coalesce(shown)],
            "next": Cursor(epoch=chat.epoch, seq=wait_sent),
            "hasMore": wait_sent < chat.last_seq,
        }


def attach(
    attachments: NativeAttachments, call: Call, session: Session, view: ChatView, replay: m.Replay
) -> None:
    """Attach to the chat from where the answer ends, once the answer is queued."""
    chat = view.snapshot.chat
    cursor = replay.from_ - 1 if replay.from_ is not None else chat.last_seq
    attachment = attachments.attach(session, chat.epoch, cursor)
    call.after_answer(attachment.release)


@contextmanager
def _name_config() -> Iterator[None]:
    """Name wrong keys as `chat/open` has them: in `config`, where `chat/configure` has `set`."""
    try:
        yield
    except Failure as failure:
        field = (failure.params or {}).get("field")
        if isinstance(field, str) and re.match(r"set\b", field):
            failure.params = {**(failure.params or {}), "field": f"config{field[3:]}"}
            failure.message = failure.message.replace("`set", "`config", 1)
        raise


async def opened_result(session: Session, view: ChatView, **more: Any) -> m.ChatOpenResult:
    """The result of `chat/open`."""
    snapshot = view.snapshot
    chat = snapshot.chat
    owner = owner_of(view.holder)
    return m.ChatOpenResult(
        **chat_ref(chat.key),
        key=m.KeyInfo(kind=chat.key.kind, value=chat.key.value),
        access="reader" if owner else "writer",
        epoch=chat.epoch,
        last_seq=chat.last_seq,
        as_of=Cursor(epoch=chat.epoch, seq=chat.last_seq),
        turns=[turn_to_wire(turn) for turn in snapshot.page.turns],
        before=snapshot.page.before,
        state=chat.state,
        queue=queue_to_wire(session),
        pending=[
            m.PendingRequest(
                kind=asked.kind,  # type: ignore[arg-type]  # the others are filtered out below
                id=asked.id,
                turn_id=asked.turn_id,
                request=with_changes(asked.data),
            )
            for asked in snapshot.pending
            if asked.kind not in ("compaction", "import")
        ],
        usage=as_wire(chat.usage, m.Usage),
        config=msgspec.to_builtins(session.config),
        open_files=await _open_files(session) if chat.open_files else [],
        title=chat.title,
        project_path=chat.project_path,
        project_problem=await anyio.to_thread.run_sync(_project_problem, chat.project_path),
        owner=owner,
        **more,
    )


def _project_problem(path: str | None) -> Literal["missing", "not_a_folder"] | None:
    if path is None or os.path.isdir(path):
        return None
    return "not_a_folder" if os.path.exists(path) else "missing"


async def _open_files(session: Session) -> list[m.OpenFile]:
    return file_handlers.open_files((await file_actions.list_files(session)).files)


def _encode_changed(session: Session, seq: int | None) -> m.ChatChanged:
    chat = session.chat
    return m.ChatChanged(**chat_ref(chat.key), title=chat.title, archived=chat.archived, seq=seq)


def _page_of(params: m.ChatListParams | m.ChatSearchParams) -> ChatQuery:
    return ChatQuery(
        params.namespace,
        params.project_path,
        params.archived,
        params.query,
        params.cursor,
        _page_size(params.limit),
    )


def _page_size(limit: int, most: int = MAX_PAGE) -> int:
    if limit < 1:
        raise Refused("invalid_params", "`limit`: at least 1", params={"field": "limit"})
    return min(limit, most)


def _page_bytes(max_bytes: int) -> int:
    if max_bytes < 1:
        raise invalid_param("maxBytes", "at least 1")
    return min(max_bytes, MAX_PAGE_BYTES)


def _encode_recovery(closed: Closure | None, saved: Salvage | None) -> m.Recovered | None:
    if closed is None and saved is None:
        return None
    salvage = None
    if saved:
        gaps = [list(gap) for gap in saved.gaps]
        salvage = m.Salvage(at=saved.at, saved=saved.saved, lost=saved.lost, gaps=gaps, damaged=saved.damaged)
    return m.Recovered(
        turns=closed.turns if closed else [], items=closed.items if closed else [], salvage=salvage
    )
