"""The connections to one database file: one writes transactions, one reads, one checkpoints. Knows no table.

Group commit: jobs that wait while a transaction runs share the next one. The writer is a task of its own, so
cancelling a caller never leaves a transaction open; its job still runs.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from ...model.failures import StorageFailed, repaired_meanwhile
from ...system.own_files import Inode
from .checkpoints import CheckpointSchedule
from .connection import DatabaseJob, DatabaseThread
from .file_watch import DatabaseFiles, Loss, Rescue, Rescued, files_lost, open_files
from .reserve import Reserve
from .sqlite import STORAGE_ERRORS, Connection, disk_full, is_on_readonly_disk, storage_failure
from .transactions import (
    Carried,
    Pending,
    carry_out,
    checkpoint_log,
    in_snapshot,
    next_batch,
    release_free_pages,
    write_nothing,
)

T = TypeVar("T")

FILES_S, RESCUE_S = 0.5, 5.0
"""How often the files are checked while nothing is written, and how soon a failed rescue copy is retried."""

CLOSE_WAIT_S = 2.0
"""How long closing waits for a repair or a rescue that is replacing the connections."""

RETRY_WRITE_S = 1.0
"""How often a write is tried again on a disk that refused one."""

REPAIR_WAIT_S = 10.0
"""How long a request waits for a repair before it is refused."""


class Database:
    """`write` runs a job in its own or a shared transaction; `read` runs one outside of any.

    `tell` is called with the state of the storage: `full` or `readonly` when nothing can be written, `ready`
    when it can again. `damaged` is called with errors that suggest damage, and returns an event to wait for
    while the database is checked.
    """

    def __init__(self, path: str, busy_timeout: float) -> None:
        self.path = path
        self.on_state: Callable[[str], None] = lambda state: None
        self.on_damaged: Callable[[BaseException], anyio.Event | None] = lambda error: None
        self._repair: anyio.Event | None = None
        self._replacements = 0
        """How often a repair has replaced the file, after which what was read before may be wrong."""
        self.state = "ready"
        self.schema_version: int | None = None
        """The schema version of this program, set after the migration."""
        self._busy_timeout = busy_timeout
        self._reserve = Reserve(None if path == ":memory:" else path)
        self._writer: DatabaseThread | None = None
        self._reader: DatabaseThread | None = None
        self._long_reader: DatabaseThread | None = None
        self._checkpointer: DatabaseThread | None = None
        self._queue: list[Pending[Any]] = []
        self._wake = anyio.Event()
        self._connection_lock = anyio.Lock()
        self._is_readonly_disk = False
        self._connected = anyio.Event()
        self._connected.set()
        self._at = path
        """The file of the connections: the database, or its rescued copy."""
        self._files: DatabaseFiles | None = None
        self._unsaved: Loss | None = None
        self.without_log: Inode | None = None
        """The database whose log was overwritten before all of it was in the database: what is left may be an older
        state in which nothing is wrong."""
        self._next_rescue = 0.0
        self.refusal: StorageFailed | None = None
        """Why only jobs that end something are written, after the files were removed or replaced."""
        self.rescue: Rescue = _refuse_rescue
        self.moved: Callable[[Loss, Rescued | None], None] = lambda loss, rescued: None
        """Called when the files were removed or replaced, and again with what was rescued."""
        self._closing = anyio.Event()
        self.checkpoints = CheckpointSchedule(
            self.checkpoint, lambda: self.run_on_writer(release_free_pages), self._closing
        )
        self._all_committed = anyio.Event()
        """Set when nothing waits to be committed and nothing more will."""
        self._tasks: TaskGroup | None = None

    @property
    def size(self) -> int:
        """Return the bytes of the database's own file."""
        return os.path.getsize(self.path)

    @property
    def last_write(self) -> float:
        """Return the monotonic time of the last commit."""
        return self.checkpoints.last_write

    @property
    def is_closing(self) -> bool:
        return self._closing.is_set()

    @property
    def in_memory(self) -> bool:
        return self.path == ":memory:"

    async def open(self, tasks: TaskGroup) -> None:
        if not self.in_memory:
            with suppress(OSError):  # connecting reports it
                os.close(os.open(self.path, os.O_CREAT | os.O_RDONLY, 0o600))
        await self._connect()
        self._tasks = tasks
        tasks.start_soon(self._commit_forever)
        if not self.in_memory:
            tasks.start_soon(self.checkpoints.run_forever)
            tasks.start_soon(self._watch_files)
        if self._is_readonly_disk:
            self._set_state("readonly")

    async def _connect(self) -> None:
        self._is_readonly_disk = not self.in_memory and is_on_readonly_disk(self._at)
        if self._is_readonly_disk:
            self._writer = self._reader = await DatabaseThread.open(self._at, self._busy_timeout, frozen=True)
            return
        if not self.in_memory:
            self._files = open_files(self._at)
        writer: DatabaseThread | None = None
        try:
            writer = await DatabaseThread.open(self._at, self._busy_timeout)
            # An in-memory database belongs to one connection. Jobs run one after another, so reads may share
            # it.
            reader = writer
            if not self.in_memory:
                reader = await DatabaseThread.open(
                    self._at, self._busy_timeout, query_only=True, beside=self._files
                )
        except StorageFailed:
            if writer:
                await writer.close()
            self._close_files()
            raise
        self._writer, self._reader = writer, reader
        await self.learn_identity()

    async def learn_identity(self) -> None:
        """Read what detects another database that is copied over this one."""
        if self._files and self._writer:
            with suppress(*STORAGE_ERRORS, StorageFailed):  # the next reader reports an error of the file
                await self._writer.call(self._files.learn)

    def _close_files(self) -> None:
        if self._files:
            self._files.close()
            self._files = None

    async def write(self, job: DatabaseJob[T], *, last: bool = False, yields: bool = False) -> T:
        """Run `job` in a transaction and return its result once that is on disk.

        `last` marks a job that ends something: when the disk is full, it may use the reserve. `yields` marks one of
        a long operation, which lets the jobs of others go first. A job that meets damage waits for the repair. It is
        refused if the repair replaced the file, because it may depend on what was read before.
        """
        known = self._replacements
        try:
            return await self._write(job, last, yields)
        except StorageFailed as failure:
            if failure.reason != "corrupt" or not await self.await_repair():
                raise
        if known != self._replacements:
            raise repaired_meanwhile()
        return await self._write(job, last, yields)

    async def _write(self, job: DatabaseJob[T], last: bool, yields: bool) -> T:
        known = self._replacements
        await self._wait_until_connected()
        if known != self._replacements:
            raise repaired_meanwhile()
        if self.is_closing or self._writer is None:
            raise self._unavailable()
        # No await between the check above and the append: `close` would otherwise end the writer before this
        # job is seen, and nobody would set its outcome.
        pending = Pending(job, last, yields)
        self._queue.append(pending)
        self._wake.set()
        return await pending.outcome()

    async def check_space(self) -> None:
        """Raise StorageFailed while the reserve is missing or the files are gone: the end of what starts now
        could not be stored."""
        if self.refusal:
            raise self.refusal
        if self.state == "full":
            # A write refills the reserve when there is space again, sooner than the next look at the disk.
            with suppress(StorageFailed):
                await self.write(lambda db: None)
            if self.state == "full":
                raise disk_full()

    async def read(self, job: DatabaseJob[T], *, long: bool = False) -> T:
        """Run `job` on the reading connection. Its read transaction lasts as long as the job, never across an
        await. A `long` one runs on a connection of its own, so that reads of other chats do not wait for it."""
        try:
            return await self._read(job, long)
        except StorageFailed as failure:
            if failure.reason != "corrupt" or not await self.await_repair():
                raise
        return await self._read(job, long)

    async def await_repair(self) -> bool:
        """Wait for the repair of the damage that was met, by this process or another; False when there is none.

        Raises StorageFailed when it takes too long.
        """
        if self._repair is None and self._connected.is_set() and not self._replacements:
            return False
        with anyio.move_on_after(REPAIR_WAIT_S):
            if self._repair:
                await self._repair.wait()
            await self._connected.wait()
            return True
        raise self._unavailable()

    async def _read(self, job: DatabaseJob[T], long: bool) -> T:
        await self._wait_until_connected()
        reader = await self._connect_long_reader() if long else self._reader
        if reader is None:
            raise self._unavailable()
        try:
            return await reader.call(partial(in_snapshot, job))
        except (*STORAGE_ERRORS, StorageFailed) as error:
            raise self._on_error(error) from error

    async def _connect_long_reader(self) -> DatabaseThread | None:
        if self.in_memory or self._is_readonly_disk:
            return self._reader
        async with self._connection_lock:
            if self._long_reader is None and self._reader is not None:
                loss = await self._reader.call(self._files.look) if self._files else None
                # `_long_reader` is opened late, long after the files were checked: at the path may be another
                # database by now, which must not answer for ours.
                if self.refusal or loss:
                    return self._reader  # another file may be at the path
                self._long_reader = await DatabaseThread.open(
                    self._at, self._busy_timeout, query_only=True, beside=self._files
                )
            return self._long_reader

    async def changed_elsewhere(self) -> int:
        """Return a number that changes when another process commits."""
        return await self.run_on_writer(lambda db: int(db.execute("PRAGMA data_version").fetchone()[0]))

    async def run_on_writer(self, job: DatabaseJob[T]) -> T:
        """Run `job` on the writing connection, outside of any transaction."""
        await self._wait_until_connected()
        if self._writer is None:
            raise self._unavailable()
        try:
            return await self._writer.call(job)
        except STORAGE_ERRORS as error:
            raise self._on_error(error) from error

    async def run_disconnected(
        self, work: Callable[[], T], reload: Callable[[T], bool] = lambda done: False
    ) -> T:
        """Close both connections, run `work` in a thread and reopen them; nothing is read or written meanwhile.

        `reload` gets the result before that. When it returns True, the file was replaced, and jobs that wait are
        refused.
        """
        async with self._connection_lock:
            self._connected = anyio.Event()
            await self._disconnect()
            try:
                done = await anyio.to_thread.run_sync(work)
                if reload(done):
                    self._refuse_waiting()
                return done
            finally:
                # Set whatever happens: every caller waits for `_connected`, so an error here would hang them all.
                with suppress(StorageFailed):  # the next job connects again and gets the error
                    await self._connect()
                self._connected.set()

    def _refuse_waiting(self) -> None:
        self._replacements += 1
        self.refusal = self._unsaved = self.without_log = None  # they were about the files that were replaced
        waiting, self._queue = self._queue, []
        for pending in waiting:
            pending.set_outcome(repaired_meanwhile())

    async def _wait_until_connected(self) -> None:
        """Wait a short time for a running repair: most are short."""
        if not self._connected.is_set():
            with anyio.move_on_after(REPAIR_WAIT_S):
                await self._connected.wait()
        # Only after a failed reconnect. The second check is needed, because others may have waited for the
        # same lock.
        if self._writer is None and self._connected.is_set() and self._tasks and not self.is_closing:
            async with self._connection_lock:
                if self._writer is None:
                    await self._connect()

    async def close(self) -> None:
        """Commit waiting jobs, then close the connections."""
        # All three waits are woken: the writer, the checkpointer, and what sleeps until closing.
        self._closing.set()
        self._wake.set()
        self.checkpoints.wake()
        if self._tasks:
            await self._all_committed.wait()
        # A repair or a rescue holds the lock for as long as it copies. After the limit we close without it:
        # the process must exit in time, and both can be done again.
        with anyio.move_on_after(CLOSE_WAIT_S):
            async with self._connection_lock:
                await self._rescue_at_last()
                await self._disconnect()
            return
        await self._disconnect()

    async def _rescue_at_last(self) -> None:
        """Try once more to copy lost files that could not be copied before: they end with the connections."""
        if self._unsaved and self._writer and self._files:
            with suppress(*STORAGE_ERRORS, StorageFailed):
                await self._lose(self._unsaved)

    async def _disconnect(self) -> None:
        # Taken out before the first await: a connection that is closed twice never returns from the second.
        workers = {self._writer, self._reader, self._long_reader, self._checkpointer} - {None}
        long_reader = self._long_reader
        self._writer = self._reader = self._long_reader = self._checkpointer = None
        if long_reader and self.is_closing:
            await long_reader.interrupt()  # nobody waits for it any more, and the process must exit in time
        files, self._files = self._files, None
        for worker in workers:
            assert worker is not None
            await worker.close()
        if files:
            files.close()

    def _unavailable(self) -> StorageFailed:
        if self.is_closing or self._tasks is None:
            return StorageFailed("io", "The database is closed")
        return StorageFailed("corrupt", "The database is being repaired", action="retry", retryable=True)

    async def _commit_forever(self) -> None:
        # Shielded as a whole, not per commit: a cancel between two commits would end the task, and every
        # later write would wait for a writer that is gone.
        with anyio.CancelScope(shield=True):
            while not self.is_closing or self._queue:
                if not self._queue:
                    # Replaced before the wait, with no await in between: a job that is appended now sets the new
                    # event.
                    self._wake = anyio.Event()
                    await self._wake.wait()
                    continue
                async with self._connection_lock:
                    # Taken under the lock: jobs that arrive while a repair holds it join this batch.
                    await self._commit(next_batch(self._queue))
            self._all_committed.set()

    async def checkpoint(self) -> int:
        """Checkpoint the log while others write; return the number of free pages."""
        if self.in_memory:
            return 0
        async with self._connection_lock:
            if self._writer is None or self._is_readonly_disk or self._unsaved or self.is_closing:
                return 0
            if self._checkpointer is None:
                # A connection to a file that has replaced ours would empty the log that belongs to ours.
                loss = await self._writer.call(self._files.look) if self._files else None
                if loss is not None:
                    return 0
                self._checkpointer = await DatabaseThread.open(
                    self._at, self._busy_timeout, query_only=True, beside=self._files
                )
            checkpointer = self._checkpointer
        # Outside of the lock: a checkpoint may take long, and commits must not wait for it.
        return await checkpointer.call(checkpoint_log)

    async def _commit(self, batch: list[Pending[Any]]) -> None:
        outcomes: list[Any]
        try:
            outcomes = await self._carry(batch)
        except StorageFailed as failure:
            outcomes = [failure] * len(batch)
        except (*STORAGE_ERRORS, ValueError) as error:
            outcomes = [self._on_error(error)] * len(batch)
        for pending, outcome in zip(batch, outcomes, strict=True):
            pending.set_outcome(outcome)

    async def _carry(self, batch: list[Pending[Any]]) -> list[Any]:
        """Return each job's outcome. A commit to lost files counts if the rescued copy contains it."""
        # Twice: when the files were lost before the batch ran, it runs once more on the rescued copy.
        for _ in range(2):
            if self._writer is None:
                return [self._unavailable()] * len(batch)
            # While a rescue failed, the connections still see the lost files: ends are written there, and the
            # next attempt copies them too.
            files = None if self._unsaved else self._files
            carried = await self._writer.call(
                partial(carry_out, batch, self._reserve, self.schema_version, files, self.refusal)
            )
            in_copy = await self._lose(carried.loss) if carried.loss else True
            if carried.outcomes is not None:
                if in_copy:
                    self._on_committed(carried)
                    return carried.outcomes
                return [self.refusal or self._unavailable()] * len(batch)
        return [self.refusal or self._unavailable()] * len(batch)

    async def _watch_files(self) -> None:
        """Notice within a second that the files were removed or replaced, even when nothing is written."""
        while not self.is_closing:
            with anyio.move_on_after(FILES_S):
                await self._closing.wait()
            async with self._connection_lock:
                files = self._files
                if self._writer is None or files is None or self.is_closing:
                    continue
                with suppress(*STORAGE_ERRORS, StorageFailed):
                    # Under the connection lock, or a commit could go to the old files after they were copied.
                    loss = self._unsaved or await self._writer.call(files.look)
                    if loss and time.monotonic() >= self._next_rescue:
                        await self._lose(loss)

    async def _lose(self, loss: Loss) -> bool:
        """Handle lost files: refuse writes, copy what can be read and continue with the copy. Return whether
        the copy contains every commit."""
        if self.refusal is None:
            self.refusal = files_lost(loss)
            self.moved(loss, None)
        assert self._writer
        assert self._files
        try:
            # On the writer's thread: nothing is committed while the files are copied.
            done = await self._writer.call(partial(self.rescue, self.path, loss, self._files))
        except (*STORAGE_ERRORS, StorageFailed) as error:
            self._unsaved, self._next_rescue = loss, time.monotonic() + RESCUE_S
            if loss.kind == "overwritten":
                if loss.file != self.path:
                    self.without_log = self._files.inode
                self._repair = self.on_damaged(error)
                return False
            return True  # it is in the files that are still open, and is copied with them
        self._connected = anyio.Event()
        try:
            await self._disconnect()
            self._at, self._unsaved = done.file, None
            self.refusal = None if done.is_back else files_lost(loss, done.file)
            await self._connect()
        finally:
            self._connected.set()
        self.moved(loss, done)
        return not done.by_other

    def _on_committed(self, carried: Carried) -> None:
        self.checkpoints.on_commit()
        # An end that was written into the space of the reserve does not mean that the disk has space: only a
        # refilled reserve does.
        self._set_state("ready" if carried.has_reserve else "full")

    def _on_error(self, error: BaseException) -> StorageFailed:
        failure = storage_failure(error, None if self.in_memory else self.path)
        if failure.reason in ("full", "readonly"):
            self._set_state(failure.reason)
        elif failure.reason == "corrupt":
            self._repair = self.on_damaged(error)
        return failure

    def _set_state(self, state: str) -> None:
        if state == self.state:
            return
        mending, self.state = self.state != "ready", state
        self.on_state(state)
        if not mending and self._tasks:
            self._tasks.start_soon(self._retry_until_writable)

    async def _retry_until_writable(self) -> None:
        """Test whether the disk accepts writes again; there may be no job that would show it."""
        while self.state != "ready" and not self.is_closing:
            await anyio.sleep(RETRY_WRITE_S)
            with suppress(StorageFailed):
                if self._is_readonly_disk and not is_on_readonly_disk(self.path):
                    await self.run_disconnected(lambda: None)
                await self.write(write_nothing)


def _refuse_rescue(path: str, loss: Loss, files: DatabaseFiles, db: Connection) -> Rescued:
    """Raise the loss: the default for a database without a repair."""
    raise files_lost(loss)
