"""The facet of hooks: their recorded events and run counts."""

from __future__ import annotations

from ..tables import (
    hooks,
)
from .base import Facet


class Hooks(Facet):
    """Recorded events of hooks, and how often each hook ran."""

    async def figures(self) -> dict[str, hooks.HookFigures]:
        return await self._db.read(hooks.figures)

    async def events(self, chat: int, turn: str) -> list[hooks.HookRecord]:
        """Return the hook requests and results since a turn began."""
        return await self._db.read(lambda db: hooks.since(db, chat, turn))
