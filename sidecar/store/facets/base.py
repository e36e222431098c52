"""The base of the facets: the database, and the identity of the process that writes."""

from __future__ import annotations

from ...model.chats import ProcessIdentity
from ..engine.database import Database
from ..tables.leases import IsAlive


class Facet:
    """A part of the store. Created for each use, because a repaired database is a new object."""

    def __init__(self, db: Database, me: ProcessIdentity, is_alive: IsAlive) -> None:
        self._db = db
        self._me = me
        self._is_alive = is_alive
