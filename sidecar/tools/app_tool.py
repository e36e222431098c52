"""A tool that the app offers: the model calls it, the app carries it out."""

from __future__ import annotations

from typing import Any

from ..providers.base import ToolSpec
from .base import Hands, Kind, Need, Outcome, Ready

TIMEOUT_S = 120.0
"""An app may ask its user meanwhile; one that takes longer says so when it offers the tool."""

READING = ("read", "search", "think")
"""Kinds by which an app says that its tool changes nothing."""


class AppTool:
    alone = True

    def __init__(self, spec: ToolSpec, kind: Kind, timeout_ms: int | None) -> None:
        self.spec = spec
        self.kind = kind
        self._timeout_s = timeout_ms / 1000 if timeout_ms else TIMEOUT_S

    def title(self, input: dict[str, Any]) -> str:
        return self.spec.name

    async def prepare(self, input: dict[str, Any], hands: Hands) -> Ready:
        async def run() -> Outcome:
            return await hands.call_app(self.spec.name, input, self._timeout_s)

        return Ready(Need("app-tool", self.spec.name, reads_only=self.kind in READING), run)
