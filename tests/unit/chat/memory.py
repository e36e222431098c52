"""Chats over a database in memory, answered by a scripted provider: sessions without a process, a pipe or a file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import anyio
import msgspec
from anyio.abc import TaskGroup

from sidecar.chat.journal.identity import ChatAddress
from sidecar.chat.services.client_app import (
    AppToolCall,
    BufferRequest,
    BufferWrite,
    Capability,
    InputAnswer,
    InputRequest,
    OfferedTool,
    PermissionAnswer,
    PermissionRequest,
)
from sidecar.chat.services.client_requests import Requests
from sidecar.chat.services.project_settings import ProjectSettings
from sidecar.chat.services.services import ChatServices
from sidecar.chat.sessions.arrivals import Delivery, IncomingPrompt, PromptReceipt
from sidecar.chat.sessions.chats import Chats
from sidecar.chat.sessions.session import Session
from sidecar.engines.registry import EngineRegistry
from sidecar.index import Index
from sidecar.model.chats import EffectiveConfig, ProcessIdentity
from sidecar.model.content import Block, Turn
from sidecar.model.events import decode
from sidecar.model.failures import Failure
from sidecar.providers.base import Provider
from sidecar.providers.endpoints import Endpoints
from sidecar.providers.registry import ProviderRegistry
from sidecar.settings.values import settings_of
from sidecar.store import Store
from sidecar.tools.base import ToolOutcome
from tests.support.patience import PATIENCE_S

ME = ProcessIdentity("me", "boot", "", 100, 1)
HEIR = ProcessIdentity("heir", "boot", "", 101, 2)

SETTINGS = ProjectSettings(
    settings_of({"sandbox": "off", "index.enabled": False, "fetch.enabled": False, "rules.enabled": False})
)
DEFAULTS = {"model": "test:small", "engine": "native", "mode": "ask", "maxSteps": 10}
Json = dict[str, Any]


class OneProvider(ProviderRegistry):
    """Answers every model by the same provider."""

    def __init__(self, provider: Provider) -> None:
        super().__init__(Endpoints(_unavailable, {}), _unavailable)
        self._only = provider

    def resolve(self, model: str) -> tuple[Provider, str]:
        return self._only, model.partition(":")[2]


class ScriptedApp:
    """An app that keeps what it was asked, and answers permissions by `decision`; None: it cannot be asked."""

    def __init__(self, decision: str | None = None) -> None:
        self.decision = decision
        self.asked: list[Json] = []
        self.tools: list[OfferedTool] = []

    def can(self, capability: Capability) -> bool:
        return capability == "permissions" and self.decision is not None

    async def ask_permission(self, request: PermissionRequest) -> PermissionAnswer:
        self.asked.append(msgspec.to_builtins(request))
        return msgspec.convert({"decision": self.decision}, PermissionAnswer)

    async def ask_input(self, request: InputRequest) -> InputAnswer:
        raise Failure("not_found", "This app asks nothing")

    async def call_tool(self, request: AppToolCall) -> ToolOutcome:
        raise Failure("not_found", "This app has no tools")

    async def read_buffer(self, request: BufferRequest) -> str | None:
        raise Failure("not_found", "This app has no editor")

    async def write_buffer(self, request: BufferWrite) -> None:
        raise Failure("not_found", "This app has no editor")


@asynccontextmanager
async def open_store(*, others_live: bool = False) -> AsyncIterator[Store]:
    """An empty database in memory; `others_live` tells of every other process whether it still runs."""
    async with anyio.create_task_group() as tasks:
        store = Store(":memory:", 5.0, ME, lambda process: others_live)
        await store.open(tasks, lambda state: None)
        try:
            # Within the task group: a commit is shielded, and would wait for ever for a writer that was cancelled.
            with anyio.fail_after(PATIENCE_S):
                yield store
        finally:
            with anyio.CancelScope(shield=True):
                await store.close()
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def open_chats(
    store: Store,
    provider: Provider,
    *,
    app: ScriptedApp | None = None,
    settings: ProjectSettings = SETTINGS,
    folder: Path | None = None,
    engines: EngineRegistry | None = None,
    **defaults: Any,
) -> AsyncIterator[Chats]:
    """The chats of one process; leaving the block kills it: nothing that runs is ended properly."""
    async with anyio.create_task_group() as tasks:
        services = _services(
            store,
            tasks,
            provider,
            engines or EngineRegistry(),
            app or ScriptedApp(),
            settings,
            folder,
            defaults,
        )
        try:
            yield Chats(services, None, _do_nothing)
        finally:
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def open_session(
    provider: Provider, *, project: Path | None = None, **options: Any
) -> AsyncIterator[Session]:
    """One chat of an empty database; `options` are those of `open_chats`."""
    async with open_store() as store, open_chats(store, provider, **options) as chats:
        address = ChatAddress("chat", str(project) if project else None)
        yield (await chats.open(address, create=True)).session


async def send(session: Session, text: str, delivery: Delivery = "queue", **more: Any) -> PromptReceipt:
    """Send a prompt whose id is its text."""
    return await session.send(IncomingPrompt(more.pop("id", text), blocks(text), delivery, **more))


async def finish(session: Session) -> None:
    """Wait until nothing runs and nothing waits, save for a person."""
    feed = session.recorder.feed
    while session.turn or (session.queue and not session.chat.queue_paused):
        if session.turn:
            await session.turn.done.wait()
        else:
            await feed.wait(feed.last_seq)


async def events(session: Session, *types: str) -> list[tuple[str, Json]]:
    """The journal's events of these types, or all."""
    stored = await session.events_after(0, 1000, 1 << 24)
    return [(event.type, decode(event.data)) for event in stored if not types or event.type in types]


async def turns(session: Session) -> list[Turn]:
    """The visible turns, the oldest first."""
    _, page = await session.store.turns.page(session.chat.id, after="turn.0", limit=100, max_bytes=1 << 24)
    return page.turns


def summarise(turn: Turn) -> tuple[str | None, list[tuple[str, str, str | None]]]:
    """How a turn ended, and its items: what is left of it without ids and times."""
    return turn.reason, [(item.type, item.status, item.text) for item in turn.items]


def blocks(text: str) -> list[Block]:
    return [Block(type="text", text=text)]


def _services(
    store: Store,
    tasks: TaskGroup,
    provider: Provider,
    engines: EngineRegistry,
    app: ScriptedApp,
    settings: ProjectSettings,
    folder: Path | None,
    defaults: Json,
) -> ChatServices:
    @cache
    def index() -> Index:
        made = Index(store.index, tasks)
        made.start()
        return made

    return ChatServices(
        store=store,
        tasks=tasks,
        providers=OneProvider(provider),
        engines=engines,
        defaults=lambda project: msgspec.convert({**DEFAULTS, **defaults}, EffectiveConfig),
        client=lambda: "test",
        model_titles=lambda project: False,
        index=index,
        connected_app=lambda: app,
        requests=Requests(store),
        settings=lambda project: settings,
        servers=_unavailable,
        web=_unavailable,
        is_trusted=lambda project: False,
        trusts_file=lambda project, path: False,
        distrust=lambda projects: None,
        rules_folder=None,
        user_folder=str(folder or "/nonexistent"),
    )


def _unavailable() -> NoReturn:
    raise AssertionError("these tests do without it")


async def _do_nothing(session: Session) -> None:
    return
