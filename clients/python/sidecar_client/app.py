"""The app's end of a sidecar: spawn it, open chats, ask anything of the contract.

Routes events to their chats and owns the tasks. Death and restart are `link`'s, order is `feed`'s.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Literal

import anyio
import msgspec
from anyio.abc import TaskGroup
from sidecar_protocol import messages as m
from sidecar_protocol.catalog import METHODS
from sidecar_protocol.errors import RpcError
from sidecar_protocol.jsonrpc import Notification
from sidecar_protocol.limits import VERSIONS
from sidecar_protocol.messages.base import Cursor, Key

from .answer import WITHDRAW_SECONDS, Delivery
from .chat import Chat
from .connection import Connection
from .events import Event, decode, decode_page
from .feed import Feed
from .handlers import Handlers, OnInput, OnPermission, OnReadBuffer, Tool
from .link import Launch, Link
from .process import ServerProcess

logger = logging.getLogger(__name__)

PAGE_EVENTS = 500
"""Events of one `events/read`, about as many as a subscription holds."""


class Sidecar:
    """A running sidecar. Made by `spawn`; of use until its `async with` is left."""

    def __init__(
        self,
        launch: Launch,
        hello: m.InitializeParams,
        handlers: Handlers,
        status: Callable[[m.Status], None] | None,
        tasks: TaskGroup,
    ) -> None:
        self._link = Link(launch, hello, handlers.serve, self._receive, self._reattach, tasks)
        self._handlers = handlers
        self._status = status
        self._tasks = tasks
        self._feeds: dict[str, Feed] = {}
        self._chats: dict[str, Chat] = {}
        self._abandoned: deque[Delivery] = deque()
        self._left_behind = anyio.Event()
        self._thread = threading.get_ident()

    @classmethod
    def spawn(
        cls,
        command: Sequence[str] | None = None,
        *,
        data_dir: str | os.PathLike[str] | None = None,
        model: str | None = None,
        config: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        client_name: str = "sidecar-client",
        client_version: str = "",
        log: Callable[[str], None] | None = None,
        status: Callable[[m.Status], None] | None = None,
        on_permission: OnPermission | None = None,
        on_input: OnInput | None = None,
        on_read_buffer: OnReadBuffer | None = None,
        tools: Sequence[Tool] = (),
    ) -> AbstractAsyncContextManager[Sidecar]:
        """Start a sidecar: `async with Sidecar.spawn(data_dir="…", model="echo:") as app`.

        `env` is added to the present environment; `log` gets each line of its stderr, `status` what belongs
        to no chat. `on_permission`, `on_input`, `on_read_buffer` and `tools` are those of `Handlers`. A process that
        dies is started again, and its chats go on where they were.
        """
        # -P: without it, modules in the folder that the app was started in would stand in for installed ones.
        line = list(command or [sys.executable, "-P", "-m", "sidecar", "serve"])
        variables = {"SIDECAR_DATA_DIR": data_dir, "SIDECAR_MODEL": model, "SIDECAR_CONFIG": config}
        given = {name: os.fspath(value) for name, value in variables.items() if value is not None}
        environment = {**os.environ, **(env or {}), **given}

        async def launch() -> ServerProcess:
            return await ServerProcess.start(line, environment, log)

        handlers = Handlers(
            on_permission=on_permission, on_input=on_input, on_read_buffer=on_read_buffer, tools=tools
        )
        return cls.connect(
            launch,
            client_name=client_name,
            client_version=client_version,
            status=status,
            handlers=handlers,
        )

    @classmethod
    @asynccontextmanager
    async def connect(
        cls,
        launch: Launch,
        *,
        client_name: str = "sidecar-client",
        client_version: str = "",
        status: Callable[[m.Status], None] | None = None,
        handlers: Handlers | None = None,
    ) -> AsyncIterator[Sidecar]:
        """As `spawn`, with anything that makes a transport in the place of a command."""
        who = m.ClientInfo(name=client_name, version=client_version)
        handlers = handlers or Handlers()
        hello = m.InitializeParams(
            protocol="sidecar",
            versions=[*VERSIONS],
            client=who,
            process_id=os.getpid(),
            capabilities=handlers.capabilities,
            tools=handlers.offered,
        )
        failure: BaseException | None = None
        async with anyio.create_task_group() as tasks:
            app = cls(launch, hello, handlers, status, tasks)
            try:
                await app._link.start()
                tasks.start_soon(app._supervise)
                tasks.start_soon(app._sweep)
                yield app
            except anyio.get_cancelled_exc_class():
                raise
            except BaseException as error:
                # Kept out of the task group, which would wrap it in an exception group.
                failure = error
            finally:
                await app._close()
                tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure

    @property
    def server(self) -> m.InitializeResult:
        """What the present process answered to `initialize`."""
        return self._link.server

    @property
    def pid(self) -> int | None:
        return self._link.pid

    @property
    def restarts(self) -> int:
        """How often the sidecar was started again."""
        return self._link.restarts

    async def call(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """Any method of the contract, by its name; the result has the type that the catalog gives it."""
        known = METHODS.get(method)
        result = await self._link.request(method, dict(params or {}))
        return result if known is None else msgspec.convert(result, known.result)

    async def chat(
        self,
        chat_id: str | None = None,
        *,
        project_path: str | os.PathLike[str] | None = None,
        namespace: str | None = None,
        session_id: str | None = None,
        config: dict[str, Any] | None = None,
        if_missing: Literal["create", "fail"] = "create",
        turns: int = 30,
    ) -> Chat:
        """Open a chat: resume it, or create it when there is none. The same object for the same session."""
        params = m.ChatOpenParams(
            chat_id=chat_id,
            project_path=None if project_path is None else os.fspath(project_path),
            namespace=namespace,
            session_id=session_id,
            config=config,
            if_missing=if_missing,
            tail=m.Tail(turns=turns),
        )
        return self.adopt(params, await self._link.ask("chat/open", params, m.ChatOpenResult))

    async def close(self, chat: Chat) -> None:
        """No more events of this chat; a running turn goes on."""
        self._chats.pop(chat.session_id, None)
        self._feeds.pop(chat.session_id, None)
        await self._link.request("chat/close", Key(session_id=chat.session_id))

    async def chats(self, **filters: Any) -> m.ChatListResult:
        """The chats, newest activity first; `filters` are those of `ChatListParams`."""
        return await self._link.ask("chat/list", m.ChatListParams(**filters), m.ChatListResult)

    async def search(self, query: str, **filters: Any) -> m.ChatSearchResult:
        return await self._link.ask(
            "chat/search", m.ChatSearchParams(query=query, **filters), m.ChatSearchResult
        )

    async def import_chat(self, chat_id: str, *, append: bool = False, **source: str) -> m.ChatImportResult:
        """Make a chat from an export or plain turns, given as `path` or as `data`."""
        params = m.ChatImportParams(chat_id=chat_id, append=append, **source)
        return await self._link.ask("chat/import", params, m.ChatImportResult)

    async def import_history(self, platform: str, **request: Any) -> m.HistoryImportResult:
        """Import the chats of another program; `request` is as in `HistoryImportParams`. Cancelling the call keeps
        what was imported."""
        params = m.HistoryImportParams(platform=platform, **request)
        return await self._link.ask("history/import", params, m.HistoryImportResult)

    async def models(self, provider: str | None = None) -> list[m.ModelInfo]:
        params = m.ModelsListParams(provider=provider)
        return (await self._link.ask("models/list", params, m.ModelsListResult)).items

    async def engines(self) -> list[m.EngineInfo]:
        """The engines that can answer a chat, and why one is not ready."""
        return (await self._link.ask("engines/list", m.Empty(), m.EnginesListResult)).items

    async def settings(self, project_path: str | None = None) -> m.SettingsReadResult:
        params = m.SettingsReadParams(project_path=project_path)
        return await self._link.ask("settings/read", params, m.SettingsReadResult)

    async def offer_tools(self, tools: Sequence[Tool]) -> None:
        """Replace the app's tools, for this process and those after it; if they are refused, the old ones stay."""
        before = self._handlers.tools
        self._replace_tools(tools)
        try:
            await self._link.request("tools/offer", m.ToolsOfferParams(tools=self._handlers.offered))
        except RpcError:
            self._replace_tools(before)
            raise

    async def doctor(self) -> m.DoctorRunResult:
        return await self._link.ask("doctor/run", {}, m.DoctorRunResult)

    def adopt(self, params: m.ChatOpenParams, opened: m.ChatOpenResult) -> Chat:
        """Part of `chat.ChatOwner`."""
        known = self._chats.get(opened.session_id)
        if known is None:
            feed = self._feed(opened.session_id)
            known = self._chats[opened.session_id] = Chat(self, self._link, feed, params, opened)
        else:
            known.opened = opened
        return known

    def dispatch(self, delivery: Delivery) -> None:
        """Part of `answer.DeliveryQueue`."""
        self._tasks.start_soon(delivery.send)

    def abandon(self, delivery: Delivery) -> None:
        """Part of `answer.DeliveryQueue`. A finalizer may run in any thread: another one only leaves a note."""
        self._abandoned.append(delivery)
        if threading.get_ident() == self._thread:
            self._left_behind.set()

    def _replace_tools(self, tools: Sequence[Tool]) -> None:
        self._handlers.offer(tools)
        self._link.hello = msgspec.structs.replace(self._link.hello, tools=self._handlers.offered)

    async def _supervise(self) -> None:
        death = await self._link.supervise()
        for feed in self._feeds.values():
            feed.fail(death)

    async def _sweep(self) -> None:
        while True:
            await self._left_behind.wait()
            self._left_behind = anyio.Event()
            while self._abandoned:
                self._tasks.start_soon(self._abandoned.popleft().withdraw)

    async def _close(self) -> None:
        with anyio.move_on_after(WITHDRAW_SECONDS, shield=True):
            while self._abandoned:
                await self._abandoned.popleft().withdraw()
        await self._link.stop()

    async def _reattach(self, connection: Connection) -> None:
        for chat in list(self._chats.values()):
            await chat.reopen(connection)

    def _receive(self, notification: Notification) -> None:
        if self._abandoned:
            self._left_behind.set()
        try:
            if notification.method == "event":
                event = decode(notification.params)
                self._feed(event.session_id).receive(event)
            elif notification.method == "status":
                self._note_status(msgspec.convert(notification.params, m.Status))
        except msgspec.ValidationError as error:
            logger.warning("ignored a notification that this client does not understand: %s", error)

    def _note_status(self, status: m.Status) -> None:
        chat = self._chats.get(str(status.data.get("sessionId")))
        if status.type == "access" and chat:
            chat.access = str(status.data.get("access", chat.access))
        if self._status is not None:
            self._status(status)

    def _feed(self, session_id: str) -> Feed:
        if session_id not in self._feeds:

            async def read(epoch: str, seq: int) -> list[Event]:
                after = Cursor(epoch=epoch, seq=seq)
                params = m.EventsReadParams(session_id=session_id, after=after, limit=PAGE_EVENTS)
                return decode_page(await self._link.request("events/read", params))

            self._feeds[session_id] = Feed(read)
        return self._feeds[session_id]
