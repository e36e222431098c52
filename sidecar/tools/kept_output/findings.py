"""Show an output to the model: a short one in full, else where it is stored and what the queries found in it.

Knows neither what was run nor how it ended. When the output cannot be stored, its beginning and end are shown.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ...model.failures import Failure, StorageFailed
from ...model.figures import CallSavings
from ...model.index import Results, Source
from ...system.redact import redact_text
from ..base import ToolContext, ToolError, ToolInput
from ..shell.transcript import MAX_SHORT_BYTES, Transcript
from .search_context import parse_queries as listed
from .search_context import render_results

INLINE_BYTES = 2 * 1024
"""Bytes of an output that is sent in full, unless the settings say otherwise."""

ANSWER_TOKENS = 1200
"""Tokens of everything that is found for one call."""

MAX_HITS = 5
"""Hits per query: a model that needs more searches the source itself."""


class ShownOutput(msgspec.Struct, frozen=True):
    """What is sent of an output; `source` is the id of the full text in the index, `whole` the text if not indexed."""

    text: str
    whole: str | None = None
    source: Source | None = None
    measured: CallSavings | None = None


def output_queries(input: ToolInput) -> list[str]:
    """Return what a call wants to find in its output: its `queries`, else its `intent`."""
    if input.get("queries") is not None:
        return listed(input.get("queries"))
    return [input.text("intent")] if input.get("intent") is not None else []


async def show_output(
    transcript: Transcript, label: str, queries: Sequence[str], inline: int, context: ToolContext
) -> ShownOutput:
    """Return the output, its preview or what the queries find in it."""
    if transcript.size <= inline:
        return ShownOutput(redact_text(transcript.whole()))
    whole = redact_text(transcript.whole())
    source = await keep_output(whole, label, context)
    if source is None:
        return ShownOutput(
            redact_text(transcript.short()), whole if transcript.size > MAX_SHORT_BYTES else None
        )
    found = await search_sources(queries, [source], context)
    if any(results.hits for results in found):
        shown = f"{source_reference(source)}\n{render_results(list(queries), found)}\n"
    else:
        nothing = "".join(f"Nothing holds these words: {query}.\n" for query in queries)
        intent = " ".join(queries) or None
        shown = f"{nothing}{await context.library.preview(whole, source, intent)}\n"
    return ShownOutput(shown, source=source, measured=measure_savings([source], found, shown, context))


async def keep_output(whole: str, label: str, context: ToolContext) -> Source | None:
    """Store an output; None when that fails, since the model must get the output even so."""
    try:
        return await context.library.keep(whole, label, "code")
    except StorageFailed:
        raise
    except (ToolError, Failure):
        return None


async def search_sources(
    queries: Sequence[str], sources: Sequence[Source], context: ToolContext
) -> list[Results]:
    """Return the best hits for each query in all the sources, together within `ANSWER_TOKENS`."""
    if not queries or not sources:
        return []
    share = ANSWER_TOKENS // len(queries)
    each = [
        await context.library.search(
            list(queries), source=source.id, limit=MAX_HITS, max_tokens=ANSWER_TOKENS
        )
        for source in sources
    ]
    return [_best_hits([found[at] for found in each], share) for at in range(len(queries))]


def measure_savings(
    sources: Sequence[Source], found: Sequence[Results], sent: str, context: ToolContext
) -> CallSavings | None:
    """Return what was saved in the context window, for the statistics; None when nothing was."""
    if not sources:
        return None
    returned = sum(results.tokens for results in found)
    return CallSavings(
        captured=sum(source.tokens for source in sources),
        sent=max(0, context.library.count(sent) - returned),
        returned=returned if found else None,
        searches=len(found) or None,
    )


def source_reference(source: Source) -> str:
    """Return one line that says where an output is stored."""
    return (
        f"[{source.bytes} bytes, {source.lines} lines kept as {source.id}; search_context finds words in it,"
        " get_output shows lines of it]"
    )


def _best_hits(found: Sequence[Results], tokens: int) -> Results:
    hits = sorted((hit for results in found for hit in results.hits), key=lambda hit: -hit.score)[:MAX_HITS]
    used = 0
    for count, hit in enumerate(hits):
        if count and used + hit.tokens > tokens:
            hits = hits[:count]
            break
        used += hit.tokens
    corrected = next((results.corrected for results in found if results.hits and results.corrected), None)
    return Results(tuple(hits), used, corrected)
