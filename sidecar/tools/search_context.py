"""`search_context`: finds places in what was kept out of the window, by their words."""

from __future__ import annotations

from typing import Any, get_args

from ..model.figures import Measured
from ..model.index import Results, SourceKind
from ..providers.base import ToolSpec
from .base import Hands, Kind, Need, Outcome, Ready, Wrong, number, text

MAX_QUERIES = 8
MAX_HITS = 20
MAX_TOKENS = 4000
"""Of one answer: a model that needs more reads the source itself."""

DEFAULT_TOKENS = 1200

HEAD_TOKENS = 16
"""What the line before a hit takes."""

KINDS = get_args(SourceKind)


class SearchContext:
    kind: Kind = "search"
    alone = False
    spec = ToolSpec(
        "search_context",
        "Search earlier tool outputs, indexed files and fetched pages by words"
        ' (also "a phrase", OR, -not, prefix*).',
        {
            "type": "object",
            "properties": {
                "queries": {"type": "array", "items": {"type": "string"}, "minItems": 1},
                "source": {"type": "string", "description": "Only this out:… id or exact name."},
                "scope": {"type": "string", "enum": ["chat", "project"], "description": "Default chat."},
                "limit": {"type": "integer", "description": "Hits a query, default 5."},
                "max_tokens": {"type": "integer", "description": f"Default {DEFAULT_TOKENS}."},
            },
            "required": ["queries"],
        },
    )

    def title(self, input: dict[str, Any]) -> str:
        queries = input.get("queries")
        return f"Look up {', '.join(map(str, queries)) if isinstance(queries, list) else ''}".strip()

    async def prepare(self, input: dict[str, Any], hands: Hands) -> Ready:
        queries = wanted(input.get("queries"))
        scope = text(input, "scope", "chat")
        if scope not in ("chat", "project"):
            raise Wrong("`scope` must be chat or project.")
        source = text(input, "source") if input.get("source") is not None else None
        limit = min(number(input, "limit", 5), MAX_HITS)
        tokens = min(number(input, "max_tokens", DEFAULT_TOKENS, low=50), MAX_TOKENS)
        library = hands.library

        async def run() -> Outcome:
            found = await library.search(
                queries,
                scope="project" if scope == "project" else "chat",
                source=source,
                limit=limit,
                max_tokens=max(50, tokens - HEAD_TOKENS * limit * len(queries)),
            )
            measured = Measured(returned=sum(one.tokens for one in found), searches=len(queries))
            return Outcome(spelled(queries, found), shown=True, measured=measured)

        return Ready(Need("read", "."), run)


def wanted(queries: object) -> list[str]:
    """The queries of a call; models also send one as plain text."""
    listed = [queries] if isinstance(queries, str) else queries
    if not isinstance(listed, list) or not 1 <= len(listed) <= MAX_QUERIES:
        raise Wrong(f"`queries` must be a list of 1 to {MAX_QUERIES} texts.")
    if not all(isinstance(query, str) and query.strip() for query in listed):
        raise Wrong("Each of `queries` must be text.")
    return listed


def spelled(queries: list[str], found: list[Results]) -> str:
    """Hits as a model reads them: where each stands, then its lines."""
    parts: list[str] = []
    for query, results in zip(queries, found, strict=True):
        instead = f" (searched for {results.corrected})" if results.corrected else ""
        parts.append(f"## {query}{instead}" if len(queries) > 1 or instead else "")
        parts += [
            f"[{hit.source.id} {hit.title or hit.source.label} lines {hit.lines[0]}-{hit.lines[1]}]\n{hit.text}"
            for hit in results.hits
        ]
        if not results.hits:
            parts.append(f"Nothing holds these words: {query}. Try fewer or other words.")
    return "\n\n".join(part for part in parts if part)
