"""A tool that the app offers: the model calls it, the app runs it."""

from __future__ import annotations

from ...providers.base import ToolSpec
from ..base import Intent, PlannedCall, ToolContext, ToolInput, ToolKind, ToolOutcome

TIMEOUT_S = 120.0
"""Seconds: the app may ask its user meanwhile; it can set a longer time when it offers the tool."""

READ_ONLY_KINDS = ("read", "search", "think")
"""Kinds with which an app says that its tool changes nothing."""


class AppTool:
    runs_alone = True

    def __init__(self, spec: ToolSpec, kind: ToolKind, timeout_ms: int | None) -> None:
        self.spec = spec
        self.kind = kind
        self._timeout_s = timeout_ms / 1000 if timeout_ms else TIMEOUT_S

    def title(self, input: ToolInput) -> str:
        return self.spec.name

    async def prepare(self, input: ToolInput, context: ToolContext) -> PlannedCall:
        async def run() -> ToolOutcome:
            return await context.call_app(self.spec.name, input.values, self._timeout_s)

        return PlannedCall(Intent("app-tool", self.spec.name, reads_only=self.kind in READ_ONLY_KINDS), run)
