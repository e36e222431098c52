"""The facet of permission rules, which allow, deny or ask."""

from __future__ import annotations

from ..tables import (
    work,
)
from ..tables.work import RuleRow
from .base import Facet


class PermissionRules(Facet):
    """Rules that allow, deny or ask."""

    async def of(self, chat: int | None, project: str | None) -> list[RuleRow]:
        return await self._db.read(lambda db: work.rules(db, chat, project))

    async def put(self, rule: RuleRow, chat: int | None, project: str | None) -> None:
        await self._db.write(lambda db: work.put_rule(db, rule, chat, project))

    async def remove(self, id: str) -> bool:
        return await self._db.write(lambda db: work.remove_rule(db, id))
