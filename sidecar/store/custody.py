"""What is kept, whose it is and for how long: projects, purges, room on the disk. A part of the store's door."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress

import anyio.to_thread
import msgspec

from ..model.chats import Chat, ProcessIdentity
from ..model.figures import Removed
from . import blobs, chats, leases, projects, purge, rebinding
from .database import Database
from .index import SCRUB_S, IndexStore
from .projects import Project
from .rebinding import Move, Rebound
from .sqlite import Connection

OLD_SHAPES = (".schema-",)
"""Copies that were made before the database got a newer shape. What they hold is in the database too, if it is not
purged."""

DAMAGED = (".damaged-",)
"""Databases that were put aside: what could not be saved of them is nowhere else, so they go with everything alone."""

TOGETHER = 20
"""Chats that are purged in one transaction: a commit each would take long, and all at once would hold up turns."""


class Purged(msgspec.Struct, frozen=True):
    """What was removed, and which chats were left because another process writes to them."""

    removed: Removed
    left: dict[int, leases.LeaseHeld]


class Custody:
    """`me` is this process; `is_alive` tells whether the owner of a lease still runs."""

    def __init__(self, db: Database, me: ProcessIdentity, is_alive: leases.IsAlive) -> None:
        self._db = db
        self._me = me
        self._is_alive = is_alive

    async def note(self, project: Project) -> None:
        """A chat works in this project."""
        await self._db.write(lambda db: projects.note(db, project, _now()))

    async def trust(self, project: Project, trusted: bool) -> list[str]:
        """Trust a project or stop it; every spelling of its path that is known."""

        def job(db: Connection) -> list[str]:
            projects.trust(db, project, trusted, _now())
            return projects.paths(db, project)

        return await self._db.write(job)

    async def trusted(self) -> set[str]:
        return await self._db.read(projects.trusted)

    async def paths(self, project: Project) -> list[str]:
        return await self._db.read(lambda db: projects.paths(db, project))

    async def is_known(self, project: Project) -> bool:
        """Whether anything was ever kept for this project."""
        return await self._db.read(lambda db: projects.is_known(db, project))

    async def chats_at(self, paths: Sequence[str], *, abandoned: bool = False) -> list[Chat]:
        """The chats of a project; only those that a process which is gone left open."""

        def job(db: Connection) -> list[Chat]:
            found = [chats.get(db, id) for id in purge.chats_of(db, paths)]
            return [chat for chat in found if not abandoned or self._is_abandoned(db, chat.id)]

        return await self._db.read(job)

    async def rebind(self, old: Sequence[str], new: Project, moves: Sequence[Move], *, gone: bool) -> Rebound:
        """Let what belongs to the old paths belong to the new one; LeaseHeld, Unclosed or Stale: nothing was done."""

        def job(db: Connection) -> Rebound:
            taken = []
            for move in moves:
                lease = leases.read(db, move.chat.id)
                mine = (
                    lease is not None
                    and lease.owner is not None
                    and lease.owner.instance == self._me.instance
                )
                args = (db, move.chat.id, self._me, "", _monotonic(), self._is_alive)
                generation = leases.take_clean(*args)
                taken += [] if mine else [(move.chat.id, generation)]
            rebound = rebinding.rebind(db, old, new, moves, gone=gone, now=_now())
            for chat, generation in taken:
                leases.release(db, chat, generation)
            return rebound

        return await self._db.write(job)

    async def chat_ids(self, paths: Sequence[str] | None) -> list[int]:
        """The chats of a project, or all."""
        return await self._db.read(lambda db: purge.chats_of(db, paths))

    async def idle_since(self, ts: int) -> list[int]:
        """The chats in which nothing has happened since then."""
        query = "SELECT id FROM chats WHERE deleted = 0 AND last_activity < ?"
        return await self._db.read(lambda db: [id for (id,) in db.execute(query, (ts,))])

    async def count(self, ids: Sequence[int], paths: Sequence[str] | None, *, rest: bool) -> Removed:
        """What a purge of these chats, and with `rest` of their project or all, would remove."""

        def job(db: Connection) -> Removed:
            total = purge.count_rest(db, paths) if rest else Removed()
            for id in ids:
                total = total.plus(purge.count_chat(db, id))
            return total

        return await self._db.read(job)

    async def purge_chats(self, ids: Sequence[int]) -> Purged:
        """Purge the chats that no other process writes to."""
        total, left = Removed(), dict[int, leases.LeaseHeld]()
        for start in range(0, len(ids), TOGETHER):
            some = ids[start : start + TOGETHER]
            done = await self._db.write(lambda db, some=some: self._purge(db, some))  # type: ignore[misc]
            total, left = total.plus(done.removed), left | done.left
        if total.chats:
            total = total.plus(Removed(copies=await self._forget_copies(OLD_SHAPES)))
        return Purged(total, left)

    async def purge_rest(self, paths: Sequence[str] | None) -> Removed:
        """Purge what a project, or everybody, has beside the chats; with everything, damaged databases go too."""
        removed = await self._db.write(lambda db: purge.purge_rest(db, paths))
        copies = await self._forget_copies(OLD_SHAPES if paths is not None else OLD_SHAPES + DAMAGED)
        return removed.plus(Removed(copies=copies))

    async def give_back(self) -> tuple[int, int]:
        """Make the files smaller by what is free in them: their bytes before and after.

        What stays in the write-ahead log because another process reads it leaves with a later checkpoint.
        """
        before = self.size()
        await IndexStore(self._db).scrub(SCRUB_S)
        if await self._db.exclusively(purge.gives_back):
            while await self._db.exclusively(purge.give_back):
                pass
        elif await self._db.exclusively(purge.free_pages):
            await self._db.exclusively(purge.rewrite)
        await self._db.exclusively(_checkpoint)
        return before, self.size()

    async def sweep_blobs(self) -> int:
        """Remove blobs that were put and never named; how many."""
        forgotten = await self._db.read(lambda db: blobs.forgotten(db, _now()))
        return await self._db.write(lambda db: blobs.sweep(db, _now())) if forgotten else 0

    def size(self) -> int:
        """Bytes of the database's files."""
        total = 0
        for suffix in ("", "-wal"):
            with suppress(OSError):
                total += os.stat(self._db.path + suffix).st_size
        return total

    async def _forget_copies(self, kinds: Sequence[str]) -> int:
        """Remove copies of the database that lie beside it, and hold what was purged from it; how many."""
        if self._db.in_memory:
            return 0
        return await anyio.to_thread.run_sync(_remove_copies, self._db.path, tuple(kinds))

    def _is_abandoned(self, db: Connection, chat: int) -> bool:
        lease = leases.read(db, chat)
        owned = lease is not None and lease.owner is not None and lease.owner.instance != self._me.instance
        return owned and leases.holder(lease, self._me, _monotonic(), self._is_alive) is None

    def _purge(self, db: Connection, ids: Sequence[int]) -> Purged:
        total, left = Removed(), dict[int, leases.LeaseHeld]()
        for chat in ids:
            try:
                generation = leases.take(db, chat, self._me, "", _monotonic(), self._is_alive)
            except leases.LeaseHeld as held:
                left[chat] = held
                continue
            total = total.plus(purge.purge_chat(db, chat, _now()))
            leases.release(db, chat, generation)
        return Purged(total, left)


def _remove_copies(path: str, kinds: tuple[str, ...]) -> int:
    folder, name = os.path.split(path)
    removed = 0
    with suppress(OSError), os.scandir(folder) as found:
        for entry in found:
            # Not following links: what is no plain file here was not made by us.
            if entry.name.startswith(tuple(name + kind for kind in kinds)) and entry.is_file(
                follow_symlinks=False
            ):
                with suppress(OSError):
                    os.unlink(entry.path)
                    removed += 1
    return removed


def _checkpoint(db: Connection) -> None:
    """Empty the write-ahead log into the database, so that what was purged leaves it too, if nobody reads it."""
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _now() -> int:
    return time.time_ns() // 1_000_000


def _monotonic() -> int:
    return time.monotonic_ns() // 1_000_000
