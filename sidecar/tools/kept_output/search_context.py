"""`search_context`: full-text search in the index."""

from __future__ import annotations

from typing import get_args

from ...model.figures import CallSavings
from ...model.index import Results, SourceKind
from ...policy.read_rules import excluded_summary
from ...providers.base import ToolSpec
from ..base import Intent, PlannedCall, ToolContext, ToolError, ToolInput, ToolKind, ToolOutcome

MAX_QUERIES = 8
MAX_HITS = 20
MAX_TOKENS = 4000
"""Tokens of one result: a model that needs more reads the source itself."""

DEFAULT_TOKENS = 1200

HEADER_TOKENS = 16
"""Tokens of the line before a hit."""

KINDS = get_args(SourceKind)


class SearchContext:
    kind: ToolKind = "search"
    runs_alone = False
    spec = ToolSpec(
        "search_context",
        "Search earlier tool outputs, indexed files and fetched pages by words"
        ' (also "a phrase", OR, -not, prefix*).',
        {
            "type": "object",
            "properties": {
                "queries": {"type": "array", "items": {"type": "string"}, "minItems": 1},
                "source": {"type": "string", "description": "Only this out:… id or exact name."},
                "scope": {
                    "type": "string",
                    "enum": ["chat", "project"],
                    "description": "Default chat, with the project's files.",
                },
                "limit": {"type": "integer", "description": "Hits a query."},
                "max_tokens": {"type": "integer", "description": f"Default {DEFAULT_TOKENS}."},
            },
            "required": ["queries"],
        },
    )

    def title(self, input: ToolInput) -> str:
        queries = input.get("queries")
        return f"Look up {', '.join(map(str, queries)) if isinstance(queries, list) else ''}".strip()

    async def prepare(self, input: ToolInput, context: ToolContext) -> PlannedCall:
        queries = parse_queries(input.get("queries"))
        scope = input.text("scope", "chat")
        if scope not in ("chat", "project"):
            raise ToolError("`scope` must be chat or project.")
        source = input.optional_text("source")
        library = context.library
        asked = min(input.number("limit", 1), MAX_HITS) if input.get("limit") is not None else None
        limit = asked or library.hits_by_default()
        tokens = min(input.number("max_tokens", DEFAULT_TOKENS, low=50), MAX_TOKENS)

        async def run() -> ToolOutcome:
            found = await library.search(
                queries,
                scope="project" if scope == "project" else "chat",
                source=source,
                limit=limit,
                max_tokens=max(50, tokens - HEADER_TOKENS * limit * len(queries)),
            )
            measured = CallSavings(returned=sum(one.tokens for one in found), searches=len(queries))
            return ToolOutcome(render_results(queries, found), shown=True, measured=measured)

        return PlannedCall(Intent("read", "."), run)


def parse_queries(queries: object) -> list[str]:
    """Return the queries of a call; models also send a single one as plain text."""
    listed = [queries] if isinstance(queries, str) else queries
    if not isinstance(listed, list) or not 1 <= len(listed) <= MAX_QUERIES:
        raise ToolError(f"`queries` must be a list of 1 to {MAX_QUERIES} texts.")
    if not all(isinstance(query, str) and query.strip() for query in listed):
        raise ToolError("Each of `queries` must be text.")
    return listed


def render_results(queries: list[str], found: list[Results]) -> str:
    """Return hits as the model reads them: the position of each, then its lines."""
    parts: list[str] = []
    for query, results in zip(queries, found, strict=True):
        instead = f" (searched for {results.corrected})" if results.corrected else ""
        parts.append(f"## {query}{instead}" if len(queries) > 1 or instead else "")
        parts += [
            f"[{hit.source.id} {hit.title or hit.source.label} lines {hit.lines[0]}-{hit.lines[1]}]\n{hit.text}"
            for hit in results.hits
        ]
        if results.left_out:
            parts.append(f"({excluded_summary(results.left_out)})")
        elif not results.hits:
            parts.append(f"Nothing holds these words: {query}. Try fewer or other words.")
    return "\n\n".join(part for part in parts if part)
