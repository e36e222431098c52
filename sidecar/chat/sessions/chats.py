"""All chats of this process: finds the session for a key, and does what concerns more than one chat."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import anyio
import msgspec

from ...model import JsonObject
from ...model.chats import Chat, ChatKey, ChatQuery, EffectiveConfig, Lease, LeaseOwner, MessageHit, OwnConfig
from ...model.failures import Failure, Refused, StorageFailed, invalid_param
from ...model.figures import PurgeCounts, Statistics
from ...model.limits import MAX_QUERY_BYTES, check_text
from ...providers.registry import ProviderRegistry
from ...store.purge import Marked
from ...store.store import Snapshot, Store
from ...store.tables.leases import LeaseHeld
from ...store.tables.statistics import StatisticsScope
from ...store.tables.turns import TurnPage
from ..journal import identity, project_identity
from ..journal.identity import ChatAddress
from ..journal.project_identity import ProjectIdentity
from ..services.services import ChatServices
from . import config
from .crash_closure import Closure
from .session import Session

logger = logging.getLogger(__name__)


class OpenedChat(msgspec.Struct, frozen=True):
    """A session, whether it was created by this call, and what crash closure ended."""

    session: Session
    created: bool
    closed: Closure | None


class ChatView(msgspec.Struct, frozen=True):
    """The state of a chat as `chat/open` returns it. `holder` is the lease of another process that writes to it."""

    snapshot: Snapshot
    holder: Lease | None


class LockedChat(msgspec.Struct, frozen=True):
    """A chat that was not purged because another process writes to it."""

    chat: Chat
    held: LeaseHeld

    @property
    def owner(self) -> LeaseOwner:
        """The process that writes to it."""
        return msgspec.convert(self.held.facts["owner"], LeaseOwner)


class Chats:
    """The sessions of this process. `default_chat` is used when a request names no chat id."""

    def __init__(
        self,
        services: ChatServices,
        default_chat: str | None,
        after_turn: Callable[[Session], Awaitable[None]],
    ) -> None:
        self.services = services
        self._after_turn = after_turn
        self._default_chat = default_chat
        self._sessions: dict[str, Session] = {}
        self._locks: dict[str, anyio.Lock] = {}
        self.project_identity = ProjectIdentity(services.store)

    @property
    def store(self) -> Store:
        return self.services.store

    @property
    def providers(self) -> ProviderRegistry:
        return self.services.providers

    def defaults(self, project: str | None) -> EffectiveConfig:
        """The default configuration of a chat in a project."""
        return self.services.defaults(project)

    def checked_config(self, changes: JsonObject) -> OwnConfig:
        """Validate changes of a chat's configuration; raises with the name of a wrong key."""
        engines = self.services.engines.names if changes.get("engine") is not None else ()
        checked = config.checked_changes(changes, engines, self.services.own_folders)
        model = checked.get("model")
        if model is not None and (problem := self.providers.name_problem(model)):
            raise invalid_param("set.model", problem)
        return checked

    @property
    def sessions(self) -> list[Session]:
        return list(self._sessions.values())

    @asynccontextmanager
    async def _lock_session(self, session_id: str) -> AsyncIterator[None]:
        """Load, close or purge a chat alone. Other chats go on: one may take long to close or to remove."""
        lock = self._locks.setdefault(session_id, anyio.Lock())
        try:
            async with lock:
                yield
        finally:
            # Removed only when nobody holds it or waits: a later caller would otherwise make a second lock for
            # the same chat.
            waiting = lock.statistics()
            if not waiting.locked and not waiting.tasks_waiting:
                self._locks.pop(session_id, None)

    def key(self, address: ChatAddress) -> ChatKey | str:
        return identity.resolve(address, self._default_chat)

    def chat_id(self, session_id: str) -> str | None:
        """The app's id of the chat with this session, if it is open here."""
        session = self._sessions.get(session_id)
        return session.chat.key.chat_id if session else None

    async def open(
        self, address: ChatAddress, *, create: bool, changes: JsonObject | None = None
    ) -> OpenedChat:
        """Resume the chat's session, or create one when there is none; a deleted chat is created again."""
        key = self.key(address)
        own: OwnConfig = self.checked_config(changes) if changes else {}
        project = self.project(address)
        async with self._lock_session(_session_id(key)):
            session, created = await self._load(key, create, create, project)
            closed = await self._close_crash(session)
        # After the lock: the change takes the session's own lock, and may wait for another process.
        await self._configure(session, own, project)
        session.warm()
        return OpenedChat(session, created, closed)

    async def session_for_prompt(self, address: ChatAddress) -> Session:
        """The session that a prompt goes to. A missing chat is created; a deleted one is refused.

        Once the chat is known here, the commit of the prompt detects turns that a dead owner left open.
        """
        project = self.project(address)
        key = self.key(address)
        async with self._lock_session(_session_id(key)):
            new_here = _session_id(key) not in self._sessions
            session, _ = await self._load(key, create=True, revive=False, project=project)
            if new_here:
                await self._close_crash(session)
        await self._configure(session, {}, project)
        return session

    async def _configure(self, session: Session, own: OwnConfig, project: str | None) -> None:
        if project:
            self.services.tasks.start_soon(self.project_identity.note, project)
        if own or (project and project != session.chat.project_path):
            await session.configure(own, project)

    async def existing_session(self, address: ChatAddress) -> Session:
        """The session of a chat that exists; takes no lease and closes nothing."""
        key = self.key(address)
        async with self._lock_session(_session_id(key)):
            session, _ = await self._load(key, create=False, revive=False, project=None)
            return session

    def has_default(self, address: ChatAddress) -> bool:
        """Whether a default chat is used for an address without a chat id."""
        return self._default_chat is not None and address.project_path is None

    def project(self, address: ChatAddress) -> str | None:
        """The project that an address names."""
        if address.project_path is None:
            return None
        project = identity.real_project_path(address.project_path)
        project_identity.refuse_own_folder("projectPath", project, self.services.own_folders)
        return project

    async def find(self, address: ChatAddress) -> Chat | None:
        """The chat's row, deleted or not, without opening it."""
        key = self.key(address)
        return await self.store.chats.find(_session_id(key))

    async def view(self, session: Session, turns: int, max_bytes: int) -> ChatView:
        """The current state of the chat."""
        snapshot = await self.store.chats.snapshot(session.chat.id, turns, max_bytes)
        held = self.store.leases.other_holder(snapshot.lease) is not None
        if not session.holds_lease and not session.recorder.busy:
            session.adopt(snapshot)
        session.holder = snapshot.lease if held else None
        return ChatView(snapshot, session.holder)

    async def delete(self, address: ChatAddress, detach: Callable[[str], object]) -> tuple[str, bool]:
        """Purge a chat; False when there was none. `detach` ends the caller's attachment; others get `chat.deleted`."""
        key = self.key(address)
        session_id = _session_id(key)
        row = await self.store.chats.find(session_id)
        if row is None or row.deleted:
            return session_id, False
        _, left = await self.purge([row.id], detach)
        if left:
            raise left[0].held
        await self.store.retention.shrink_files()
        return session_id, True

    async def purge(
        self, ids: Sequence[int], detach: Callable[[str], object] | None = None
    ) -> tuple[PurgeCounts, list[LockedChat]]:
        """Purge these chats, and return those that stay because another process writes to them. Turns that run in
        them here are ended first. Followers get `chat.deleted`, except those that `detach` removes.

        All are marked as deleted first; then their rows are removed in slices, and other chats go on meanwhile.
        """
        marked, left = list[Marked](), list[LockedChat]()
        for id in ids:
            row = await self.store.chats.get(id)
            if row.deleted:
                continue
            async with self._lock_session(row.key.session_id):
                done, held = await self._mark(row, detach)
            marked += done
            left += held
        return await self.store.retention.remove_marked(marked), left

    async def _mark(
        self, row: Chat, detach: Callable[[str], object] | None
    ) -> tuple[list[Marked], list[LockedChat]]:
        session_id = row.key.session_id
        session = self._sessions.get(session_id)
        if session and session.chat.id == row.id:
            # Before the rows are marked: the end of the turn is still an event of this chat.
            await session.end_for_deletion()
        done = await self.store.retention.mark_chats([row.id])
        if done.left:
            return [], [LockedChat(row, held) for held in done.left.values()]
        if session and session.chat.id == row.id:
            if detach:
                detach(session_id)
            self.forget(session_id)
        return done.marked, []

    def is_replaced(self, chat: Chat) -> bool:
        """Whether the session that is known here is older than this chat, which was deleted and created again."""
        session = self._sessions.get(chat.key.session_id)
        return session is not None and session.chat.epoch != chat.epoch

    def forget(self, session_id: str) -> None:
        """Drop the session of a purged chat and notify its followers."""
        session = self._sessions.pop(session_id, None)
        if session:
            session.mark_deleted()

    def reset(self) -> None:
        """End all turns and drop all sessions, because the database was replaced. Opening a chat reads it again."""
        sessions, self._sessions = self.sessions, {}
        for session in sessions:
            session.is_outdated = True
            if session.turn:
                session.turn.cancel("interrupted")
            session.run_in_background(session.turn_runner.close_engine)

    async def archive(self, address: ChatAddress, archived: bool) -> Session:
        session = await self.existing_session(address)
        await self.store.chats.archive(session.chat.id, archived)
        session.chat = msgspec.structs.replace(session.chat, archived=archived)
        return session

    async def history(
        self,
        session: Session,
        *,
        before: str | None,
        after: str | None,
        around: str | None,
        limit: int,
        max_bytes: int,
    ) -> tuple[Chat, TurnPage]:
        return await self.store.turns.page(
            session.chat.id, before=before, after=after, around=around, limit=limit, max_bytes=max_bytes
        )

    async def page(self, page: ChatQuery) -> tuple[list[Chat], str | None]:
        _check_query(page.query)
        return await self.store.chats.page(await _with_project_ids(page))

    async def search(self, page: ChatQuery) -> tuple[list[MessageHit], str | None]:
        _check_query(page.query)
        return await self.store.chats.search(await _with_project_ids(page))

    async def statistics(self, scope: str, address: ChatAddress) -> Statistics:
        if scope == "chat":
            return await self.store.statistics(
                StatisticsScope(chat=(await self.existing_session(address)).chat.id)
            )
        if scope == "all":
            return await self.store.statistics(StatisticsScope())
        if address.project_path is None:
            raise Refused(
                "invalid_params", "`projectPath` is needed for scope project", params={"field": "projectPath"}
            )
        paths = await self.store.retention.paths(await project_identity.find_project(address.project_path))
        return await self.store.statistics(StatisticsScope(paths=tuple(paths)))

    async def interrupt_all(self) -> None:
        """End every turn as interrupted, because the process exits."""

        async def interrupt(session: Session) -> None:
            try:
                await session.interrupt()
            except Failure as failure:
                # A full disk, or settings that cannot be read: the chat's next owner closes it.
                logger.error("a chat was not closed", extra={"error": failure.message})

        async with anyio.create_task_group() as tasks:
            for session in self.sessions:
                tasks.start_soon(interrupt, session)

    async def _load(
        self, key: ChatKey | str, create: bool, revive: bool, project: str | None
    ) -> tuple[Session, bool]:
        session_id = _session_id(key)
        session = self._sessions.get(session_id)
        if session and session.holds_lease:
            return session, False
        row, created = await self.store.chats.find(session_id), False
        if session and row and row.epoch == session.chat.epoch and not row.deleted:
            return session, False
        # Its followers hold a cursor of the other epoch, and get `chat.deleted`.
        self.forget(session_id)  # another process purged it, and may have created it again
        if row is not None and row.id in await self.store.imports.cut_off():
            await self.store.imports.remove(row.id)
            row = None
        if row is not None and row.deleted and not (create and revive):
            raise identity.chat_deleted(session_id)
        if row is None or row.deleted:
            if not create or (isinstance(key, str) and row is None):
                raise identity.chat_not_found(session_id)
            made = row.key if isinstance(key, str) and row else key
            assert isinstance(made, ChatKey)
            row, created = await self.store.chats.create(made, project, {})
        snapshot = await self.store.chats.snapshot(row.id, 0, 0)
        session = self._sessions[session_id] = Session(
            self.services, snapshot.chat, snapshot.queue, self._after_turn
        )
        return session, created

    async def _close_crash(self, session: Session) -> Closure | None:
        """End what a dead owner left open; do nothing when the owner is alive."""
        if session.holds_lease or session.turn:
            return None
        snapshot = await self.store.chats.snapshot(session.chat.id, 0, 0)
        lease = snapshot.lease
        if lease is None or lease.owner is None or lease.owner.instance == self.store.me.instance:
            return None
        if self.store.leases.other_holder(lease):
            return None
        async with session.lock:
            try:
                closed = await session.close_crash()
            except LeaseHeld:  # another process was faster, and closes it
                return None
            except (
                StorageFailed
            ) as failure:  # a process that can write closes it; until then it is read as it is
                logger.warning("an unfinished turn could not be closed", extra={"error": failure.message})
                return None
        return closed if closed.turns else None


def _session_id(key: ChatKey | str) -> str:
    return key if isinstance(key, str) else key.session_id


def _check_query(query: str | None) -> None:
    check_text("query", query or "", MAX_QUERY_BYTES, "Search for fewer words")


async def _with_project_ids(page: ChatQuery) -> ChatQuery:
    """The query with all ids of the project, so that it finds chats under every spelling of its path."""
    if page.project_path is None:
        return page
    project = await project_identity.find_project(page.project_path)
    return msgspec.structs.replace(page, project_path=project.path, project_ids=project.ids)
