"""Projects, purges and disk usage: what is stored, which project it belongs to and for how long."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import anyio
import anyio.to_thread
import msgspec

from ..model.chats import Chat, ProcessIdentity
from ..model.figures import PurgeCounts
from ..system import clock
from . import project_move, purge
from .engine.database import Database
from .engine.slices import PAUSE_S, Pace, write_slices
from .engine.sqlite import Connection
from .index import SCRUB_S, IndexStore
from .project_move import ChatMove, RebindCounts
from .tables import blobs, chats, leases, projects
from .tables.projects import StoredProject

SCHEMA_BACKUPS = (".schema-",)
"""Copies made before a migration. Their content is also in the database, unless it was purged there."""

DAMAGED_COPIES = (".damaged-",)
"""Damaged databases that were moved aside. What could not be saved exists only there, so only a purge of
everything deletes them."""

FREE_PAGES = 256
"""Pages first released per step, 1 MiB; the next step has as many as a short transaction allows."""

TRUNCATE_TRIES = 20
"""How often the log is truncated when a reader prevents it: nobody can write while SQLite waits for readers."""


class MarkedChats(msgspec.Struct, frozen=True):
    """Chats that are marked as deleted, and those that were skipped because another process writes to them."""

    marked: list[purge.Marked]
    left: dict[int, leases.LeaseHeld]


class Retention:
    """Operations on projects and stored data.

    `me` is this process; `is_alive` says whether the owner of a lease still runs.
    """

    def __init__(self, db: Database, me: ProcessIdentity, is_alive: leases.IsAlive) -> None:
        self._db = db
        self._me = me
        self._is_alive = is_alive

    async def note(self, project: StoredProject) -> None:
        """Record that a chat works in this project."""
        await self._db.write(lambda db: projects.register(db, project, clock.now()))

    async def trust(
        self, project: StoredProject, trusted: bool, files: projects.TrustedFiles | None = None
    ) -> list[str]:
        """Trust a project or stop trusting it; return every known spelling of its path."""

        def job(db: Connection) -> list[str]:
            projects.trust(db, project, trusted, clock.now(), files)
            return projects.paths(db, project)

        return await self._db.write(job)

    async def trusted_projects(self) -> dict[str, projects.TrustedFiles | None]:
        return await self._db.read(projects.trusted_projects)

    async def bind(self, path: str, files: projects.TrustedFiles) -> None:
        await self._db.write(lambda db: projects.bind_trust(db, path, files))

    async def paths(self, project: StoredProject) -> list[str]:
        return await self._db.read(lambda db: projects.paths(db, project))

    async def all_paths(self) -> list[str]:
        """Return the folders of all projects that were ever opened."""
        return await self._db.read(projects.all_paths)

    async def writable_folders(self) -> list[str]:
        """Return the folders that commands of some chat may write to."""
        return await self._db.read(projects.writable_folders)

    async def is_known(self, project: StoredProject) -> bool:
        """Return whether anything was ever stored for this project."""
        return await self._db.read(lambda db: projects.is_known(db, project))

    async def chats_at(self, paths: Sequence[str], *, abandoned: bool = False) -> list[Chat]:
        """Return the chats of a project; with `abandoned` only those that a process left open when it ended."""

        def job(db: Connection) -> list[Chat]:
            found = [chats.get(db, id) for id in purge.chats_of(db, paths)]
            return [chat for chat in found if not abandoned or self._is_abandoned(db, chat.id)]

        return await self._db.read(job)

    async def rebind(
        self, old: Sequence[str], new: StoredProject, moves: Sequence[ChatMove], *, gone: bool
    ) -> RebindCounts:
        """Assign everything of the old paths to the new one. LeaseHeld, UnclosedChat and StaleWrite mean that nothing
        was changed."""

        def job(db: Connection) -> RebindCounts:
            taken = []
            for move in moves:
                lease = leases.read(db, move.chat.id)
                mine = (
                    lease is not None
                    and lease.owner is not None
                    and lease.owner.instance == self._me.instance
                )
                args = (db, move.chat.id, self._me, "", clock.monotonic_ms(), self._is_alive)
                # All leases in the same transaction as the move: either every chat moves, or a chat in use stops all
                # of it.
                generation = leases.acquire_released(*args)
                taken += [] if mine else [(move.chat.id, generation)]
            rebound = project_move.rebind(db, old, new, moves, gone=gone, now=clock.now())
            for chat, generation in taken:
                leases.release(db, chat, generation)
            return rebound

        return await self._db.write(job)

    async def chat_ids(self, paths: Sequence[str] | None) -> list[int]:
        """Return the chats of a project, or all chats."""
        return await self._db.read(lambda db: purge.chats_of(db, paths))

    async def idle_since(self, ts: int, named: tuple[str, str] | None = None) -> list[int]:
        """Return the chats without activity since then: all, or those of a namespace whose ids begin so."""
        query = "SELECT id FROM chats WHERE deleted = 0 AND last_activity < ?"
        values: list[int | str] = [ts]
        if named:
            namespace, prefix = named
            query += " AND namespace = ? AND substr(key, 1, ?) = ?"
            values += [namespace, len(prefix), prefix]
        return await self._db.read(lambda db: [id for (id,) in db.execute(query, values)])

    async def count(self, ids: Sequence[int], paths: Sequence[str] | None, *, rest: bool) -> PurgeCounts:
        """Count what a purge of these chats would remove; `rest` adds the other data of their project, or of
        all."""

        def job(db: Connection) -> PurgeCounts:
            total = purge.count_rest(db, paths) if rest else PurgeCounts()
            for id in ids:
                total = total.plus(purge.count_chat(db, id))
            return total

        return await self._db.read(job, long=True)

    async def mark_chats(self, ids: Sequence[int]) -> MarkedChats:
        """Mark the chats that no other process writes to as deleted; `remove_marked` removes their rows."""
        marked, left = list[purge.Marked](), dict[int, leases.LeaseHeld]()
        for chat in ids:
            # Before the mark: which pages a chat has read is known by its texts in the index, which the mark
            # hides.
            pages = await write_slices(self._db, partial(self._remove_pages, chat))
            try:
                done = await self._db.write(partial(self._mark, chat))
            except leases.LeaseHeld as held:
                left[chat] = held
                continue
            if done:
                removed = done.removed
                for counts in pages:
                    removed = removed.plus(counts)
                marked.append(msgspec.structs.replace(done, removed=removed))
        return MarkedChats(marked, left)

    async def remove_marked(self, marked: Sequence[purge.Marked]) -> PurgeCounts:
        """Remove the rows of marked chats in slices; return everything that was removed of them."""
        if not marked:
            return PurgeCounts()
        total = await purge.finish(self._db, [(one.chat, one.epoch) for one in marked])
        for one in marked:
            total = total.plus(one.removed)
        await IndexStore(self._db).remove_marked()
        return total.plus(PurgeCounts(copies=await self._delete_copies(SCHEMA_BACKUPS)))

    async def resume_removal(self) -> int:
        """Finish removals of a process that has ended: rows of marked chats, marked texts, deleted words. Return how
        many chats."""
        found = await self._db.read(purge.find_unfinished)
        await purge.finish(self._db, found)
        await IndexStore(self._db).remove_marked()
        await IndexStore(self._db).scrub(None)
        return len(found)

    async def purge_rest(self, paths: Sequence[str] | None) -> PurgeCounts:
        """Purge what a project (or, without paths, everything) has stored besides chats. A purge of
        everything also deletes damaged databases."""
        removed = PurgeCounts() if paths is not None else await purge.remove_caches(self._db)
        removed = removed.plus(await self._db.write(lambda db: purge.purge_rest(db, paths)))
        await IndexStore(self._db).remove_marked()
        copies = await self._delete_copies(
            SCHEMA_BACKUPS if paths is not None else SCHEMA_BACKUPS + DAMAGED_COPIES
        )
        return removed.plus(PurgeCounts(copies=copies))

    async def shrink_files(self) -> tuple[int, int]:
        """Shrink the files by their free pages; return their bytes before and after.

        Data that stays in the write-ahead log because another process reads it is removed by a later
        checkpoint.
        """
        before = self.size()
        # First: merging the full-text tables frees pages, and old words stay readable in the file until then.
        await IndexStore(self._db).scrub(SCRUB_S)
        if await self._db.run_on_writer(purge.can_release_pages):
            await self._release_pages()
        elif await self._db.run_on_writer(purge.free_pages):
            await self._db.run_on_writer(purge.rewrite)
        await self._truncate_log()
        return before, self.size()

    async def _release_pages(self) -> None:
        pace = Pace(FREE_PAGES // 8, 8 * FREE_PAGES)
        while True:
            pace.begin()
            if not await self._db.run_on_writer(lambda db: purge.release_pages(db, pace.most)):
                return
            await pace.rest()

    async def _truncate_log(self) -> None:
        """Move the write-ahead log into the database, so that purged data disappears from it too, unless another
        process reads it for long."""
        for _ in range(TRUNCATE_TRIES):
            # Without truncation first, while others write: then little is left for the step during which nobody
            # can.
            await self._db.checkpoint()
            if await self._db.run_on_writer(_truncate):
                return
            await anyio.sleep(PAUSE_S)

    async def sweep_blobs(self) -> int:
        """Remove blobs that no event refers to; return how many."""
        now = clock.now()
        forgotten = await self._db.read(lambda db: blobs.has_unused(db, now))
        return await purge.remove_unused_blobs(self._db, now - blobs.UNUSED_MS) if forgotten else 0

    def size(self) -> int:
        """Return the bytes of the database's files."""
        total = 0
        for suffix in ("", "-wal"):
            with suppress(OSError):
                total += os.stat(self._db.path + suffix).st_size
        return total

    async def _delete_copies(self, kinds: Sequence[str]) -> int:
        """Delete copies of the database that are beside it and contain what was purged; return how many."""
        if self._db.in_memory:
            return 0
        return await anyio.to_thread.run_sync(_remove_copies, self._db.path, tuple(kinds))

    def _is_abandoned(self, db: Connection, chat: int) -> bool:
        lease = leases.read(db, chat)
        owned = lease is not None and lease.owner is not None and lease.owner.instance != self._me.instance
        return owned and leases.other_holder(lease, self._me, clock.monotonic_ms(), self._is_alive) is None

    def _remove_pages(self, chat: int, db: Connection, most: int) -> PurgeCounts | None:
        if leases.other_holder(leases.read(db, chat), self._me, clock.monotonic_ms(), self._is_alive):
            return None
        return purge.remove_pages_of(db, chat, most)

    def _mark(self, chat: int, db: Connection) -> purge.Marked | None:
        generation = leases.acquire(db, chat, self._me, "", clock.monotonic_ms(), self._is_alive)
        marked = purge.mark(db, chat, clock.now())
        leases.release(db, chat, generation)
        return marked


def _remove_copies(path: str, kinds: tuple[str, ...]) -> int:
    folder, name = os.path.split(path)
    removed = 0
    with suppress(OSError), os.scandir(folder) as found:
        for entry in found:
            # Links are not followed: anything but a regular file was not created by this program.
            if entry.name.startswith(tuple(name + kind for kind in kinds)) and entry.is_file(
                follow_symlinks=False
            ):
                with suppress(OSError):
                    os.unlink(entry.path)
                    removed += 1
    return removed


def _truncate(db: Connection) -> bool:
    """Truncate the log if nobody reads it; return whether that was done."""
    (patience,) = db.execute("PRAGMA busy_timeout").fetchone()
    # SQLite would wait here for readers with the write lock held, and every writer with it.
    db.execute("PRAGMA busy_timeout = 0")
    try:
        busy, *_ = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        db.execute(f"PRAGMA busy_timeout = {patience}")
    return not busy
