"""Wires all packages together; the only module that knows them all. Starts the server and shuts it down."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import anyio
from anyio.abc import TaskGroup
from sidecar_protocol.framing import Frame

from .. import logs
from ..chat.services.client_requests import Requests
from ..chat.services.services import ChatServices
from ..chat.sessions.change_watcher import ChangeWatcher
from ..chat.sessions.chats import Chats
from ..chat.sessions.session import Session
from ..engines.registry import EngineRegistry, EngineServices
from ..frontends.registry import FrontendConnection, FrontendRegistry
from ..model.chats import ProcessIdentity
from ..model.failures import Failure, StorageFailed
from ..rpc.stdio import StdoutWriter
from ..rpc.wire import MessageWriter
from ..settings import SettingsError
from ..settings.files import user_file
from ..settings.installation import identify
from ..store import Store
from ..store.lifecycle import LOW_DISK_BYTES
from ..system import parent_watch, processes, programs, trusted_files
from ..system.launch import Handover, ServeOptions
from ..system.lazy import lazy_module
from . import shutdown
from .connection import ClientConnection
from .services import LazyServices
from .system_service import SystemService

if TYPE_CHECKING:
    from ..chat.actions import housekeeping, project_files
    from ..frontends.base import InitializeResult, PingResult
    from ..store.engine.file_watch import Loss, Rescued
    from ..store.repair.recovery import Recovery
    from ..tools.mcp.servers import Servers
else:
    housekeeping = lazy_module("sidecar.chat.actions.housekeeping")
    project_files = lazy_module("sidecar.chat.actions.project_files")

logger = logging.getLogger(__name__)

GRACE_S = 1.2
"""For ending turns and committing; together with the last flush it stays under the contract's two seconds."""

FLUSH_S = 0.4

SWITCH_S = 0.0005
"""The database's thread needs the interpreter lock about twenty times per commit. At Python's default of 5 ms, a
model that streams without a pause would delay each token by a tenth of a second.
"""

REOPEN_S = 1.0
"""How soon a database that could not be opened is tried again."""

HOUSEKEEPING_S = 1.0
"""The delay after the start before old chats and unreferenced blobs are purged: the first prompt goes first."""


class Bootstrap(Protocol):
    """The bootstrap, as the server sees it."""

    instance_id: str
    stdout_writer: StdoutWriter

    def initialize_result(self) -> InitializeResult: ...
    def ping(self, inflight: int) -> PingResult: ...
    def hand_over(self, take: Callable[[Sequence[Frame]], None], on_end: Callable[[], None]) -> Handover: ...


def run(bootstrap: Bootstrap, options: ServeOptions, frontends: FrontendRegistry) -> NoReturn:
    """Serve until there is a reason to exit."""
    sys.setswitchinterval(SWITCH_S)
    try:
        anyio.run(_serve, bootstrap, options, frontends)
    except Exception:
        logger.critical("the sidecar failed", exc_info=True)
    bootstrap.stdout_writer.drain(FLUSH_S)
    shutdown.exit_now(70)  # EX_SOFTWARE


async def _serve(bootstrap: Bootstrap, options: ServeOptions, frontends: FrontendRegistry) -> None:
    async with anyio.create_task_group() as tasks:
        await Server(bootstrap, options, frontends, tasks).run_until_exit()


class Server:
    """The life cycle of the process: its connection, its database, its shutdown. Implements `Host` of
    `frontends/base.py`.
    """

    def __init__(
        self, bootstrap: Bootstrap, options: ServeOptions, frontends: FrontendRegistry, tasks: TaskGroup
    ) -> None:
        self._bootstrap = bootstrap
        self._options = options
        self._tasks = tasks
        self._client = ""
        self._chats: Chats | None = None
        self._store: Store | None = None
        self._opening = anyio.Lock()
        self._open_failure: tuple[float, Failure] | None = None
        self._exiting = anyio.Event()
        self._exit_code = 0
        wire = MessageWriter(bootstrap.stdout_writer)
        self._connection = ClientConnection(
            frontends,
            options.frontend,
            lambda greeting: FrontendConnection(wire, tasks, self, bootstrap, greeting),
        )
        self.system = SystemService(
            options, self.opened_chats, self._built_servers, self._connection.send_status
        )
        self._settings_cache = self.system.settings_cache
        self._lazy_services = LazyServices(tasks, self._settings_cache, self._connection.send_status)

    async def run_until_exit(self) -> NoReturn:
        """Serve until an exit is requested, then exit."""
        self._start_logging()
        with self._signals():
            self._take_over_frames()
            self._tasks.start_soon(self._open_early)
            await self._wait_for_exit()
            # Shielded: the cancel that ended the tasks must not end the last commits too.
            with anyio.move_on_after(GRACE_S, shield=True):
                await self._close()
        self._connection.abandon()
        self._bootstrap.stdout_writer.drain(FLUSH_S)
        # Threads that hang in a write that nobody reads, or in a file system, must not delay the exit.
        shutdown.exit_now(self._exit_code)

    async def _wait_for_exit(self) -> None:
        """Wait for an exit request. A failed task cancels all others: no turn could run, so the process ends."""
        try:
            await self._exiting.wait()
        except BaseException:
            logger.critical("a task of the server failed; the process ends")
            shutdown.start_exit_timer(70)  # EX_SOFTWARE
            raise

    def _built_servers(self) -> Servers | None:
        return self._lazy_services.built_servers

    def _start_logging(self) -> None:
        try:
            settings = self.system.settings(None)
            logs.start(settings.log_level(self._options.frontend), settings.log.file)
        except (SettingsError, OSError) as error:
            logs.start("warn", None)
            logger.error("settings cannot be read", extra={"error": str(error)})

    def _signals(self) -> Any:
        numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name)]
        loop = asyncio.get_running_loop()
        return shutdown.SignalHandlers(loop, numbers, lambda number: self.begin_exit(128 + number))

    def begin_exit(self, code: int) -> None:
        """Start the shutdown; the first reason decides the exit code."""
        if not self._exiting.is_set():
            self._exit_code = code
            # Before anything is closed: whatever hangs in there, the process ends in time.
            shutdown.start_exit_timer(code)
            self._exiting.set()

    def _take_over_frames(self) -> None:
        loop = asyncio.get_running_loop()
        # The reader's thread has its own context, in which sniffio, if installed, finds no event loop.
        context = contextvars.copy_context()

        def take(frames: Sequence[Frame]) -> None:
            _call_in_loop(loop, context, self._connection.receive, frames)

        def ended() -> None:
            # From the reader's thread: the event loop may be what hangs.
            shutdown.start_exit_timer(0)
            _call_in_loop(loop, context, self.begin_exit, 0)

        # From here on the reader's thread calls `take`; its calls queue up behind this function, so the
        # frames that were held go first.
        waiting = self._bootstrap.hand_over(take, ended)
        self._connection.begin(waiting.greeting, waiting.dialect)
        self._connection.receive(waiting.frames)
        if waiting.ended:
            self.begin_exit(0)

    def client_connected(self, name: str, pid: int | None) -> None:
        self._client = name
        if pid is not None:
            self._tasks.start_soon(self._watch_client, pid)

    async def _watch_client(self, pid: int) -> None:
        await parent_watch.wait_for_exit(pid)
        self.begin_exit(0)

    async def _open_early(self) -> None:
        """Open the database before the first chat is requested."""
        try:
            await self.opened_chats()
        except StorageFailed as failure:
            logger.warning("the database cannot be opened", extra={"error": failure.message})
        except Failure as failure:
            logger.info("the database was not opened", extra={"error": failure.message})

    async def opened_chats(self) -> Chats:
        """The chats, once the database is open; raises the reason while it cannot be opened."""
        if self._chats:
            return self._chats
        async with self._opening:
            chats: Chats | None = self._chats
            if chats is None:
                self._raise_recent_failure()
                if self._exiting.is_set():
                    raise Failure("shutting_down", "The sidecar is shutting down", retryable=True)
                # A cancelled request must not leave a half opened database to the next one.
                with anyio.CancelScope(shield=True):
                    chats = self._chats = self.system.chats = await self._open()
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
                self._connection.send_status("storage", {"state": state})
            raise

    async def _open_store(self) -> Chats:
        settings = self.system.settings(None)
        process = processes.current_process()
        me = ProcessIdentity(
            self._bootstrap.instance_id, process.boot, process.namespace, process.pid, process.started
        )
        store = Store(settings.store.data_dir, settings.store.busy_timeout, me, _is_alive, identify)
        await store.open(self._tasks, lambda state: self._connection.send_status("storage", {"state": state}))
        self._store = self._lazy_services.store = store
        self._settings_cache.trust_only(await _trusted_files(store))
        await anyio.to_thread.run_sync(programs.note_writable, await store.retention.writable_folders())
        chats = Chats(self._chat_services(store), settings.chat_id, _write_project_files)
        store.recovered = partial(self._reset_after_recovery, chats)
        store.lost = self._files_lost
        watch = ChangeWatcher(
            chats,
            lambda id, change: self._connection.send_status(
                "chats.changed", {"sessionId": id, "change": change}
            ),
            self._connection.report_access,
        )
        self._tasks.start_soon(watch.run)
        self._tasks.start_soon(watch.renew)
        self._tasks.start_soon(self._sweep_forever, chats)
        self._tasks.start_soon(self._fill_search, store)
        if store.is_writable:
            self._connection.send_status(
                "storage", {"state": "ready", **_removed_by_origin(store), **_low_disk(store)}
            )
        return chats

    def _chat_services(self, store: Store) -> ChatServices:
        return ChatServices(
            store=store,
            tasks=self._tasks,
            providers=self.system.providers,
            engines=EngineRegistry(services=EngineServices(self._tasks, self._settings_cache.engine_tables)),
            defaults=self._settings_cache.defaults,
            client=lambda: self._client,
            model_titles=self._settings_cache.titles_by_model,
            index=self._lazy_services.index,
            connected_app=lambda: self._connection.app,
            requests=Requests(store),
            settings=self._settings_cache.project_settings,
            servers=self._lazy_services.servers,
            web=self._lazy_services.web,
            is_trusted=self._settings_cache.is_trusted,
            trusts_file=self._settings_cache.trusts_file,
            distrust=self._settings_cache.distrust,
            rules_folder=os.path.join(os.path.dirname(user_file()), "rules"),
            user_folder=os.path.dirname(user_file()),
            settings_file=self._settings_cache.settings_file,
        )

    async def _sweep_forever(self, chats: Chats) -> None:
        """Purge what has passed its retention, after the start and then once a day."""
        await anyio.sleep(HOUSEKEEPING_S)
        while True:
            try:
                settings = self.system.settings(None)
                session = settings.session
                removed = await housekeeping.sweep(
                    chats, session.retention_days, session.sent_days, settings.agent_retention()
                )
                if counts := housekeeping.removed_counts(removed):
                    data = {"state": "ready", "purged": removed.chats, "removed": counts}
                    self._connection.send_status("storage", data)
            except (Failure, SettingsError) as failure:
                logger.warning("data past its retention could not be purged", extra={"error": str(failure)})
            await anyio.sleep(housekeeping.SWEEP_INTERVAL_S)

    async def _fill_search(self, store: Store) -> None:
        """Continue what a migration has left: messages of before that are not in the index of their parts."""
        await anyio.sleep(2 * HOUSEKEEPING_S)
        try:
            await store.turns.fill_search()
        except Failure as failure:  # the next start goes on
            logger.info("the index of messages was not completed", extra={"error": failure.message})

    def _files_lost(self, loss: Loss, rescued: Rescued | None) -> None:
        """Report that the database's files were removed or replaced while open."""
        logger.error(
            "the database's files were removed or replaced", extra={"file": loss.file, "how": loss.kind}
        )
        if rescued and rescued.is_back:
            if not rescued.by_other:  # otherwise all chats are read again, which sends its own status
                self._connection.send_status("storage", {"state": "ready"})
            return
        self._connection.send_status(
            "storage", {"state": loss.reason, **({"rescued": rescued.file} if rescued else {})}
        )

    def _reset_after_recovery(self, chats: Chats, recovery: Recovery | None) -> None:
        """Reset all chats: a damaged database was replaced while in use. Without `recovery`, another process did it."""
        chats.reset()
        self._connection.reset()
        if recovery is None:
            self._connection.send_status("storage", {"state": "ready"})
            return
        figures = {"chats": recovery.chats, "saved": recovery.events, "lost": recovery.lost}
        self._connection.send_status(
            "storage", {"state": "ready", "recovered": {**figures, "damaged": recovery.damaged}}
        )

    async def shut_down(self, grace_ms: int) -> Sequence[Session]:
        chats = self._chats
        if chats is None:
            return []
        with anyio.move_on_after(max(0, min(grace_ms, 60_000)) / 1000):
            for session in chats.sessions:
                if session.turn:
                    await session.turn.done.wait()
        with anyio.CancelScope(shield=True):
            await chats.interrupt_all()
        self._connection.refuse()
        return chats.sessions

    async def _close(self) -> None:
        """End turns as interrupted, commit, release the leases, answer pending requests."""
        self._lazy_services.kill_servers()
        self._connection.refuse()
        if self._chats and self._store:
            await _log_storage_failure(self._store.leases.announce_closing)
            await self._chats.interrupt_all()
        shutdown.kill_commands()
        await self._connection.idle()
        async with self._opening:
            if self._store:
                await _log_storage_failure(self._store.leases.release_all)
                await self._store.close()


async def _log_storage_failure(step: Callable[[], Awaitable[None]]) -> None:
    """Log a storage failure at shutdown and go on: the next process closes what is left open."""
    try:
        await step()
    except StorageFailed as failure:
        logger.error("the last events could not be committed", extra={"error": failure.message})


def _removed_by_origin(store: Store) -> Mapping[str, object]:
    """What was removed from a database of another installation: the app tells the user, who would miss it."""
    found = store.stripped
    return {"stripped": {**found.taken.counts(), "copy": found.copy}} if found else {}


def _low_disk(store: Store) -> dict[str, int]:
    """The free space of the disk when it is low: reported, and no reason to refuse anything."""
    free = store.free_bytes()
    if free is None or free >= LOW_DISK_BYTES:
        return {}
    logger.warning("the disk is nearly full", extra={"free": free})
    return {"freeBytes": free}


def _is_alive(owner: ProcessIdentity) -> bool | None:
    return processes.is_alive(
        processes.ProcessIdentity(owner.boot, owner.pid_namespace, owner.pid, owner.started)
    )


def _call_in_loop(
    loop: asyncio.AbstractEventLoop, context: contextvars.Context, action: Any, *args: Any
) -> None:
    try:
        loop.call_soon_threadsafe(action, *args, context=context)
    except RuntimeError:  # the loop has ended: the process is exiting already
        return


async def _trusted_files(store: Store) -> dict[str, trusted_files.TrustRecord]:
    """The files of trusted projects as they were when they were trusted. An entry of an older version of this
    program has none: it is bound to the current files.
    """
    found: dict[str, trusted_files.TrustRecord] = {}
    for path, files in (await store.retention.trusted_projects()).items():
        if files is None:
            try:
                files = await anyio.to_thread.run_sync(trusted_files.make_record, path)
            except trusted_files.TooMuch:
                continue
            if store.is_writable:
                await store.retention.bind(path, files)
        found[path] = files
    return found


async def _write_project_files(session: Session) -> None:
    """Write the files about a project's chats after a turn, where the project's settings ask for them."""
    if session.environment.settings.values.project.files:
        await project_files.write_project_files(session)
