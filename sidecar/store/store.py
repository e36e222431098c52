"""The store's door: whole operations on values. Everything that writes goes through the one writer of `Database`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import anyio.to_thread
import msgspec

from ..model.chats import Chat, ChatKey, Hit, Lease, Page, ProcessIdentity, Prompt, PromptRecord
from ..model.content import Item, Turn
from ..model.events import NewEvent, StoredEvent
from ..model.failures import Refused
from ..model.figures import Statistics
from ..model.pages import Page as WebPage
from ..model.pages import PageFigures
from ..model.recall import Pool, Terms
from . import (
    blobs,
    chats,
    compactions,
    hooks,
    journal,
    leases,
    pages,
    recall,
    recoveries,
    statistics,
    turns,
    work,
)
from .appending import Stale as Stale
from .appending import append
from .blobs import BlobInfo
from .compactions import Compaction
from .custody import Custody
from .kept import KeptDatabase
from .recent import Recent
from .recoveries import Salvage
from .snapshots import Snapshots
from .sqlite import Connection
from .statistics import Of
from .turns import Node, TurnPage
from .work import Checkpoint, LedgerEntry, RequestRecord, RuleRow


class Appended(msgspec.Struct, frozen=True):
    """What a commit made of the events, and the lease under which it wrote."""

    generation: int
    events: list[StoredEvent]


class Snapshot(msgspec.Struct, frozen=True):
    """A chat as of one moment: its row, who may write, its newest turns, its queue, what waits for a person, and
    what was saved of it from a damaged database when that is news."""

    chat: Chat
    lease: Lease | None
    page: TurnPage
    queue: list[Prompt]
    pending: list[RequestRecord]
    salvage: Salvage | None = None


class Store(KeptDatabase):
    """What can be asked of the store."""

    @property
    def custody(self) -> Custody:
        """What is kept, whose it is and for how long."""
        return Custody(self._db, self.me, self._is_alive)

    @cached_property
    def _recent(self) -> Recent:
        return Recent()

    @property
    def snapshots(self) -> Snapshots:
        """What sessions had come to."""
        return Snapshots(self._db)

    async def find(self, session_id: str) -> Chat | None:
        return await self._db.read(lambda db: chats.find(db, session_id))

    async def create(
        self, key: ChatKey, project_path: str | None, config: dict[str, Any]
    ) -> tuple[Chat, bool]:
        """The chat of this key, and whether it was made now."""

        def job(db: Connection) -> tuple[Chat, bool]:
            found = chats.find(db, key.session_id)
            if found and not found.deleted:
                return found, False
            return chats.create(db, key, project_path, config, _now()), True

        return await self._db.write(job)

    async def create_with(
        self, key: ChatKey, project_path: str | None, config: dict[str, Any], events: Sequence[NewEvent]
    ) -> Chat:
        """A new chat with events that are in it from the start; Refused (already_exists) when there is one."""

        def job(db: Connection) -> Chat:
            found = chats.find(db, key.session_id)
            if found and not found.deleted:
                raise Refused(
                    "already_exists",
                    f"There is a chat {key.value[:80]!r} already",
                    params={"field": "newChatId", "sessionId": key.session_id},
                )
            made = chats.create(db, key, project_path, config, _now())
            append(db, made.id, 0, events, _now())
            return chats.get(db, made.id)

        return await self._db.write(job)

    async def archive(self, chat: int, archived: bool) -> None:
        await self._db.write(lambda db: chats.archive(db, chat, archived))

    async def page(self, page: Page) -> tuple[list[Chat], str | None]:
        return await self._db.read(lambda db: chats.page(db, page))

    async def search(self, page: Page) -> tuple[list[Hit], str | None]:
        return await self._db.read(lambda db: chats.search(db, page))

    async def changed_since(self, revision: int) -> list[Chat]:
        return await self._db.read(lambda db: chats.changed_since(db, revision))

    async def revision(self) -> int:
        return await self._db.read(chats.revision)

    async def changed_elsewhere(self) -> int:
        return await self._db.changed_elsewhere()

    async def statistics(self, of: Of) -> Statistics:
        found = await self._db.read(lambda db: statistics.read(db, of))
        if of != Of() or self._db.in_memory:
            return found
        size = await anyio.to_thread.run_sync(statistics.index_bytes, self._db.path)
        return msgspec.structs.replace(found, index=msgspec.structs.replace(found.index, disk_bytes=size))

    async def chat(self, id: int) -> Chat:
        return await self._db.read(lambda db: chats.get(db, id))

    async def append(
        self,
        chat: int,
        last_seq: int,
        generation: int | None,
        events: Sequence[NewEvent],
        *,
        client: str = "",
        release: bool = False,
        last: bool = False,
    ) -> Appended:
        """Append events after `last_seq` under the lease, taking it first when `generation` is None.

        `last` is for events that end something: a full disk has a reserve for them.
        Raises LeaseHeld, LeaseLost, Unclosed (crash closure comes first), Stale (the chat has moved on) or Refused
        (deleted); then nothing was written.
        """

        def job(db: Connection) -> Appended:
            held = generation
            if held is None:
                held = leases.take_clean(db, chat, self.me, client, _monotonic(), self._is_alive)
            else:
                leases.check(db, chat, held, self.me)
            stored = append(db, chat, last_seq, events, _now())
            if release:
                leases.release(db, chat, held)
            return Appended(held, stored)

        return await self._db.write(job, last=last)

    async def take_lease(self, chat: int, client: str) -> int:
        """Own the chat, whatever its last owner left open: who takes it so must close that."""
        return await self._db.write(
            lambda db: leases.take(db, chat, self.me, client, _monotonic(), self._is_alive)
        )

    async def release_lease(self, chat: int, generation: int) -> None:
        await self._db.write(lambda db: leases.release(db, chat, generation), last=True)

    async def renew_leases(self) -> None:
        await self._db.write(lambda db: leases.renew(db, self.me, _monotonic()), last=True)

    async def held_leases(self) -> dict[int, int]:
        """The chats that this process may write to, with the generation of each lease."""
        query = "SELECT chat, generation FROM leases WHERE instance = ?"
        return await self._db.read(lambda db: dict(db.execute(query, (self.me.instance,)).fetchall()))

    async def announce_closing(self) -> None:
        await self._db.write(lambda db: leases.announce_closing(db, self.me), last=True)

    async def release_leases(self) -> None:
        await self._db.write(lambda db: leases.release_all(db, self.me), last=True)

    def other_holder(self, lease: Lease | None) -> ProcessIdentity | None:
        """The other live process that holds this lease."""
        return leases.holder(lease, self.me, _monotonic(), self._is_alive)

    async def events_after(self, chat: int, seq: int, limit: int, max_bytes: int) -> list[StoredEvent]:
        return await self._db.read(lambda db: journal.read_after(db, chat, seq, limit, max_bytes))

    async def read_events(
        self, chat: int, epoch: str, seq: int, limit: int, max_bytes: int
    ) -> tuple[Chat, list[StoredEvent]]:
        """As `events_after`, for a cursor that may be of another epoch or ahead: then Refused (cursor_expired)."""

        def job(db: Connection) -> tuple[Chat, list[StoredEvent]]:
            found = chats.get(db, chat)
            journal.check_cursor(seq, found.last_seq, found.epoch, epoch)
            return found, journal.read_after(db, chat, seq, limit, max_bytes)

        return await self._db.read(job)

    async def last_seqs(self, ids: Sequence[int]) -> dict[int, int]:
        """How far these chats' journals reach."""
        marks = ", ".join("?" * len(ids))
        query = f"SELECT id, last_seq FROM chats WHERE id IN ({marks}) AND deleted = 0"
        return await self._db.read(lambda db: dict(db.execute(query, tuple(ids)).fetchall()))

    async def snapshot(self, chat: int, turn_limit: int, max_bytes: int) -> Snapshot:
        """Everything that opening a chat shows, as of one moment."""

        def job(db: Connection) -> Snapshot:
            page = turns.newest(db, chat, turn_limit, max_bytes)
            return Snapshot(
                chats.get(db, chat),
                leases.read(db, chat),
                page,
                turns.queue(db, chat),
                work.pending(db, chat),
                recoveries.told(db, chat),
            )

        return await self._db.read(job)

    async def history(
        self,
        chat: int,
        *,
        before: str | None = None,
        after: str | None = None,
        around: str | None = None,
        limit: int,
        max_bytes: int,
    ) -> tuple[Chat, TurnPage]:
        """A page of visible turns: around a turn, after a cursor, or before one (by default the newest)."""

        def job(db: Connection) -> tuple[Chat, TurnPage]:
            if around is not None:
                page = turns.around(db, chat, around, limit, max_bytes)
            elif after is not None:
                page = turns.after(db, chat, after, limit, max_bytes)
            else:
                page = turns.before(db, chat, before, limit, max_bytes)
            return chats.get(db, chat), page

        return await self._db.read(job)

    async def recent_turns(
        self, chat: int, before: str | None, floor: int, limit: int, max_bytes: int
    ) -> tuple[TurnPage, dict[str, str]]:
        """The newest visible turns before the cursor and behind an ordinal, with the texts of what was sent along."""

        def job(db: Connection) -> tuple[TurnPage, dict[str, str]]:
            page = self._recent.before(db, chat, before, limit, max_bytes, floor)
            refs = [kept.ref for turn in page.turns for kept in turn.context if kept.ref]
            return page, blobs.texts(db, refs)

        return await self._db.read(job)

    async def texts(self, refs: Sequence[str]) -> dict[str, str]:
        """Kept texts, by their blobs; those that are gone are left out."""
        return await self._db.read(lambda db: blobs.texts(db, refs)) if refs else {}

    async def recall(self, chat: int, terms: Terms) -> Pool:
        """What of a chat's past has to do with these words."""
        return await self._db.read(lambda db: recall.search(db, chat, terms))

    async def compaction(self, chat: int) -> Compaction | None:
        return await self._db.read(lambda db: compactions.current(db, chat))

    async def compaction_was_undone(self, chat: int) -> bool:
        return await self._db.read(lambda db: compactions.was_undone(db, chat))

    async def calibration(self, model: str) -> float:
        return await self._db.read(lambda db: compactions.calibration(db, model))

    async def put_calibration(self, model: str, factor: float) -> None:
        await self._db.write(lambda db: compactions.put_calibration(db, model, factor))

    async def standing(self, chat: int) -> list[str]:
        return await self._db.read(lambda db: compactions.standing(db, chat))

    async def rule_figures(self, project: str | None) -> dict[str, Any]:
        return await self._db.read(lambda db: compactions.rule_figures(db, project or ""))

    async def put_rule_figures(self, project: str | None, figures: dict[str, Any]) -> None:
        await self._db.write(lambda db: compactions.put_rule_figures(db, project or "", figures))

    async def hook_figures(self) -> dict[str, hooks.HookFigures]:
        return await self._db.read(hooks.figures)

    async def hook_events(self, chat: int, turn: str) -> list[tuple[str, dict[str, Any]]]:
        """What hooks were asked and have answered since a turn began."""
        return await self._db.read(lambda db: hooks.since(db, chat, turn))

    async def all_turns(self, chat: int) -> tuple[Chat, list[Turn]]:
        return await self._db.read(lambda db: (chats.get(db, chat), turns.everything(db, chat)))

    async def turn(self, chat: int, turn: str) -> Turn | None:
        return await self._db.read(lambda db: turns.get(db, chat, turn))

    async def turn_end(self, chat: int, turn: str) -> int | None:
        """The seq of the event that ended a turn."""
        query = "SELECT last_seq FROM turns WHERE chat = ? AND id = ?"
        return await self._db.read(lambda db: (db.execute(query, (chat, turn)).fetchone() or (None,))[0])

    async def running_turn(self, chat: int) -> Turn | None:
        return await self._db.read(lambda db: turns.running(db, chat))

    async def tree(self, chat: int) -> list[Node]:
        return await self._db.read(lambda db: turns.tree(db, chat))

    async def visible_from(self, chat: int, turn: str) -> list[str]:
        return await self._db.read(lambda db: turns.visible_from(db, chat, turn))

    async def prompt(self, chat: int, id: str) -> PromptRecord | None:
        return await self._db.read(lambda db: turns.prompt(db, chat, id))

    async def put_blob(self, data: bytes, mime_type: str, name: str | None) -> BlobInfo:
        return await self._db.write(lambda db: blobs.put(db, data, mime_type, name, _now()))

    async def put_blobs(self, all_data: Sequence[bytes], mime_type: str) -> list[BlobInfo]:
        """Keep several in one commit."""
        now = _now()
        return await self._db.write(
            lambda db: [blobs.put(db, data, mime_type, None, now) for data in all_data]
        )

    async def blob_info(self, id: str) -> BlobInfo:
        return await self._db.read(lambda db: blobs.info(db, id))

    async def read_blob(self, id: str, offset: int, length: int) -> tuple[BlobInfo, bytes]:
        return await self._db.read(lambda db: blobs.read(db, id, offset, length))

    async def item_of_source(self, chat: int, source: str) -> Item | None:
        """The tool call of this chat whose output the index knew by this name."""
        return await self._db.read(lambda db: turns.item_of_source(db, chat, source))

    async def patches(self, chat: int) -> list[LedgerEntry]:
        return await self._db.read(lambda db: work.patches(db, chat))

    async def open_files_at(self, chat: int, seq: int) -> list[dict[str, Any]]:
        return await self._db.read(lambda db: work.open_files_at(db, chat, seq))

    async def request(self, id: str) -> tuple[RequestRecord, Chat] | None:
        """What was asked of a person, and in which chat."""

        def job(db: Connection) -> tuple[RequestRecord, Chat] | None:
            found = work.request(db, id)
            return (found, chats.get(db, found.chat)) if found else None

        return await self._db.read(job)

    async def rules(self, chat: int | None, project: str | None) -> list[RuleRow]:
        return await self._db.read(lambda db: work.rules(db, chat, project))

    async def put_rule(self, rule: RuleRow, chat: int | None, project: str | None) -> None:
        await self._db.write(lambda db: work.put_rule(db, rule, chat, project))

    async def remove_rule(self, id: str) -> bool:
        return await self._db.write(lambda db: work.remove_rule(db, id))

    async def checkpoints(self, chat: int) -> list[Checkpoint]:
        return await self._db.read(lambda db: work.checkpoints(db, chat))

    async def tool_uses(self, chat: int | None) -> dict[str, int]:
        return await self._db.read(lambda db: work.tool_uses(db, chat))

    async def web_page(self, key: str) -> WebPage | None:
        return await self._db.read(lambda db: pages.find(db, key))

    async def count_web_page(self, outcome: pages.Outcome, key: str) -> None:
        await self._db.write(lambda db: pages.count(db, outcome, key, _now()))

    async def put_web_page(self, key: str, page: WebPage, max_bytes: int) -> None:
        await self._db.write(lambda db: pages.put(db, key, page, max_bytes, _now()))

    async def remove_web_page(self, key: str) -> None:
        await self._db.write(lambda db: pages.remove(db, key))

    async def clear_web_pages(self) -> int:
        """Empty the cache of fetched pages, its figures included; how many there were."""
        return await self._db.write(pages.clear)

    async def web_figures(self) -> PageFigures:
        """What the cache of fetched pages holds, and how it served."""
        return await self._db.read(pages.figures)

    async def integrity(self) -> list[str]:
        """What SQLite itself finds wrong; empty when nothing is."""

        def job(db: Connection) -> list[str]:
            rows = [text for (text,) in db.execute("PRAGMA quick_check(20)")]
            return [] if rows == ["ok"] else rows

        return await self._db.read(job)


def _now() -> int:
    return time.time_ns() // 1_000_000


def _monotonic() -> int:
    return time.monotonic_ns() // 1_000_000
