"""What a model is told of an output: all of it when that is little, else where it is kept and what was found in it.

Knows neither what was run nor how it ended. Where nothing can be kept, an output comes as its beginning and end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ..model.failures import Failure, StorageFailed
from ..model.figures import Measured
from ..model.index import Results, Source
from ..system.redact import redacted
from .base import Hands, Wrong, text
from .search_context import spelled
from .search_context import wanted as listed
from .transcript import MAX_TEXT, Transcript

INLINE = 2 * 1024
"""Bytes of an output that is sent whole, unless the settings say otherwise."""

ANSWER_TOKENS = 1200
"""Of all that is found for one call."""

BYTES_A_TOKEN = 3
"""Fewer than texts have, so that a rough count is seldom too small."""

HITS = 5
"""For each query: a model that needs more searches the source itself."""


class Told(msgspec.Struct, frozen=True):
    """What is sent of an output; `source` is the index's name for the whole, `whole` itself when it has none."""

    text: str
    whole: str | None = None
    source: Source | None = None
    measured: Measured | None = None


def wanted(input: dict[str, Any]) -> list[str]:
    """What a call wants to find in its output: its `queries`, else its `intent`."""
    if input.get("queries") is not None:
        return listed(input["queries"])
    return [text(input, "intent")] if input.get("intent") is not None else []


async def told(transcript: Transcript, label: str, queries: Sequence[str], inline: int, hands: Hands) -> Told:
    """The output, its preview or what the queries find in it."""
    if transcript.size <= inline:
        return Told(redacted(transcript.whole()))
    whole = redacted(transcript.whole())
    source = await kept(whole, label, hands)
    if source is None:
        return Told(redacted(transcript.short()), whole if transcript.size > MAX_TEXT else None)
    found = await searched(queries, [source], hands)
    if any(results.hits for results in found):
        shown = f"{reference(source)}\n{spelled(list(queries), found)}\n"
    else:
        nothing = "".join(f"Nothing holds these words: {query}.\n" for query in queries)
        intent = " ".join(queries) or None
        shown = f"{nothing}{await hands.library.preview(whole, source, intent)}\n"
    return Told(shown, source=source, measured=measured([source], found, shown, hands))


async def kept(whole: str, label: str, hands: Hands) -> Source | None:
    """Keep an output; None where that cannot be, which must not cost the model the output itself."""
    try:
        return await hands.library.keep(whole, label, "code")
    except StorageFailed:
        raise
    except (Wrong, Failure):
        return None


async def searched(queries: Sequence[str], sources: Sequence[Source], hands: Hands) -> list[Results]:
    """For each query the best hits of all the sources, together within `ANSWER_TOKENS`."""
    if not queries or not sources:
        return []
    share = ANSWER_TOKENS // len(queries)
    each = [
        await hands.library.search(list(queries), source=source.id, limit=HITS, max_tokens=ANSWER_TOKENS)
        for source in sources
    ]
    return [_best([found[at] for found in each], share) for at in range(len(queries))]


def measured(sources: Sequence[Source], found: Sequence[Results], sent: str, hands: Hands) -> Measured | None:
    """What was kept out of the window, for the statistics; None when nothing was."""
    if not sources:
        return None
    returned = sum(results.tokens for results in found)
    return Measured(
        captured=sum(source.tokens for source in sources),
        sent=max(0, hands.library.count(sent) - returned),
        returned=returned if found else None,
        searches=len(found) or None,
    )


def reference(source: Source) -> str:
    """Where an output is kept, in a line."""
    return (
        f"[{source.bytes} bytes, {source.lines} lines kept as {source.id}; search_context finds words in it,"
        " get_output shows lines of it]"
    )


def _best(found: Sequence[Results], tokens: int) -> Results:
    hits = sorted((hit for results in found for hit in results.hits), key=lambda hit: -hit.score)[:HITS]
    used = 0
    for count, hit in enumerate(hits):
        if count and used + hit.tokens > tokens:
            hits = hits[:count]
            break
        used += hit.tokens
    corrected = next((results.corrected for results in found if results.hits and results.corrected), None)
    return Results(tuple(hits), used, corrected)
