"""`index_path`: store files in the index so that they can be searched without reading them into the context window."""

from __future__ import annotations

from ...providers.base import ToolSpec
from ...text.plural import counted
from ..base import Intent, PlannedCall, ToolContext, ToolInput, ToolKind, ToolOutcome

MAX_NAMED = 10
"""Files that the result names; the rest is counted."""


class IndexPath:
    kind: ToolKind = "search"
    runs_alone = False
    spec = ToolSpec(
        "index_path",
        "Index a file or folder of the project for search_context, without reading it here.",
        {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    )

    def title(self, input: ToolInput) -> str:
        return f"Index {input.get('path', '')}"

    async def prepare(self, input: ToolInput, context: ToolContext) -> PlannedCall:
        path = context.workspace.resolve(input.text("path")).shown
        library = context.library

        async def run() -> ToolOutcome:
            kept, skipped = await library.add_path(path)
            tokens, lines = sum(source.tokens for source in kept), sum(source.lines for source in kept)
            head = f"{counted(len(kept), 'files')} can be searched: {counted(lines, 'lines')}, about {tokens:,} tokens."
            named = [f"{source.id} {source.label}" for source in kept[:MAX_NAMED]]
            left = [f"left out: {name} ({reason})" for name, reason in skipped[:MAX_NAMED]]
            more = [f"… {len(skipped) - MAX_NAMED} more left out"] if len(skipped) > MAX_NAMED else []
            return ToolOutcome("\n".join([head, *named, *left, *more]), failed=not kept and bool(skipped))

        return PlannedCall(Intent("read", path), run)
