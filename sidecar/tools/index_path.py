"""`index_path`: keeps a file or a folder's files so that they can be searched without being read into the window."""

from __future__ import annotations

from typing import Any

from ..providers.base import ToolSpec
from .base import Hands, Kind, Need, Outcome, Ready, text

MAX_NAMED = 10
"""Files that the answer names; the rest is counted."""


class IndexPath:
    kind: Kind = "search"
    alone = False
    spec = ToolSpec(
        "index_path",
        "Index a file or folder of the project for search_context, without reading it here.",
        {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    )

    def title(self, input: dict[str, Any]) -> str:
        return f"Index {input.get('path', '')}"

    async def prepare(self, input: dict[str, Any], hands: Hands) -> Ready:
        path = hands.workspace.resolve(text(input, "path")).shown
        library = hands.library

        async def run() -> Outcome:
            kept, skipped = await library.add_path(path)
            tokens, lines = sum(source.tokens for source in kept), sum(source.lines for source in kept)
            head = f"{len(kept)} files can be searched: {lines} lines, about {tokens} tokens."
            named = [f"{source.id} {source.label}" for source in kept[:MAX_NAMED]]
            left = [f"left out: {name} ({reason})" for name, reason in skipped[:MAX_NAMED]]
            more = [f"… {len(skipped) - MAX_NAMED} more left out"] if len(skipped) > MAX_NAMED else []
            return Outcome("\n".join([head, *named, *left, *more]), failed=not kept and bool(skipped))

        return Ready(Need("read", path), run)
