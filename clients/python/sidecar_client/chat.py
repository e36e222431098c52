"""A chat as an app holds it: open, typed, and the same object across restarts of the sidecar.

Every method is one request of the contract, said with this chat's key. The order of events is `feed`'s, the
life of a prompt `answer`'s.
"""

from __future__ import annotations

import uuid
from typing import Any, Literal, Protocol

import msgspec
from sidecar_protocol import messages as m
from sidecar_protocol.errors import RpcError
from sidecar_protocol.messages.base import Cursor, Key

from .answer import Answer, Delivery, DeliveryQueue
from .connection import Connection
from .errors import ChatReplaced
from .events import Event
from .feed import Feed, Subscription
from .link import Link


class ChatOwner(DeliveryQueue, Protocol):
    """What a chat needs of the app."""

    def adopt(self, params: m.ChatOpenParams, opened: m.ChatOpenResult) -> Chat:
        """The chat that was opened; the same object for the same session."""


class Chat:
    """An open chat. `opened` is what `chat/open` answered; `title` and `state` follow the events since, and `access`
    is `reader` while another process runs a turn of it.
    """

    def __init__(
        self, home: ChatOwner, link: Link, feed: Feed, params: m.ChatOpenParams, opened: m.ChatOpenResult
    ) -> None:
        self.session_id = opened.session_id
        self.chat_id = opened.chat_id
        self._home = home
        self._link = link
        self._feed = feed
        self._params = params
        self._take(opened)
        feed.watch = self._watch
        feed.open(opened.epoch, opened.as_of.seq)

    @property
    def status(self) -> str:
        """`created`, `resumed`, `attached` or `recovered`."""
        return self.opened.status

    @property
    def turns(self) -> list[m.Turn]:
        """The newest turns when the chat was opened; `history` has all as they are now."""
        return self.opened.turns

    @property
    def cursor(self) -> Cursor:
        """The last event that has arrived."""
        return Cursor(epoch=self._feed.epoch, seq=self._feed.last)

    def prompt(
        self,
        text: str | None = None,
        *,
        content: list[m.ContentBlock] | None = None,
        prompt_id: str | None = None,
        delivery: Literal["queue", "steer", "interrupt", "reject"] = "queue",
        replace: str | None = None,
        commands: Literal["auto", "off"] = "auto",
        model: str | None = None,
        effort: str | None = None,
    ) -> Answer:
        """Send a prompt and iterate its answer. `replace` names a turn to edit and resend. The answer to a command
        (`/open src/*.py`) is one event, `command.result`."""
        params = m.PromptSendParams(
            session_id=self.session_id,
            prompt_id=prompt_id or new_prompt_id(),
            text=text,
            content=content,
            delivery=delivery,
            replace=_turn(replace),
            commands=commands,
            overrides=_overrides(model, effort),
        )
        return self._answer("prompt/send", params)

    def retry(
        self,
        turn_id: str | None = None,
        *,
        start: Literal["start", "here"] = "start",
        model: str | None = None,
    ) -> Answer:
        """Answer the last turn (or `turn_id`) anew, or go on with an unfinished one from `here`."""
        params = m.TurnRetryParams(
            session_id=self.session_id,
            prompt_id=new_prompt_id(),
            turn_id=turn_id,
            from_=start,
            overrides=_overrides(model, None),
        )
        return self._answer("turn/retry", params)

    def events(self, after: int | None = None) -> Subscription:
        """Every event of the chat from now on, or after an earlier seq."""
        return self._feed.subscribe(after)

    async def history(
        self,
        *,
        before: str | None = None,
        after: str | None = None,
        around: str | None = None,
        limit: int = 30,
    ) -> m.ChatHistoryResult:
        params = m.ChatHistoryParams(
            session_id=self.session_id, before=before, after=after, around=_turn(around), limit=limit
        )
        return await self._link.ask("chat/history", params, m.ChatHistoryResult)

    async def cancel(
        self, turn_id: str | None = None, *, queue: Literal["pause", "keep", "clear"] = "pause"
    ) -> m.TurnCancelResult:
        params = m.TurnCancelParams(session_id=self.session_id, turn_id=turn_id, queue=queue)
        return await self._link.ask("turn/cancel", params, m.TurnCancelResult)

    async def rename(self, title: str | None) -> m.ChatChanged:
        """None makes the title automatic again."""
        params = m.ChatRenameParams(session_id=self.session_id, title=title)
        return await self._link.ask("chat/rename", params, m.ChatChanged)

    async def archive(self, archived: bool = True) -> m.ChatChanged:
        params = m.ChatArchiveParams(session_id=self.session_id, archived=archived)
        return await self._link.ask("chat/archive", params, m.ChatChanged)

    async def configure(self, **keys: Any) -> dict[str, Any]:
        """Set keys of the chat's configuration, as the contract spells them; None clears one. Returns all."""
        params = m.ChatConfigureParams(session_id=self.session_id, set=keys)
        result = await self._link.ask("chat/configure", params, m.ChatConfigureResult)
        return result.config

    async def export(
        self,
        format: Literal["jsonl", "markdown", "claude-code", "codex"] = "jsonl",
        path: str | None = None,
        *,
        overwrite: bool = False,
    ) -> m.ChatExportResult:
        """The chat as text, inline or in a file; `overwrite` replaces one that is there."""
        params = m.ChatExportParams(session_id=self.session_id, format=format, path=path, overwrite=overwrite)
        return await self._link.ask("chat/export", params, m.ChatExportResult)

    async def queue(self) -> m.Queue:
        return await self._queue("prompt/list")

    async def resume_queue(self) -> m.Queue:
        """Let waiting prompts run again after a restart, a cancel or a failed turn paused them."""
        return await self._queue("prompt/resume")

    async def fork(self, new_chat_id: str, *, at: str | None = None) -> Chat:
        """A new chat of this one's turns, up to the turn `at` or the last one that has ended."""
        params = m.ChatForkParams(session_id=self.session_id, new_chat_id=new_chat_id, at=_turn(at))
        opened = await self._link.ask("chat/fork", params, m.ChatOpenResult)
        return self._home.adopt(m.ChatOpenParams(session_id=opened.session_id), opened)

    async def rewind(
        self,
        before: str | None = None,
        *,
        to: str | None = None,
        files: Literal["keep", "restore"] = "keep",
        dry_run: bool = False,
    ) -> m.ChatRewindResult:
        """Hide the turn `before` and what follows it, or bring the hidden turn `to` back."""
        params = m.ChatRewindParams(
            session_id=self.session_id, before=_turn(before), to=_turn(to), files=files, dry_run=dry_run
        )
        return await self._link.ask("chat/rewind", params, m.ChatRewindResult)

    async def open_files(self) -> list[m.OpenFile]:
        """The files in the chat's window: pinned first, then the most recent."""
        return (await self._link.ask("files/list", Key(session_id=self.session_id), m.FilesResult)).files

    async def open_file(
        self, path: str | None = None, *, glob: str | None = None, pinned: bool = False
    ) -> m.FilesResult:
        params = m.FilesOpenParams(session_id=self.session_id, path=path, glob=glob, pinned=pinned)
        return await self._link.ask("files/open", params, m.FilesResult)

    async def close_file(self, path: str | None = None, *, glob: str | None = None) -> m.FilesResult:
        params = m.FilesCloseParams(session_id=self.session_id, path=path, glob=glob)
        return await self._link.ask("files/close", params, m.FilesResult)

    async def pin_file(self, path: str, pinned: bool = True) -> m.FilesResult:
        params = m.FilesPinParams(session_id=self.session_id, path=path)
        return await self._link.ask("files/pin" if pinned else "files/unpin", params, m.FilesResult)

    async def patches(
        self,
        *,
        turn_id: str | None = None,
        path: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> m.PatchesListResult:
        """What tools changed, newest first."""
        params = m.PatchesListParams(
            session_id=self.session_id, turn_id=turn_id, path=path, cursor=cursor, limit=limit
        )
        return await self._link.ask("patches/list", params, m.PatchesListResult)

    async def diffs(
        self, id: str | None = None, *, path: str | None = None, turn_id: str | None = None
    ) -> list[m.Patch]:
        """A change, those of a file or those of a turn, with their diffs."""
        params = m.PatchesShowParams(session_id=self.session_id, id=id, path=path, turn_id=turn_id)
        return (await self._link.ask("patches/show", params, m.PatchesShowResult)).items

    async def revert(
        self,
        id: str | None = None,
        *,
        path: str | None = None,
        turn_id: str | None = None,
        dry_run: bool = False,
    ) -> m.PatchesChanged:
        """Put back what a change, the changes of a file or those of a turn did; all of them, or none."""
        params = m.PatchesRevertParams(
            session_id=self.session_id, id=id, path=path, turn_id=turn_id, dry_run=dry_run
        )
        return await self._link.ask("patches/revert", params, m.PatchesChanged)

    async def reopen(self, connection: Connection) -> None:
        """Attach to a new process and get what was missed. For the app, after a restart."""
        try:
            opened = await self._reopen(connection)
        except RpcError as error:
            self._feed.fail(error)
            return
        replaced = opened.epoch != self._feed.epoch or opened.last_seq < self._feed.last
        self._take(opened)
        if replaced:
            self._feed.fail(ChatReplaced(self.session_id))
            self._feed.open(opened.epoch, opened.as_of.seq)
        elif opened.replay.kind != "events":
            self._feed.catch_up(opened.as_of.seq)

    async def _reopen(self, connection: Connection) -> m.ChatOpenResult:
        known = m.ChatOpenParams(session_id=self.session_id, if_missing="fail", after=self.cursor)
        try:
            result = await connection.request("chat/open", known)
        except RpcError as error:
            # A chat that lived in memory went with its process; one that somebody deleted stays deleted.
            if error.name != "not_found":
                raise
            result = await connection.request("chat/open", self._params)
        return msgspec.convert(result, m.ChatOpenResult)

    async def _queue(self, method: str) -> m.Queue:
        params = Key(session_id=self.session_id)
        return (await self._link.ask(method, params, m.QueueResult)).queue

    def _answer(self, method: str, params: m.PromptSendParams | m.TurnRetryParams) -> Answer:
        return Answer(self._home, Delivery(self._link, method, params), self._feed)

    def _take(self, opened: m.ChatOpenResult) -> None:
        self.opened = opened
        self.title = opened.title
        self.state: str = opened.state
        self.access: str = opened.access
        self.project_path = opened.project_path

    def _watch(self, event: Event) -> None:
        if event.type == "chat.renamed":
            self.title = event.data.get("title")
        elif event.type == "chat.state":
            self.state = event.data.get("state", self.state)


def new_prompt_id() -> str:
    return f"p-{uuid.uuid4().hex}"


def _turn(id: str | None) -> m.TurnRef | None:
    return None if id is None else m.TurnRef(turn_id=id)


def _overrides(model: str | None, effort: str | None) -> m.PromptOverrides | None:
    return m.PromptOverrides(model=model, effort=effort) if model or effort else None
