"""All chats of this process: from a key to its session, and what concerns more than one of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import anyio
import msgspec

from ..model.chats import Chat, ChatKey, Hit, Lease, Page
from ..model.failures import Refused, StorageFailed
from ..model.figures import Removed, Statistics
from ..store.leases import LeaseHeld
from ..store.statistics import Of
from ..store.store import Snapshot, Store
from ..store.turns import TurnPage
from . import attribution, config, identity
from .attribution import Attribution
from .closure import Closure
from .desk import Workshop
from .identity import Address
from .leased import Surroundings
from .session import Session

logger = logging.getLogger(__name__)


class Opened(msgspec.Struct, frozen=True):
    """A session, whether it was made now, and what crash closure ended."""

    session: Session
    created: bool
    closed: Closure | None


class View(msgspec.Struct, frozen=True):
    """What opening a chat shows. `holder` is the lease of another process that writes to it."""

    snapshot: Snapshot
    holder: Lease | None


class Left(msgspec.Struct, frozen=True):
    """A chat that was not purged because another process writes to it."""

    chat: Chat
    held: LeaseHeld


class Chats:
    """`default_chat` stands in for a chat id that a request leaves out."""

    def __init__(self, around: Surroundings, default_chat: str | None) -> None:
        self._around = around
        self._default_chat = default_chat
        self._sessions: dict[str, Session] = {}
        self._loading = anyio.Lock()
        self.attribution = Attribution(around.store)

    @property
    def store(self) -> Store:
        return self._around.store

    @property
    def workshop(self) -> Workshop:
        return self._around.workshop

    def defaults(self, project: str | None) -> dict[str, Any]:
        """What a chat's configuration in a project starts from."""
        return self._around.defaults(project)

    @property
    def sessions(self) -> list[Session]:
        return list(self._sessions.values())

    def key(self, address: Address) -> ChatKey | str:
        return identity.resolve(address, self._default_chat)

    def chat_id(self, session_id: str) -> str | None:
        """What the app calls the chat of this session, if it is open here."""
        session = self._sessions.get(session_id)
        return session.chat.key.chat_id if session else None

    async def open(self, address: Address, *, create: bool, changes: dict[str, Any] | None = None) -> Opened:
        """Resume the chat's session, or create one only when there is none; a deleted chat is made again."""
        key = self.key(address)
        own = config.checked(changes) if changes else {}
        project = self.project(address)
        async with self._loading:
            session, created = await self._load(key, create, create, project)
            closed = await self._close_crash(session)
        await self._configure(session, own, project)
        session.warm()
        return Opened(session, created, closed)

    async def for_prompt(self, address: Address) -> Session:
        """The session that a prompt goes to; a missing chat is created, a deleted one is refused.

        Once the chat is known here, what a dead owner leaves open is noticed when the prompt is committed.
        """
        project = self.project(address)
        async with self._loading:
            key = self.key(address)
            new_here = (key if isinstance(key, str) else key.session_id) not in self._sessions
            session, _ = await self._load(key, create=True, revive=False, project=project)
            if new_here:
                await self._close_crash(session)
        await self._configure(session, {}, project)
        return session

    async def _configure(self, session: Session, own: dict[str, Any], project: str | None) -> None:
        if project:
            self._around.tasks.start_soon(self.attribution.note, project)
        if own or (project and project != session.chat.project_path):
            await session.configure(own, project)

    async def known(self, address: Address) -> Session:
        """The session of a chat that exists; takes no lease and ends nothing."""
        async with self._loading:
            session, _ = await self._load(self.key(address), create=False, revive=False, project=None)
            return session

    def has_default(self, address: Address) -> bool:
        """Whether a chat stands in for the one that an address leaves out."""
        return self._default_chat is not None and address.project_path is None

    def project(self, address: Address) -> str | None:
        """The project that an address names."""
        return identity.real_project(address.project_path) if address.project_path is not None else None

    async def find(self, address: Address) -> Chat | None:
        """The chat's row, deleted or not, without opening it."""
        key = self.key(address)
        return await self.store.find(key if isinstance(key, str) else key.session_id)

    async def view(self, session: Session, turns: int, max_bytes: int) -> View:
        """The chat as of now."""
        snapshot = await self.store.snapshot(session.chat.id, turns, max_bytes)
        held = self.store.other_holder(snapshot.lease) is not None
        if not session.holds_lease and not session.recorder.busy:
            session.adopt(snapshot)
        return View(snapshot, snapshot.lease if held else None)

    async def delete(self, address: Address, detach: Callable[[str], object]) -> tuple[str, bool]:
        """Purge a chat; False when there was none. `detach` takes leave of who asked; other readers are told."""
        key = self.key(address)
        session_id = key if isinstance(key, str) else key.session_id
        row = await self.store.find(session_id)
        if row is None or row.deleted:
            return session_id, False
        _, left = await self.purge([row.id], detach)
        if left:
            raise left[0].held
        await self.store.custody.give_back()
        return session_id, True

    async def purge(
        self, ids: Sequence[int], detach: Callable[[str], object] | None = None
    ) -> tuple[Removed, list[Left]]:
        """Purge these chats, and say which were left because another process writes to them. What runs in them here
        is ended first; whoever follows one is told, but for those whom `detach` takes leave of."""
        async with self._loading:
            here = {session.chat.id: session for session in self.sessions}
            for id in ids:
                if id in here:
                    await here[id].end_for_deletion()
            purged = await self.store.custody.purge_chats(ids)
            for id in ids:
                if id in here and id not in purged.left:
                    session_id = here[id].chat.key.session_id
                    if detach:
                        detach(session_id)
                    self.forget(session_id)
            left = [Left(await self.store.chat(id), held) for id, held in purged.left.items()]
            return purged.removed, left

    def replaced(self, chat: Chat) -> bool:
        """Whether the session that is known here is of an earlier life of this chat."""
        session = self._sessions.get(chat.key.session_id)
        return session is not None and session.chat.epoch != chat.epoch

    def forget(self, session_id: str) -> None:
        """The chat is gone: whoever follows it is told."""
        session = self._sessions.pop(session_id, None)
        if session:
            session.gone()

    def start_over(self) -> None:
        """The database was made anew beneath the chats: turns end, and each is read again when it is opened."""
        sessions, self._sessions = self.sessions, {}
        for session in sessions:
            if session.turn:
                session.turn.cancel("interrupted")

    async def archive(self, address: Address, archived: bool) -> Session:
        session = await self.known(address)
        await self.store.archive(session.chat.id, archived)
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
        return await self.store.history(
            session.chat.id, before=before, after=after, around=around, limit=limit, max_bytes=max_bytes
        )

    async def page(self, page: Page) -> tuple[list[Chat], str | None]:
        return await self.store.page(await _attributed(page))

    async def search(self, page: Page) -> tuple[list[Hit], str | None]:
        return await self.store.search(await _attributed(page))

    async def statistics(self, scope: str, address: Address) -> Statistics:
        if scope == "chat":
            return await self.store.statistics(Of(chat=(await self.known(address)).chat.id))
        if scope == "all":
            return await self.store.statistics(Of())
        if address.project_path is None:
            raise Refused(
                "invalid_params", "`projectPath` is needed for scope project", params={"field": "projectPath"}
            )
        paths = await self.store.custody.paths(await attribution.found(address.project_path))
        return await self.store.statistics(Of(paths=tuple(paths)))

    async def interrupt_all(self) -> None:
        """The sidecar leaves: every turn ends as interrupted."""

        async def interrupt(session: Session) -> None:
            try:
                await session.interrupt()
            except StorageFailed as failure:  # the chat's next owner closes what is left open
                logger.error("a chat is left open", extra={"error": failure.message})

        async with anyio.create_task_group() as tasks:
            for session in self.sessions:
                tasks.start_soon(interrupt, session)

    async def _load(
        self, key: ChatKey | str, create: bool, revive: bool, project: str | None
    ) -> tuple[Session, bool]:
        session_id = key if isinstance(key, str) else key.session_id
        session = self._sessions.get(session_id)
        if session and session.holds_lease:
            return session, False
        row, created = await self.store.find(session_id), False
        if session and row and row.epoch == session.chat.epoch and not row.deleted:
            return session, False
        self.forget(session_id)  # another process has purged it, and may have made it again
        if row is not None and row.deleted and not (create and revive):
            raise identity.deleted(session_id)
        if row is None or row.deleted:
            if not create or (isinstance(key, str) and row is None):
                raise identity.not_found(session_id)
            made = row.key if isinstance(key, str) and row else key
            assert isinstance(made, ChatKey)
            row, created = await self.store.create(made, project, {})
        snapshot = await self.store.snapshot(row.id, 0, 0)
        session = self._sessions[session_id] = Session(self._around, snapshot.chat, snapshot.queue)
        return session, created

    async def _close_crash(self, session: Session) -> Closure | None:
        """End what a dead owner left open; a live owner's chat is left alone."""
        if session.holds_lease or session.turn:
            return None
        snapshot = await self.store.snapshot(session.chat.id, 0, 0)
        lease = snapshot.lease
        if lease is None or lease.owner is None or lease.owner.instance == self.store.me.instance:
            return None
        if self.store.other_holder(lease):
            return None
        async with session.lock:
            try:
                closed = await session.close_crash()
            except LeaseHeld:  # another heir was faster, and closes it
                return None
            except StorageFailed as failure:  # whoever can write closes it; until then it is read as it is
                logger.warning("a turn is left open", extra={"error": failure.message})
                return None
        return closed if closed.turns else None


async def _attributed(page: Page) -> Page:
    """The page of a project's chats, however the project's path is spelled."""
    if page.project_path is None:
        return page
    project = await attribution.found(page.project_path)
    return msgspec.structs.replace(page, project_path=project.path, project_ids=project.ids)
