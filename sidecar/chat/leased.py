"""A chat that this process may write to when it holds the lease: its state in memory, kept true to the journal.

While the lease is held, memory is what the journal says. Without it another process may have moved the chat on,
which a commit notices (`Stale`) and which is then read anew. What a dead owner left open is closed first.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio
import msgspec
from anyio.abc import TaskGroup

from ..model.chats import Chat, Prompt
from ..model.events import NewEvent, StoredEvent
from ..model.failures import Refused
from ..providers.registry import Registry
from ..store.leases import LeaseHeld, Unclosed
from ..store.store import Snapshot, Stale, Store
from . import closure, config, identity
from .answering import Answering
from .continuity import Continuity
from .desk import Desk, Workshop
from .recorder import Recorder
from .running import RunningTurn

logger = logging.getLogger(__name__)

CLOSING_WAIT_S = 3.0
"""How long a write waits for an owner that has said that it is leaving."""

DYING_WAIT_S = 0.1
"""A killed process takes a moment to be gone; only then may its chat be taken over."""

T = TypeVar("T")


class Surroundings(msgspec.Struct, frozen=True):
    """What every session of this process shares."""

    store: Store
    tasks: TaskGroup
    providers: Registry
    defaults: Callable[[str | None], dict[str, Any]]
    client: Callable[[], str]
    model_titles: Callable[[str | None], bool]
    workshop: Workshop


class LeasedChat:
    def __init__(self, around: Surroundings, chat: Chat, queue: list[Prompt]) -> None:
        self._around = around
        self._store = around.store
        self.chat = chat
        self.queue = queue
        self.turn: RunningTurn | None = None
        self.lock = anyio.Lock()
        self.recorder = Recorder(around.store, chat.id, chat.last_seq, around.tasks, around.client)
        self.desk = Desk(self, around.workshop)
        self.continuity = Continuity(around.store, self.desk)
        self.answering = Answering(around.providers, around.store, self.desk, self.continuity)
        self.deleted = False
        self.leaving = False
        self.compacting = False
        self.compacted = anyio.Event()

    @property
    def store(self) -> Store:
        return self._store

    @property
    def config(self) -> dict[str, Any]:
        """What is in force for this chat now."""
        project = self.chat.project_path
        return config.effective(self._around.defaults(project), self.chat.config, project)

    def warm(self) -> None:
        """Somebody looks at the chat: make its model ready, beside everything else."""
        self.beside(self.answering.warm, str(self.config["model"]))
        self.beside(self._warm_desk)

    async def _warm_desk(self) -> None:
        self.desk.warm()

    def closed(self) -> None:
        """The app looks at the chat no more."""
        self.beside(self.end_session, "other")

    async def end_session(self, reason: str) -> None:
        """Nobody looks at the chat any more, or it goes: its hooks are told."""
        if self.desk.has_hooks() and self.turn is None:
            from . import hook_turns

            await hook_turns.end(self, reason)

    def beside(self, work: Callable[..., Awaitable[None]], *args: Any) -> None:
        """Do something that nobody waits for. A bug in it is logged, and ends neither turns nor other chats."""

        async def guarded() -> None:
            try:
                await work(*args)
            except Exception:
                logger.exception("something beside a chat failed")

        self._around.tasks.start_soon(guarded)

    @property
    def holds_lease(self) -> bool:
        return self.recorder.generation is not None

    async def events_after(self, seq: int, limit: int, max_bytes: int) -> list[StoredEvent]:
        return await self._store.events_after(self.chat.id, seq, limit, max_bytes)

    async def read_events(
        self, epoch: str, seq: int, limit: int, max_bytes: int
    ) -> tuple[Chat, list[StoredEvent]]:
        """Stored events behind a cursor, and the chat as it was when they were read."""
        return await self._store.read_events(self.chat.id, epoch, seq, limit, max_bytes)

    async def refresh(self, *, keep_lease: bool = False) -> Snapshot:
        """Read the chat anew, as another process may have left it."""
        if not keep_lease:
            self.recorder.generation = None
        snapshot = await self._store.snapshot(self.chat.id, 0, 0)
        self.adopt(snapshot)
        return snapshot

    def adopt(self, snapshot: Snapshot) -> None:
        """Take over what was read from the store, by one who is not writing."""
        self.chat, self.queue = snapshot.chat, snapshot.queue
        self.recorder.moved(snapshot.chat.last_seq)

    async def look(self) -> None:
        """Be up to date without holding the lease; while it is held, memory is."""
        if not self.holds_lease and not self.recorder.busy:
            await self.refresh()

    async def close_crash(self) -> closure.Closure:
        """Take the chat over from a dead owner and end what it left open."""
        self.recorder.generation = await self._store.take_lease(self.chat.id, self._around.client())
        snapshot = await self.refresh(keep_lease=True)
        turn = await self._store.running_turn(self.chat.id)
        made = await self.desk.after_crash(turn)
        queue_waits = bool(self.queue) and not self.chat.queue_paused
        closed = closure.close(turn, self.chat.state, queue_waits, snapshot.pending, made)
        if closed.events:
            await self.recorder.record(*closed.events)
        await self._release_if_idle()
        await self.refresh(keep_lease=True)
        return closed

    def gone(self) -> None:
        """The chat was purged, here or by another process."""
        self.deleted = True
        self.recorder.feed.close()

    async def _changing(self, change: Callable[[], Awaitable[T]]) -> T:
        """Run a change under the lock, again from its start when another process was faster."""
        start = anyio.current_time()
        async with self.lock:
            while True:
                if self.leaving:
                    raise Refused("shutting_down", "The sidecar is shutting down", retryable=True)
                if self.deleted:
                    raise identity.deleted(self.chat.key.session_id)
                try:
                    return await change()
                except Stale:
                    await self.refresh()
                except Unclosed:
                    await self.close_crash()
                except LeaseHeld as held:
                    patience = CLOSING_WAIT_S if held.lease.closing else DYING_WAIT_S
                    if anyio.current_time() - start > patience:
                        raise
                    await anyio.sleep(DYING_WAIT_S / 4)

    async def apply(self, make: Callable[[], Awaitable[tuple[T, list[NewEvent]]]]) -> tuple[T, int]:
        """Make some events of the chat as it is now and commit them; what `make` says, and the newest seq.

        `make` runs under the lock, again when another process was faster, so it may look and compute; what it
        does to files must be safe to do twice.
        """

        async def change() -> tuple[T, int]:
            await self.look()
            made, events = await make()
            if not events:
                return made, self.recorder.last_seq
            stored = await self._record(*events)
            await self._release_if_idle()
            if self.turn is None:
                await self.refresh(keep_lease=True)
            return made, stored[-1].seq

        return await self._changing(change)

    async def keep(self, *events: NewEvent) -> None:
        """Commit facts that belong to no turn, whatever else goes on."""
        if self.leaving:
            await self._record(*events)
            return

        async def make() -> tuple[None, list[NewEvent]]:
            return None, list(events)

        await self.apply(make)

    async def _record(self, *events: NewEvent) -> list[StoredEvent]:
        return await self.recorder.record(*events)

    async def _check_writable(self) -> None:
        """Raise LeaseHeld when another live process writes to this chat, also when nothing is to be written now."""
        if not self.holds_lease:
            lease = (await self._store.snapshot(self.chat.id, 0, 0)).lease
            if lease and self._store.other_holder(lease):
                raise LeaseHeld(lease)

    async def let_go(self) -> None:
        """Something beside the turns has ended: the lease goes when nothing else needs it."""
        async with self.lock:
            await self._release_if_idle()

    async def _release_if_idle(self) -> None:
        generation = self.recorder.generation
        if self.turn is None and not self.queue and not self.compacting and generation is not None:
            self.recorder.generation = None
            await self._store.release_lease(self.chat.id, generation)
