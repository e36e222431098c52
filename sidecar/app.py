"""Wiring: the only room that knows all others. Brings the house up, and takes it down by one bounded way."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import anyio
import msgspec
from anyio.abc import TaskGroup
from sidecar_protocol import messages as m
from sidecar_protocol.errors import RpcError
from sidecar_protocol.framing import Frame
from sidecar_protocol.jsonrpc import Notification, notification
from sidecar_protocol.peer import Peer

from . import logs, way_out
from . import settings as configuration
from .annexes import Annexes
from .chat import identity
from .chat.chats import Chats
from .chat.desk import Workshop
from .chat.identity import Address
from .chat.leased import Surroundings
from .chat.requests import Requests
from .chat.watch import Watch
from .faces.native import NativeFace
from .faces.native.client import Client
from .faces.native.face import Greeter
from .in_force import InForce
from .model.chats import ProcessIdentity
from .model.failures import Failure, ProviderFailed, StorageFailed
from .providers.base import ModelEntry
from .providers.connections import Connections
from .providers.registry import Registry
from .rpc.stdio import Outlet
from .rpc.wire import Wire
from .settings import MEMORY, Settings, SettingsError
from .settings.files import default_data_dir, user_file
from .store import Store
from .store.kept import LOW_DISK_BYTES
from .system import lifeline, processes
from .system.launch import Handover, ServeOptions

if TYPE_CHECKING:
    from .doctor import Check
    from .store.recovery import Recovery

logger = logging.getLogger(__name__)

GRACE_S = 1.2
"""For ending turns and committing; together with the last flush it stays under the contract's two seconds."""

FLUSH_S = 0.4

SWITCH_S = 0.0005
"""The database's thread asks for the interpreter some twenty times a commit; at Python's 5 ms, a model that streams
without a pause would hold each word back for a tenth of a second."""

REOPEN_S = 1.0
"""How soon a database that could not be opened is tried again."""


HOUSEKEEPING_S = 1.0
"""How long after the start old chats and forgotten blobs are looked for: the first prompt goes before them."""


class Entrance(Protocol):
    """The door, as the house sees it."""

    instance_id: str
    outlet: Outlet

    def hello(self) -> dict[str, Any]: ...
    def ping(self, inflight: int) -> dict[str, Any]: ...
    def hand_over(self, take: Callable[[Sequence[Frame]], None], on_end: Callable[[], None]) -> Handover: ...


def run(door: Entrance, options: ServeOptions) -> NoReturn:
    """Serve behind the door until there is a reason to leave."""
    sys.setswitchinterval(SWITCH_S)
    try:
        anyio.run(_serve, door, options)
    except Exception:
        logger.critical("the sidecar failed", exc_info=True)
    door.outlet.drain(FLUSH_S)
    way_out.exit_now(70)  # EX_SOFTWARE


async def _serve(door: Entrance, options: ServeOptions) -> None:
    async with anyio.create_task_group() as tasks:
        await House(door, options, tasks).live()


class House:
    """Everything that lives as long as the process does."""

    def __init__(self, door: Entrance, options: ServeOptions, tasks: TaskGroup) -> None:
        self._door = door
        self._options = options
        self._tasks = tasks
        self._in_force = InForce(options)
        self.connections = Connections(lambda: self.settings(None), os.environ)
        self._providers = Registry(self.connections, self._models_dir)
        self._client = ""
        self._chats: Chats | None = None
        self._store: Store | None = None
        self._opening = anyio.Lock()
        self._open_failure: tuple[float, Failure] | None = None
        self._leaving = anyio.Event()
        self._code = 0
        self._wire = Wire(door.outlet)
        greeter = Greeter(door.hello, self._ping, self._greeted, self._shut_down)
        self._app = Client(lambda method, params: self._peer.request(method, params))
        self._annexes = Annexes(tasks, self._in_force, self._status)
        self._face = NativeFace(self._ready, self, greeter, self._wire, tasks, self._app)
        self._peer = Peer(self._wire.send, self._face.dispatcher.serve, self._hear, tasks)

    async def live(self) -> NoReturn:
        """Serve until something says to leave, then leave."""
        self._start_logging()
        with self._signals():
            self._take_over_the_door()
            self._tasks.start_soon(self._open_early)
            await self._wait_to_leave()
            with anyio.move_on_after(GRACE_S, shield=True):
                await self._close()
        self._peer.abandon()
        self._door.outlet.drain(FLUSH_S)
        # Threads that hang in a write nobody reads, or in a file system, must not keep us.
        way_out.exit_now(self._code)

    async def _wait_to_leave(self) -> None:
        """A task of the house that failed cancels all others: then no turn could run, and the process must end."""
        try:
            await self._leaving.wait()
        except BaseException:
            logger.critical("a task of the house failed; the process ends")
            way_out.count_down(70)  # EX_SOFTWARE
            raise

    def settings(self, project: str | None) -> Settings:
        """The settings in force for a project."""
        return self._in_force.of(project)

    def read_scope(self, scope: Any, project: str | None) -> dict[str, Any]:
        file = configuration.read_scope(scope, project)
        values = {key: m.SettingValue(value=value, layer=scope) for key, value in file.shown().items()}
        return {"values": values, "version": file.version, "path": file.path}

    def write_settings(
        self, scope: Any, project: str | None, changes: dict[str, Any], expected_version: str | None
    ) -> None:
        configuration.write(scope, project, changes, expected_version)
        self._in_force.forget()
        for provider in dict.fromkeys(
            name.split(".")[1] for name in changes if name.startswith("providers.")
        ):
            self.models_changed(provider)

    def trusted(self, project: str, trusted: bool) -> None:
        self._in_force.trust(project, trusted)

    def describe(self, address: Address) -> dict[str, Any]:
        """The ids of the chat that an address names, as far as that can be told without reading anything."""
        try:
            key = identity.resolve(address, self._options.chat_id or os.environ.get("SIDECAR_CHAT_ID"))
        except Failure:
            return {}
        if isinstance(key, str):
            return {"sessionId": key, "chatId": self._chats.chat_id(key) if self._chats else None}
        return {"sessionId": key.session_id, "chatId": key.chat_id}

    async def models(self, provider: str | None) -> list[ModelEntry]:
        return await self._providers.models(provider, self._in_force.checked(None).model)

    async def default_model(self) -> str | None:
        """The model that answers when none is chosen; None when there is none."""
        try:
            return self._in_force.checked(None).model or await self._providers.default()
        except ProviderFailed:
            return None

    async def test_provider(self, name: str) -> list[str]:
        """The models of a provider, asked of itself; raises ProviderFailed when it does not answer."""
        return [entry.id for entry in await self._providers.test(name)]

    def models_changed(self, provider: str) -> None:
        self._providers.forget()
        self._status("models", {"provider": provider})

    def _models_dir(self) -> str:
        """Where fetched models lie; those of a process that keeps nothing are the user's."""
        data_dir = self.settings(None).store.data_dir
        return os.path.join(default_data_dir() if data_dir == MEMORY else data_dir, "models")

    async def checks(self) -> list[Check]:
        try:
            settings: Settings | str = self.settings(None)
        except SettingsError as error:
            settings = str(error)
        try:
            store: Store | Failure = (await self._ready()).store
        except Failure as failure:
            store = failure
        from . import doctor

        return await doctor.examine(store, settings, self._annexes.built_servers)

    async def report(self, path: str, redact: bool) -> list[str]:
        try:
            values = {key: value for key, (value, _) in self.settings(None).values().items()}
        except SettingsError:
            values = {}  # the checks tell what is wrong
        from . import doctor

        return await doctor.write_report(path, redact, await self.checks(), self._store, values)

    def _start_logging(self) -> None:
        try:
            log = self.settings(None).log
            logs.start(log.level, log.file)
        except (SettingsError, OSError) as error:
            logs.start("warn", None)
            logger.error("settings cannot be read", extra={"error": str(error)})

    def _signals(self) -> Any:
        numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name)]
        loop = asyncio.get_running_loop()
        return way_out.Signals(loop, numbers, lambda number: self.leave(128 + number))

    def leave(self, code: int) -> None:
        """Begin the way out; the first reason decides the exit code."""
        if not self._leaving.is_set():
            self._code = code
            way_out.count_down(code)
            self._leaving.set()

    def _take_over_the_door(self) -> None:
        loop = asyncio.get_running_loop()
        # The reader's thread has a context of its own, in which sniffio, where it is installed, sees no loop.
        context = contextvars.copy_context()

        def take(frames: Sequence[Frame]) -> None:
            _call(loop, context, self._receive, frames)

        def ended() -> None:
            way_out.count_down(0)
            _call(loop, context, self.leave, 0)

        waiting = self._door.hand_over(take, ended)
        if waiting.greeting is not None:
            self._face.greet(msgspec.convert(waiting.greeting, m.InitializeParams))
        self._receive(waiting.frames)
        if waiting.ended:
            self.leave(0)

    def _receive(self, frames: Sequence[Frame]) -> None:
        for frame in frames:
            self._peer.receive(frame)

    def _hear(self, message: Notification) -> None:
        if message.method == "exit":
            self.leave(0)
        else:
            logger.info("ignored a notification", extra={"method": message.method[:80]})

    def _ping(self) -> dict[str, Any]:
        return self._door.ping(self._peer.inflight - 1)

    def _greeted(self, params: m.InitializeParams) -> None:
        self._client = f"{params.client.name} {params.client.version}".strip()
        if params.process_id is not None:
            self._tasks.start_soon(self._watch_client, params.process_id)

    async def _watch_client(self, pid: int) -> None:
        await lifeline.gone(pid)
        self.leave(0)

    def _status(self, type: str, data: dict[str, Any]) -> None:
        self._wire.send(notification("status", {"type": type, "data": data}))

    async def _open_early(self) -> None:
        """Have the database open by the time that the first chat is asked for."""
        try:
            await self._ready()
        except StorageFailed as failure:
            logger.warning("the database cannot be opened", extra={"error": failure.message})
        except Failure as failure:
            logger.info("not opened", extra={"error": failure.message})

    async def _ready(self) -> Chats:
        """The chats, once the database is open; while it cannot be opened, why."""
        if self._chats:
            return self._chats
        async with self._opening:
            chats: Chats | None = self._chats
            if chats is None:
                self._raise_recent_failure()
                if self._leaving.is_set():
                    raise Failure("shutting_down", "The sidecar is shutting down", retryable=True)
                with anyio.CancelScope(shield=True):
                    chats = self._chats = await self._open()
            assert chats is not None
            return chats

    def _raise_recent_failure(self) -> None:
        if self._open_failure and anyio.current_time() < self._open_failure[0]:
            raise self._open_failure[1]

    async def _open(self) -> Chats:
        try:
            return await self._open_store()
        except SettingsError as error:
            failure: Failure = Failure("precondition_failed", str(error), action="fix_settings")
            self._open_failure = (anyio.current_time() + REOPEN_S, failure)
            raise failure from error
        except StorageFailed as failure:
            self._open_failure = (anyio.current_time() + REOPEN_S, failure)
            state = {"schema_newer": "newer", "readonly": "readonly", "full": "full"}.get(
                failure.reason or ""
            )
            if state:
                self._status("storage", {"state": state})
            raise

    async def _open_store(self) -> Chats:
        settings = self.settings(None)
        process = processes.current()
        me = ProcessIdentity(
            self._door.instance_id, process.boot, process.namespace, process.pid, process.started
        )
        store = Store(settings.store.data_dir, settings.store.busy_timeout, me, _is_alive)
        await store.open(self._tasks, lambda state: self._status("storage", {"state": state}))
        self._store = self._annexes.store = store
        self._in_force.trust_only(await store.custody.trusted())
        workshop = Workshop(
            store=store,
            index=self._annexes.index,
            app=self._app,
            requests=Requests(store),
            settings=self._in_force.work,
            servers=self._annexes.servers,
            web=self._annexes.web,
            is_trusted=self._in_force.is_trusted,
            distrust=self._in_force.distrust,
            rules_folder=os.path.join(os.path.dirname(user_file()), "rules"),
            user_folder=os.path.dirname(user_file()),
        )
        around = Surroundings(
            store,
            self._tasks,
            self._providers,
            self._in_force.defaults,
            lambda: self._client,
            self._in_force.titles_by_model,
            workshop,
        )
        chats = Chats(around, settings.chat_id)
        store.recovered = partial(self._start_over, chats)
        watch = Watch(
            chats, lambda id, change: self._status("chats.changed", {"sessionId": id, "change": change})
        )
        self._tasks.start_soon(watch.run)
        self._tasks.start_soon(watch.renew)
        self._tasks.start_soon(self._keep_house, chats)
        if store.is_writable:
            self._status("storage", {"state": "ready", **_scarce(store)})
        return chats

    async def _keep_house(self, chats: Chats) -> None:
        """Purge what is past its time, when the start is over and once a day."""
        await anyio.sleep(HOUSEKEEPING_S)
        from .chat import housekeeping

        while True:
            try:
                removed = await housekeeping.sweep(chats, self.settings(None).session.retention_days)
                if counts := housekeeping.told(removed):
                    data = {"state": "ready", "purged": removed.chats, "removed": counts}
                    self._status("storage", data)
            except (Failure, SettingsError) as failure:
                logger.warning("what is past its time could not be purged", extra={"error": str(failure)})
            await anyio.sleep(housekeeping.EVERY_S)

    def _start_over(self, chats: Chats, recovery: Recovery) -> None:
        """A damaged database was replaced while it was in use."""
        chats.start_over()
        self._face.start_over()
        figures = {"chats": recovery.chats, "saved": recovery.events, "lost": recovery.lost}
        self._status("storage", {"state": "ready", "recovered": {**figures, "damaged": recovery.damaged}})

    async def _shut_down(self, grace_ms: int) -> m.ShutdownResult:
        chats = self._chats
        if chats is None:
            return m.ShutdownResult(chats=[])
        with anyio.move_on_after(max(0, min(grace_ms, 60_000)) / 1000):
            for session in chats.sessions:
                if session.turn:
                    await session.turn.done.wait()
        with anyio.CancelScope(shield=True):
            await chats.interrupt_all()
        refused = RpcError.named("shutting_down", "The sidecar is shutting down", retryable=True)
        self._peer.refuse(refused)
        return m.ShutdownResult(
            chats=[
                m.ShutdownChat(
                    session_id=session.chat.key.session_id,
                    chat_id=session.chat.key.chat_id,
                    state=session.chat.state,
                    last_seq=session.recorder.last_seq,
                )
                for session in chats.sessions
            ]
        )

    async def _close(self) -> None:
        """End turns as interrupted, commit, release the leases, answer what was asked."""
        self._annexes.kill_servers()
        self._peer.refuse(RpcError.named("shutting_down", "The sidecar is shutting down", retryable=True))
        if self._chats and self._store:
            await _if_possible(self._store.announce_closing)
            await self._chats.interrupt_all()
        way_out.kill_commands()
        await self._peer.idle()
        async with self._opening:
            if self._store:
                await _if_possible(self._store.release_leases)
                await self._store.close()


async def _if_possible(step: Callable[[], Awaitable[None]]) -> None:
    """On the way out a disk that takes nothing holds nobody up: the next process closes what is left open."""
    try:
        await step()
    except StorageFailed as failure:
        logger.error("the database does not take the last words", extra={"error": failure.message})


def _scarce(store: Store) -> dict[str, int]:
    """How much the disk has left, when that is little: worth a word, and no reason to refuse anything."""
    free = store.free_bytes()
    if free is None or free >= LOW_DISK_BYTES:
        return {}
    logger.warning("the disk is nearly full", extra={"free": free})
    return {"freeBytes": free}


def _is_alive(owner: ProcessIdentity) -> bool | None:
    return processes.is_alive(processes.Identity(owner.boot, owner.pid_namespace, owner.pid, owner.started))


def _call(loop: asyncio.AbstractEventLoop, context: contextvars.Context, action: Any, *args: Any) -> None:
    try:
        loop.call_soon_threadsafe(action, *args, context=context)
    except RuntimeError:  # the loop has ended: we are leaving already
        return
