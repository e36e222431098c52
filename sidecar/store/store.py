"""The store: whole operations on values, grouped into facets. Every write goes through the single writer of
`Database`."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import anyio.to_thread
import msgspec

from ..model.figures import Statistics
from ..model.mcp_secrets import Secrets
from ..system.lazy import lazy_module
from .engine.sqlite import Connection
from .facets.blobs import Blobs
from .facets.chats import ChatRows
from .facets.chats import Snapshot as Snapshot
from .facets.compactions import Compactions
from .facets.handed import HandedRequests
from .facets.hooks import Hooks
from .facets.instruction_rules import InstructionRules
from .facets.journal import Appended as Appended
from .facets.journal import Journal
from .facets.leases import Leases
from .facets.patches import Patches
from .facets.permission_rules import PermissionRules
from .facets.requests import RequestRows
from .facets.turns import Turns
from .facets.web_pages import WebPages
from .imports import Imports
from .lifecycle import ManagedDatabase
from .retention import Retention
from .tables import (
    mcp_secrets,
    statistics,
    work,
)
from .tables.appending import StaleWrite as StaleWrite
from .tables.snapshots import Snapshots
from .tables.statistics import StatisticsScope
from .tables.turn_cache import TurnCache

if TYPE_CHECKING:
    from .facets import engine_sessions, sent_requests
else:
    engine_sessions = lazy_module("sidecar.store.facets.engine_sessions")
    sent_requests = lazy_module("sidecar.store.facets.sent_requests")


class Store(ManagedDatabase):
    """The durable storage of chats, one facet per group of tables."""

    @property
    def retention(self) -> Retention:
        """Projects, purges, disk usage and how long data is stored."""
        return Retention(self._db, self.me, self._is_alive)

    @property
    def chats(self) -> ChatRows:
        """Chats: find, create, list, search."""
        return ChatRows(self._db, self.me, self._is_alive)

    @property
    def journal(self) -> Journal:
        """Events: append them under a lease, read them by cursor."""
        return Journal(self._db, self.me, self._is_alive)

    @property
    def leases(self) -> Leases:
        """Which process may write to which chat."""
        return Leases(self._db, self.me, self._is_alive)

    @property
    def handed(self) -> HandedRequests:
        """Requests that processes hand to the owner of a chat."""
        return HandedRequests(self._db, self.me, self._is_alive)

    @property
    def turns(self) -> Turns:
        """Turns, their prompts and their branches."""
        return Turns(self._db, self.me, self._is_alive, self._turn_cache)

    @property
    def compactions(self) -> Compactions:
        """Summaries that replace a chat's oldest turns, measured token ratios and saved preferences."""
        return Compactions(self._db, self.me, self._is_alive)

    @property
    def instruction_rules(self) -> InstructionRules:
        """How often and when instruction rules were used."""
        return InstructionRules(self._db, self.me, self._is_alive)

    @property
    def hooks(self) -> Hooks:
        """Which hook runs were recorded, and how often each hook ran."""
        return Hooks(self._db, self.me, self._is_alive)

    @property
    def blobs(self) -> Blobs:
        """Bytes by their hash."""
        return Blobs(self._db, self.me, self._is_alive)

    @property
    def patches(self) -> Patches:
        """The ledger of changed files, open files and checkpoints."""
        return Patches(self._db, self.me, self._is_alive)

    @property
    def requests(self) -> RequestRows:
        """Requests to the user, such as permissions and questions."""
        return RequestRows(self._db, self.me, self._is_alive)

    @property
    def sent_requests(self) -> sent_requests.SentRequests:
        """What the model was sent."""
        return sent_requests.SentRequests(self._db, self.me, self._is_alive)

    @property
    def engine_sessions(self) -> engine_sessions.EngineSessions:
        """The sessions that engines with a history of their own have for chats."""
        return engine_sessions.EngineSessions(self._db, self.me, self._is_alive)

    @property
    def permission_rules(self) -> PermissionRules:
        """Rules that allow, deny or ask."""
        return PermissionRules(self._db, self.me, self._is_alive)

    @property
    def web_pages(self) -> WebPages:
        """The cache of fetched pages."""
        return WebPages(self._db, self.me, self._is_alive)

    @cached_property
    def _turn_cache(self) -> TurnCache:
        return TurnCache()

    @property
    def imports(self) -> Imports:
        """Imports that are in progress or were interrupted."""
        return Imports(self._db, self.me, self._is_alive)

    @property
    def snapshots(self) -> Snapshots:
        """Snapshots of the state of sessions."""
        return Snapshots(self._db)

    async def mcp_secrets(self, chat: int) -> Secrets:
        """Values that the chat's MCP servers need at start and that its configuration does not contain."""
        return await self._db.read(lambda db: mcp_secrets.read(db, chat))

    async def changed_elsewhere(self) -> int:
        return await self._db.changed_elsewhere()

    async def statistics(self, of: StatisticsScope) -> Statistics:
        found = await self._db.read(lambda db: statistics.read_statistics(db, of))
        if of != StatisticsScope() or self._db.in_memory:
            return found
        size = await anyio.to_thread.run_sync(statistics.index_bytes, self._db.path)
        return msgspec.structs.replace(found, index=msgspec.structs.replace(found.index, disk_bytes=size))

    async def tool_call_counts(self, chat: int | None) -> dict[str, int]:
        return await self._db.read(lambda db: work.tool_call_counts(db, chat))

    async def integrity(self) -> list[str]:
        """Return the problems that SQLite's integrity check reports; empty when there are none."""

        def job(db: Connection) -> list[str]:
            rows = [text for (text,) in db.execute("PRAGMA quick_check(20)")]
            return [] if rows == ["ok"] else rows

        return await self._db.read(job)
