"""The life cycle of the database files: lock them, migrate them, and replace a damaged database by what can
be saved. Knows no table."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.from_thread
import anyio.to_thread
from anyio.abc import TaskGroup

from ..model.chats import ProcessIdentity
from ..model.failures import StorageFailed
from ..system import own_files
from ..system.lazy import lazy_module
from ..system.own_files import FolderGuard
from . import origin
from .engine import file_copy, file_lock, opening
from .engine.database import Database
from .engine.file_lock import FileLock
from .engine.file_watch import DatabaseFiles, Loss, Rescued
from .engine.sqlite import Connection
from .index import IndexStore
from .tables import leases, migrations

if TYPE_CHECKING:
    from ..settings.installation import Identity
    from .origin import Stripped
    from .repair import integrity, recovery, rescue
else:
    integrity = lazy_module("sidecar.store.repair.integrity")
    recovery = lazy_module("sidecar.store.repair.recovery")
    rescue = lazy_module("sidecar.store.repair.rescue")

logger = logging.getLogger(__name__)

LOW_DISK_BYTES = 200 * 1024 * 1024
"""Below this many free bytes, a long chat with attachments may soon fail to be stored."""

LOOK_S, QUIET_S = 900.0, 60.0
"""How often the full-text indexes are checked, and how long no write must have happened before."""

LOOK_BYTES = 64 * 1024 * 1024
"""A larger database is not checked while it is in use, because the check would block a writer for more than a
second; `sidecar verify` checks it on request."""

ALONE_S = 5.0
"""How long a repair waits for other processes to close the database. They look for a repair every `YIELD_S`."""

YIELD_S = 0.5

REPAIRED_S = 30.0
"""How long opening a damaged database waits for another process to finish its repair."""

REPAIR_INTERVAL_S, AGAIN_S = 60.0, 3.0
"""The least time between two checks: after one that found nothing wrong, and after a repair that failed."""


class ManagedDatabase:
    """Opens, watches, repairs and closes one database.

    `me` is this process; `is_alive` says whether the owner of a lease still runs. `identify` names this
    installation; without it a database from another installation is used as it is.
    """

    def __init__(
        self,
        data_dir: str,
        busy_timeout: float,
        me: ProcessIdentity,
        is_alive: leases.IsAlive,
        identify: Callable[[], Identity] | None = None,
    ) -> None:
        self._identify = identify
        self._closing = anyio.Event()
        self.data_dir = data_dir
        self.me = me
        self._is_alive = is_alive
        self._busy_timeout = busy_timeout
        self._db = Database(":memory:", busy_timeout)
        self._tasks: TaskGroup | None = None
        self._announce: Callable[[str], None] = lambda state: None
        self.recovered: Callable[[recovery.Recovery | None], None] = lambda found: None
        """Called when a damaged database was replaced while in use; the argument is None when another process
        did it."""
        self.lost: Callable[[Loss, Rescued | None], None] = lambda loss, rescued: None
        """Called when the files of the database were removed or replaced, and again with what was rescued."""
        self.stripped: Stripped | None = None
        """What was removed when this process opened a database of another installation."""
        self._repairing = False
        self._lock: FileLock | None = None
        self._guard: FolderGuard | None = None
        """Stays in place when opening fails: a database that cannot be used may be the user's only copy."""
        self._next_repair = 0.0
        self._repaired: anyio.Event | None = None
        self.index = IndexStore(self._db)

    async def open(self, tasks: TaskGroup, announce: Callable[[str], None]) -> None:
        """Create or migrate the database; replace a damaged one by what can be saved.

        Raises StorageFailed and then changes nothing.
        """
        self._tasks, self._announce = tasks, announce
        # A loop, because the repair may have been another process's, and what it left is checked like any
        # database.
        end = time.monotonic() + REPAIRED_S
        while True:
            try:
                return await self._open()
            except StorageFailed as failure:
                self._unlock()
                if failure.reason != "corrupt" or self._db.in_memory or time.monotonic() > end:
                    raise
            await anyio.to_thread.run_sync(self._repair, self._db.path)

    def _repair(self, path: str) -> recovery.Recovery | None:
        """Replace a damaged database, or wait while another process repairs it and then check it again."""
        try:
            return recovery.recover(
                path, _from_thread(self._announce), timeout_s=ALONE_S, without_log=self._db.without_log
            )
        except file_lock.Repairing:
            file_lock.await_repair(path)
            return None

    async def _open(self) -> None:
        if self.data_dir != ":memory:":
            path = str(opening.prepare_folder(Path(self.data_dir)))
            # Before anything can fail: tools must not open a database that this process could not open either.
            self._guard = self._guard or opening.guard_folder(Path(self.data_dir))
            await anyio.to_thread.run_sync(file_lock.await_file, path)
            # Before the first connection: from here on no process moves the files under us.
            self._lock = await _lock_shared(path)
            if opening.is_unfinished(path):
                await self._resume(path)
            opening.prepare_file(Path(self.data_dir))
            self._db = Database(path, self._busy_timeout)
            self.index = IndexStore(self._db)
        self._db.on_state = self._announce
        self._db.moved = self._handle_moved_files
        self._db.rescue = _rescue
        assert self._tasks is not None
        await self._db.open(self._tasks)
        try:
            await self._db.run_on_writer(partial(opening.refuse_without_tables, self._db.path))
            await self._db.run_on_writer(
                lambda db: migrations.migrate(
                    db, migrations.known_migrations(), self._announce, self._db.path
                )
            )
            if self._identify and not self._db.in_memory:
                await self._db.run_on_writer(partial(self._claim, self._identify))
            await self._db.run_on_writer(opening.mark)
            # Again after the migration: a database that was empty has its id only now.
            await self._db.learn_identity()
        except StorageFailed:
            await self._db.close()
            raise
        self._db.schema_version = migrations.known_migrations()[-1].version
        # Set last: an error while opening is for `open`, which repairs with all files closed.
        self._db.on_damaged = self._start_repair
        if not self._db.in_memory:
            self._tasks.start_soon(self._check_indexes_forever, self._db)
            self._tasks.start_soon(self._yield_to_repairs, self._db)

    async def _yield_to_repairs(self, db: Database) -> None:
        """Close the database while another process repairs it, and reload everything if it was replaced."""
        while db is self._db and not db.is_closing:
            with anyio.move_on_after(YIELD_S):
                await self._closing.wait()
            # Not when the repair is our own: it waits for us to close, and we would wait for it.
            if file_lock.repair_is_wanted(db.path) and not self._repairing:
                with suppress(StorageFailed):
                    await self._apart(lambda: file_lock.await_repair(db.path))

    async def _apart(self, work: Callable[[], recovery.Recovery | None]) -> None:
        """Run `work` while the database is closed and unlocked, and report if the database was replaced
        meanwhile."""
        path, before = self._db.path, _inode(self._db.path)

        def released() -> recovery.Recovery | None:
            # The exclusive lock of a repair would count our own shared lock as another user.
            self._unlock()
            try:
                return work()
            finally:
                # Taken again before anything reconnects, or another process could start to move files in between.
                self._lock = file_lock.lock_shared(path)

        def reload(done: recovery.Recovery | None) -> bool:
            if not done and _inode(path) == before:
                return False
            self.recovered(done)
            return True

        await self._db.run_disconnected(released, reload)

    def _claim(self, identify: Callable[[], Identity], db: Connection) -> None:
        """Remove from a database of another installation what could run or be allowed; save the original
        beside it."""
        me, found = identify(), origin.of(db)
        if found == me.id:
            return
        if self._db.state == "readonly":
            raise StorageFailed(
                "readonly",
                "The database was written by another installation, and what runs without asking cannot be removed"
                " from it; copy it to a writable disk",
                action="check_permissions",
            )
        copies: list[str] = []
        taken = origin.claim(
            db, me.id, adopt=me.is_new, before=lambda: copies.append(_copy_aside(db, self._db.path))
        )
        if copies:
            self.stripped = origin.Stripped(taken or origin.Taken(), copies[0])
        if taken:
            logger.warning(
                "the database is from another installation: what could run or be allowed without asking was removed",
                extra={"taken": taken.lines(), "copy": copies[:1]},
            )

    async def _check_indexes_forever(self, db: Database) -> None:
        """Check from time to time, while nothing is written, that the full-text indexes match their tables."""
        while True:
            with anyio.move_on_after(LOOK_S):
                await self._closing.wait()
            if db is not self._db or db.is_closing:
                return
            quiet = time.monotonic() - db.last_write > QUIET_S
            with suppress(StorageFailed, OSError):
                if quiet and db.size < LOOK_BYTES:
                    await self.check_indexes()

    async def check_indexes(self) -> bool:
        """Return whether the full-text indexes match their tables; rebuild those that do not."""
        found = await self._db.run_on_writer(lambda db: list(integrity.index_problems(db)))
        if found:
            logger.warning("full-text indexes are rebuilt", extra={"error": found[0].message})
            await self._db.write(recovery.renew_indexes)
        return not found

    @property
    def is_writable(self) -> bool:
        """Return whether no known problem prevents writing to the database."""
        return self._db.state == "ready" and self._db.refusal is None

    async def check_space(self) -> None:
        """Raise StorageFailed when too little disk space is left to store the end of what would be started."""
        await self._db.check_space()

    async def await_repair(self) -> bool:
        """Wait for the repair of the damage that was met; False when there is none. Raises StorageFailed when it takes
        too long."""
        return await self._db.await_repair()

    def free_bytes(self) -> int | None:
        """Return the free bytes of the disk; None when they cannot be determined."""
        try:
            found = os.statvfs(self.data_dir)
        except (OSError, AttributeError):
            return None
        return found.f_bavail * found.f_frsize

    async def _resume(self, path: str) -> None:
        """Finish a recovery that was interrupted just before its end."""
        self._unlock()
        await anyio.to_thread.run_sync(recovery.resume_recovery, path, ALONE_S)
        self._lock = await _lock_shared(path)
        if opening.is_unfinished(path):  # an empty database must not replace the unfinished one
            raise file_lock.Repairing()

    def _start_repair(self, error: BaseException) -> anyio.Event | None:
        """Check the database in the background after an error that suggests damage, and repair it."""
        now = time.monotonic()
        if self._tasks and not self._db.in_memory and now >= self._next_repair:
            # Set before the task starts: one broken page fails every statement that reads it, and each
            # failure comes here.
            self._next_repair = now + REPAIR_INTERVAL_S
            self._repaired = anyio.Event()
            self._tasks.start_soon(self._recover)
        return self._repaired

    async def _recover(self) -> None:
        self._repairing = True
        try:
            await self._apart(lambda: self._repair(self._db.path))
        except StorageFailed as failure:
            self._next_repair = time.monotonic() + AGAIN_S
            logger.error("a damaged database cannot be repaired now", extra={"error": failure.message})
        finally:
            self._repairing = False
            # Also after a failure: a prompt that waits for the repair gets the error then, instead of waiting
            # for ever.
            if self._repaired:
                self._repaired.set()

    def _handle_moved_files(self, loss: Loss, rescued: Rescued | None) -> None:
        """Handle removed or replaced database files. The lock file beside them and the folder may be
        different ones now."""
        if rescued and rescued.is_back:
            self._unlock()
            with suppress(StorageFailed):
                self._lock = file_lock.lock_shared(self._db.path, timeout_s=0)
            if self._guard:
                self._guard.release()
            self._guard = FolderGuard(self.data_dir, opening.FILE_NAME)
        self.lost(loss, rescued)
        if rescued and rescued.by_other:
            self.recovered(None)

    def _unlock(self) -> None:
        if self._lock:
            self._lock.release()
            self._lock = None

    def own_files(self) -> set[tuple[int, int]]:
        """Return device and inode of the database's files. No tool may open them, whatever the name or link."""
        return own_files.own_inodes()

    async def close(self) -> None:
        self._closing.set()
        await self._db.close()
        self._unlock()
        if self._guard:
            self._guard.release()


def _copy_aside(db: Connection, path: str) -> str:
    target = recovery.aside_path(path, "elsewhere")
    file_copy.copy(db, target)
    return target


def _inode(path: str) -> int | None:
    try:
        return os.stat(path).st_ino
    except OSError:
        return None


async def _lock_shared(path: str) -> FileLock:
    """Take the shared lock on the database; in a thread when that means waiting."""
    try:
        return file_lock.lock_shared(path, timeout_s=0)
    except StorageFailed:
        return await anyio.to_thread.run_sync(file_lock.lock_shared, path)


def _from_thread(announce: Callable[[str], None]) -> Callable[[str], None]:
    return lambda state: anyio.from_thread.run_sync(announce, state)


def _rescue(path: str, loss: Loss, files: DatabaseFiles, db: Connection) -> Rescued:
    return rescue.rescue(path, loss, files, db)
