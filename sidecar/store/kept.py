"""A database and its files, from opening to closing: held against those who would move them, brought up to date, and
replaced by what can be saved when they are damaged. Knows no table.
"""

from __future__ import annotations

import logging
import os
import random
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.from_thread
import anyio.to_thread
from anyio.abc import TaskGroup

from ..model.chats import ProcessIdentity
from ..model.failures import StorageFailed
from . import holding, leases, opening
from .database import Database
from .holding import Hold
from .index import IndexStore

if TYPE_CHECKING:
    from .recovery import Recovery

logger = logging.getLogger(__name__)

LOW_DISK_BYTES = 200 * 1024 * 1024
"""Below this a long chat with attachments may soon not be kept."""

LOOK_S, QUIET_S = 900.0, 60.0
"""How often the full-text indexes are looked at, and how long nobody must have written."""

LOOK_BYTES = 64 * 1024 * 1024
"""A larger database is not looked through beside its users, for it would hold a writer up by more than a second;
`sidecar verify` does it when it is asked to."""

HELD_S = 5.0
"""How long one who found the database damaged waits for others to let go of it or to have repaired it."""

SUSPECT_S = 60.0
"""How soon a database that turned out sound, or that another process holds, is looked through again."""


class KeptDatabase:
    """`me` is this process; `is_alive` tells whether the owner of a lease still runs."""

    def __init__(
        self, data_dir: str, busy_timeout: float, me: ProcessIdentity, is_alive: leases.IsAlive
    ) -> None:
        self._over = anyio.Event()
        self.data_dir = data_dir
        self.me = me
        self._is_alive = is_alive
        self._busy_timeout = busy_timeout
        self._db = Database(":memory:", busy_timeout)
        self._tasks: TaskGroup | None = None
        self._announce: Callable[[str], None] = lambda state: None
        self.recovered: Callable[[Recovery], None] = lambda recovery: None
        """Is told when a damaged database was replaced while it was in use."""
        self._hold: Hold | None = None
        self._next_look = 0.0
        self._looked: anyio.Event | None = None
        self.index = IndexStore(self._db)

    async def open(self, tasks: TaskGroup, announce: Callable[[str], None]) -> None:
        """Make or migrate the database; a damaged one is replaced by what can be saved of it.

        Raises StorageFailed and leaves everything as it was.
        """
        self._tasks, self._announce = tasks, announce
        end = time.monotonic() + HELD_S
        while True:
            try:
                return await self._open()
            except StorageFailed as failure:
                self._let_go()
                if failure.reason != "corrupt" or self._db.in_memory or time.monotonic() > end:
                    raise
            await self._repair(end)

    async def _repair(self, end: float) -> None:
        """Replace a damaged database, unless another who found the damage too is faster: then it is looked at again."""
        from . import recovery

        try:
            await anyio.to_thread.run_sync(recovery.recover, self._db.path, _from_thread(self._announce))
        except holding.Held:
            if time.monotonic() > end:
                raise
            await anyio.sleep(random.uniform(0.05, 0.3))

    async def _open(self) -> None:
        if self.data_dir != ":memory:":
            path = str(opening.prepare_folder(Path(self.data_dir)))
            self._hold = await _share(path)
            if opening.is_unfinished(path):
                await self._resume(path)
            opening.prepare_file(Path(self.data_dir))
            self._db = Database(path, self._busy_timeout)
            self.index = IndexStore(self._db)
        self._db.tell = self._announce
        assert self._tasks is not None
        await self._db.open(self._tasks)
        try:
            await self._db.exclusively(
                lambda db: opening.migrate(db, opening.known_migrations(), self._announce, self._db.path)
            )
        except StorageFailed:
            await self._db.close()
            raise
        self._db.shape = opening.known_migrations()[-1].version
        self._db.damaged = self._suspect
        if not self._db.in_memory:
            self._tasks.start_soon(self._look_after, self._db)

    async def _look_after(self, db: Database) -> None:
        """Now and then, when nobody writes: are the full-text indexes in step with what they stand for?"""
        while True:
            with anyio.move_on_after(LOOK_S):
                await self._over.wait()
            if db is not self._db or db.is_closing:
                return
            quiet = time.monotonic() - db.last_write > QUIET_S
            with suppress(StorageFailed, OSError):
                if quiet and db.size < LOOK_BYTES:
                    await self.check_indexes()

    async def check_indexes(self) -> bool:
        """Whether the full-text indexes are in step; those that are not are made anew."""
        from . import recovery, verifying

        found = await self._db.exclusively(lambda db: list(verifying.index_problems(db)))
        if found:
            logger.warning("full-text indexes are made anew", extra={"error": found[0].message})
            await self._db.write(recovery.renew_indexes)
        return not found

    @property
    def is_writable(self) -> bool:
        """Whether nothing is known that keeps the database from being written."""
        return self._db.state == "ready"

    def free_bytes(self) -> int | None:
        """How much the disk has left; None when that cannot be told."""
        try:
            found = os.statvfs(self.data_dir)
        except (OSError, AttributeError):
            return None
        return found.f_bavail * found.f_frsize

    async def _resume(self, path: str) -> None:
        """A recovery was cut just before its end."""
        from . import recovery

        self._let_go()
        recovery.resume(path)
        self._hold = await _share(path)

    def _suspect(self, error: BaseException) -> anyio.Event | None:
        """Something contradicts itself: find out what, beside everything else, and repair it."""
        now = time.monotonic()
        if self._tasks and not self._db.in_memory and now >= self._next_look:
            self._next_look = now + SUSPECT_S
            self._looked = anyio.Event()
            self._tasks.start_soon(self._recover)
        return self._looked

    async def _recover(self) -> None:
        from . import recovery

        path = self._db.path

        def work() -> recovery.Recovery | None:
            self._let_go()
            try:
                return recovery.recover(path, _from_thread(self._announce))
            finally:
                self._hold = holding.share(path)

        try:
            done = await self._db.apart(work)
        except StorageFailed as failure:
            logger.error("a damaged database cannot be repaired now", extra={"error": failure.message})
        else:
            if done:
                self.recovered(done)
        finally:
            if self._looked:
                self._looked.set()

    def _let_go(self) -> None:
        if self._hold:
            self._hold.release()
            self._hold = None

    def own_files(self) -> set[tuple[int, int]]:
        """Device and inode of the database's files, which no tool may open, by whatever name or link."""
        found: set[tuple[int, int]] = set()
        for suffix in ("", "-wal", "-shm", "-journal"):
            with suppress(OSError):
                status = os.stat(self._db.path + suffix)
                found.add((status.st_dev, status.st_ino))
        return found

    async def close(self) -> None:
        self._over.set()
        await self._db.close()
        self._let_go()


async def _share(path: str) -> Hold:
    """Hold the database; in a thread when that takes waiting."""
    try:
        return holding.share(path, patience=0)
    except StorageFailed:
        return await anyio.to_thread.run_sync(holding.share, path)


def _from_thread(announce: Callable[[str], None]) -> Callable[[str], None]:
    return lambda state: anyio.from_thread.run_sync(announce, state)
