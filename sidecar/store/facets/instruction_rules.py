"""The facet of instruction rules: how often and when they were used."""

from __future__ import annotations

from collections.abc import Mapping

from ...model.figures import RuleUse
from ..tables import (
    compactions,
)
from .base import Facet


class InstructionRules(Facet):
    """How often and when instruction rules were used."""

    async def figures(self, project: str | None) -> Mapping[str, RuleUse]:
        return await self._db.read(lambda db: compactions.rule_figures(db, project or ""))

    async def put_figures(self, project: str | None, figures: Mapping[str, RuleUse]) -> None:
        await self._db.write(lambda db: compactions.put_rule_figures(db, project or "", figures))
