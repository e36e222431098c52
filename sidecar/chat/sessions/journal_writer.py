"""Writes to one chat under its lease: the chat's state in memory, consistent with the journal.

While the lease is held, memory equals the journal. Without it another process may have written to the chat; a commit
detects that (`StaleWrite`), and the chat is read again. What a dead owner left open is closed first.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from ...model.chats import Chat, EffectiveConfig, Lease, Prompt
from ...model.events import NewEvent, StoredEvent
from ...model.failures import Failure, Refused, repaired_meanwhile
from ...store.store import Snapshot, StaleWrite, Store
from ...store.tables.leases import LeaseHeld, UnclosedChat
from ...system.lazy import lazy_module
from ..journal import event_factory, identity
from ..journal.recorder import Recorder
from ..journal.running_turn import RunningTurn
from ..request.resume import ResumeSnapshots
from ..services.services import ChatServices
from ..tool_calls.environment import ToolEnvironment
from . import config, crash_closure, import_undo
from .handed import Handed
from .turn_runner import TurnRunner

if TYPE_CHECKING:
    from . import handover, hook_turns
else:
    handover = lazy_module("sidecar.chat.sessions.handover")
    hook_turns = lazy_module("sidecar.chat.sessions.hook_turns")

logger = logging.getLogger(__name__)

CLOSING_WAIT_S = 3.0
"""How long a write waits for an owner that has announced its shutdown."""

DYING_WAIT_S = 0.1
"""A killed process takes a moment to be gone; only then may its chat be taken over."""

T = TypeVar("T")


def _patience() -> Callable[[LeaseHeld], Awaitable[None]]:
    """Wait for an owner that is about to end; refuse the change when it does not end in time."""
    start = anyio.current_time()

    async def wait(held: LeaseHeld) -> None:
        limit = CLOSING_WAIT_S if held.lease.closing else DYING_WAIT_S
        if anyio.current_time() - start > limit:
            raise held
        await anyio.sleep(DYING_WAIT_S / 4)

    return wait


class JournalWriter:
    def __init__(self, services: ChatServices, chat: Chat, queue: list[Prompt]) -> None:
        self._services = services
        self._store = services.store
        self.chat = chat
        self.queue = queue
        self.turn: RunningTurn | None = None
        self.lock = anyio.Lock()
        self.recorder = Recorder(
            services.store, chat.id, chat.epoch, chat.last_seq, services.tasks, services.client
        )
        self.environment = ToolEnvironment(self, services)
        self.resume_snapshots = ResumeSnapshots(services.store, self.environment)
        self.turn_runner = TurnRunner(
            services.providers, services.engines, services.store, self.environment, self.resume_snapshots
        )
        self.deleted = False
        self.leaving = False
        self.is_outdated = False
        self.holder: Lease | None = None
        """The lease of another process, as the clients of this one know it."""
        self._advancing = False
        self.compacting = False
        self.compaction_ended = anyio.Event()

    @property
    def store(self) -> Store:
        return self._store

    @property
    def config(self) -> EffectiveConfig:
        """The chat's effective configuration."""
        project = self.chat.project_path
        return config.effective_config(self._services.defaults(project), self.chat.config, project)

    def warm(self) -> None:
        """Prepare the chat's model and servers in the background, because a client has opened the chat."""
        in_force = self.config
        self.run_in_background(self.turn_runner.warm, in_force.engine, in_force.model)
        self.run_in_background(self._warm_environment)

    async def _warm_environment(self) -> None:
        await self.environment.warm()

    def end_in_background(self) -> None:
        """End the session for hooks and close its engine in the background, because the app has closed the chat."""
        self.run_in_background(self.end_session, "other")
        if self.turn is None:
            self.run_in_background(self.turn_runner.close_engine)

    async def end_session(self, reason: str) -> None:
        """End the session for hooks, because the chat is closed, purged, or the process ends."""
        if self.environment.has_hooks() and self.turn is None:
            await hook_turns.run_end_hooks(self, reason)

    def run_in_background(self, work: Callable[..., Awaitable[None]], *args: Any) -> None:
        """Run work that nothing waits for. A bug in it is logged, and ends neither turns nor other chats."""

        async def run_and_log() -> None:
            try:
                await work(*args)
            except Exception:
                logger.exception("background work of a chat failed")

        self._services.tasks.start_soon(run_and_log)

    @property
    def holds_lease(self) -> bool:
        return self.recorder.generation is not None

    async def events_after(self, seq: int, limit: int, max_bytes: int) -> list[StoredEvent]:
        return await self._store.journal.after(self.chat.id, seq, limit, max_bytes)

    async def read_events(
        self, epoch: str, seq: int, limit: int, max_bytes: int
    ) -> tuple[Chat, list[StoredEvent]]:
        """Stored events after a cursor, and the chat as it was when they were read."""
        return await self._store.journal.read(self.chat.id, epoch, seq, limit, max_bytes)

    async def refresh(self, *, keep_lease: bool = False) -> Snapshot:
        """Read the chat again, because another process may have changed it."""
        if not keep_lease:
            self.recorder.generation = None
        snapshot = await self._store.chats.snapshot(self.chat.id, 0, 0)
        self.adopt(snapshot)
        return snapshot

    def adopt(self, snapshot: Snapshot) -> None:
        """Take over state that was read from the store. Only for a session that is not writing."""
        self.chat, self.queue = snapshot.chat, snapshot.queue
        self.recorder.catch_up(snapshot.chat.last_seq)

    async def refresh_unless_owner(self) -> None:
        """Read the chat again unless this process holds the lease: then memory is current."""
        # While a commit is in progress, what the store has is older than what this process has accepted.
        if not self.holds_lease and not self.recorder.busy:
            await self.refresh()

    async def close_crash(self) -> crash_closure.Closure:
        """Take the chat over from a dead owner and end what it left open."""
        self.recorder.generation = await self._store.leases.take(self.chat.id, self._services.client())
        snapshot = await self.refresh(keep_lease=True)
        if any(asked.kind == "import" for asked in snapshot.pending):
            await self._hide_cut_off_import()
        turn = await self._store.turns.running(self.chat.id)
        recovered = await self.environment.recover_after_crash(turn)
        queue_waits = bool(self.queue) and not self.chat.queue_paused
        closed = crash_closure.close_crashed(turn, self.chat.state, queue_waits, snapshot.pending, recovered)
        # The ends come before anything else is accepted: an open turn of the dead owner must never be
        # followed by another.
        if closed.events:
            await self.recorder.record(*closed.events)
        await self._release_if_idle()
        await self.refresh(keep_lease=True)
        return closed

    async def _hide_cut_off_import(self) -> None:
        begun = await self._store.imports.begun_at(self.chat.id)
        await import_undo.hide_added(self, begun)

    def mark_deleted(self) -> None:
        """Mark the chat as purged, by this process or another."""
        self.deleted = True
        self.recorder.feed.close()

    async def _run_change(
        self,
        change: Callable[[], Awaitable[T]],
        on_held: Callable[[LeaseHeld], Awaitable[None]] | None = None,
    ) -> T:
        """Run a change under the lock, again from its start when another process was faster. `on_held` runs when
        another process writes to the chat; by default the change is refused, unless that process is about to end.
        """
        on_held = on_held or _patience()
        async with self.lock:
            while True:
                if self.leaving:
                    raise Refused("shutting_down", "The sidecar is shutting down", retryable=True)
                if self.is_outdated:
                    raise repaired_meanwhile()
                if self.deleted:
                    raise identity.chat_deleted(self.chat.key.session_id)
                try:
                    return await change()
                # Each of these is raised before the commit writes anything, so running the change again is safe. The
                # lock is held while waiting: a later request must not overtake this one.
                except StaleWrite:
                    await self.refresh()
                except UnclosedChat:
                    await self.close_crash()
                except LeaseHeld as held:
                    await on_held(held)

    async def _run_or_hand_over(self, change: Callable[[], Awaitable[T]], handed: Handed[T]) -> T:
        """Run a change, or let the process run it that writes to the chat now."""

        async def run_here() -> T:
            # Before the change reads anything: what this process knows of the chat may be old.
            await self._check_writable()
            return await change()

        async def hand_over(held: LeaseHeld) -> None:
            if row := await handover.hand_over(self._store, self.chat.id, handed.request, held):
                raise handover.Taken(row, held)

        while True:
            try:
                return await self._run_change(run_here, hand_over)
            except handover.Taken as taken:
                outcome = await handover.wait_outcome(self._store, taken)
            async with self.lock:
                await self.refresh_unless_owner()
            if outcome is not None:
                return outcome.read(handed)

    async def apply(self, make: Callable[[], Awaitable[tuple[T, list[NewEvent]]]]) -> tuple[T, int]:
        """Make events from the current state of the chat and commit them; return the result of `make` and the newest
        seq.

        `make` runs under the lock, again when another process was faster. So it may read and compute, and its
        changes to files must be safe to repeat.
        """

        async def change() -> tuple[T, int]:
            await self.refresh_unless_owner()
            recovered, events = await make()
            if not events:
                return recovered, self.recorder.last_seq
            stored = await self._record(*events)
            await self._release_if_idle()
            if self.turn is None:
                await self.refresh(keep_lease=True)
            return recovered, stored[-1].seq

        return await self._run_change(change)

    async def append_slices(
        self,
        begun: NewEvent,
        next_slice: Callable[[], Awaitable[list[NewEvent] | None]],
        end: Callable[[], NewEvent],
        *,
        begun_seq: int | None = None,
    ) -> None:
        """Commit `begun`, slice after slice, and `end`, while nothing else happens in the chat. With `begun_seq`,
        `begun` was committed before.

        A failure or a cancel before the end is undone before another request gets the chat.
        """

        async def change() -> None:
            if self.turn:
                raise event_factory.turn_in_progress()
            first = begun_seq
            if first is None:
                with anyio.CancelScope(shield=True):  # once it is in the journal, it needs an end
                    first = (await self._record(begun))[0].seq
            assert first is not None
            try:
                while events := await next_slice():
                    await self._record(*events, yields=True)
                with anyio.CancelScope(shield=True):
                    await self._record(end())
            except BaseException:
                with anyio.CancelScope(shield=True):
                    await self._take_back(first, begun.data)
                raise
            await self._release_if_idle()
            await self.refresh()

        await self._run_change(change)

    async def _take_back(self, seq: int, begun: dict[str, Any]) -> None:
        try:
            await import_undo.take_back(self, seq, begun)
            if not self.deleted:
                await self._release_if_idle()
                await self.refresh()
        except (
            Failure
        ) as failure:  # it stays marked as unfinished, and is undone when the chat is opened next
            logger.error("an import is left unfinished", extra={"error": failure.message})

    async def record_events(self, *events: NewEvent) -> None:
        """Commit events that belong to no turn, also while a turn runs."""
        if self.leaving:
            await self._record(*events)
            return

        async def make() -> tuple[None, list[NewEvent]]:
            return None, list(events)

        await self.apply(make)

    async def _record(self, *events: NewEvent, yields: bool = False) -> list[StoredEvent]:
        return await self.recorder.record(*events, yields=yields)

    async def _check_writable(self) -> None:
        """Raise LeaseHeld when another live process writes to this chat, even when there is nothing to write now."""
        if not self.holds_lease:
            lease = (await self._store.leases.of([self.chat.id])).get(self.chat.id)
            if lease and self._store.leases.other_holder(lease):
                raise LeaseHeld(lease)

    async def release_lease_if_idle(self) -> None:
        """Release the lease after background work, when nothing else needs it."""
        async with self.lock:
            await self._release_if_idle()

    async def _release_if_idle(self) -> None:
        generation = self.recorder.generation
        if self.turn is None and not self.queue and not self.compacting and generation is not None:
            self.recorder.generation = None
            await self._store.leases.release(self.chat.id, generation)
