"""The facet of requests to the user, such as permissions and questions."""

from __future__ import annotations

from ...model.chats import Chat
from ..engine.sqlite import Connection
from ..tables import (
    chats,
    work,
)
from ..tables.work import RequestRecord
from .base import Facet


class RequestRows(Facet):
    """Requests to the user, such as permissions and questions."""

    async def find(self, id: str) -> tuple[RequestRecord, Chat] | None:
        """Return a request to the user, and its chat."""

        def job(db: Connection) -> tuple[RequestRecord, Chat] | None:
            found = work.request(db, id)
            return (found, chats.get(db, found.chat)) if found else None

        return await self._db.read(job)
