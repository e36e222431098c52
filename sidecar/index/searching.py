"""One query from its text to its hits: parsed, looked up, ranked, cut to its tokens; and once more when nothing was
found.

A word that the scope does not have is looked for inside other words; when nothing at all is found, it is taken for a
misspelling of one that is there. Both ask the words of the scope alone, so that no answer tells of another chat.
"""

from __future__ import annotations

import re
from functools import partial

import anyio.to_thread

from ..model.index import Plan, Pool, Query, Results
from ..store.index import IndexStore
from ..store.index_search import Bounds
from .query import Parsed, is_stop, parse, plan
from .ranking import Place, ranked
from .snippets import Count, Cut, packed
from .spelling import MIN_MISSPELT, MIN_PART, halves, holding, nearest, triples

MAX_UNKNOWN = 6
"""Words of a query that are looked for in other words, or corrected."""


class Searcher:
    def __init__(self, store: IndexStore, count: Count, cut: Cut) -> None:
        self._store = store
        self._count = count
        self._cut = cut

    async def search(self, query: Query, bounds: Bounds) -> Results:
        if query.limit < 1 or query.max_tokens < 1:
            return Results()
        parsed = parse(query.text)
        places, unknown = await self._places(parsed, bounds, query)
        corrected = None
        if not places and unknown:
            corrected = await self._corrected(query.text, unknown, bounds)
            if corrected is not None:
                places, _ = await self._places(parse(corrected), bounds, query)
        if not places:
            return Results()
        hits = await anyio.to_thread.run_sync(
            partial(packed, places, query.limit, query.max_tokens, self._count, self._cut)
        )
        return Results(tuple(hits), sum(hit.tokens for hit in hits), corrected)

    async def _places(self, parsed: Parsed, bounds: Bounds, query: Query) -> tuple[list[Place], list[str]]:
        """What was found, best first; and the words that the scope does not have, not even inside others."""
        asked = plan(parsed)
        if not asked.terms:
            return [], []
        pool = await self._store.gather(asked, bounds)
        unknown = _unknown(asked, pool)
        spelled = {word: await self._holding(word, bounds) for word in unknown[:MAX_UNKNOWN]}
        spelled = {word: others for word, others in spelled.items() if others}
        if spelled:
            asked = plan(parsed, spelled)
            pool = await self._store.gather(asked, bounds)
        recent = query.sort == "recent"
        places = await anyio.to_thread.run_sync(
            partial(ranked, pool, asked, parsed, chat=query.chat, recent=recent)
        )
        return places, [word for word in unknown if word not in spelled]

    async def _holding(self, word: str, bounds: Bounds) -> tuple[str, ...]:
        if len(word) < MIN_PART:
            return ()
        return holding(word, await self._store.spellings(triples(word), bounds))

    async def _corrected(self, text: str, unknown: list[str], bounds: Bounds) -> str | None:
        """The query with other words for those that nothing has; None when there is nothing like them."""
        made = text
        for word in [word for word in unknown if len(word) >= MIN_MISSPELT][:MAX_UNKNOWN]:
            rows = [row for pieces in halves(word) for row in await self._store.spellings(pieces, bounds)]
            other = await anyio.to_thread.run_sync(nearest, word, rows)
            if other:
                made = re.sub(rf"(?i)(?<![^\W_]){re.escape(word)}(?![^\W_])", other, made)
        return made if made != text else None


def bounds_of(query: Query) -> Bounds | None:
    """Where the query may look; None when it does not say whose words it means."""
    chat = query.chat if query.scope == "chat" else None
    project = query.project if query.scope == "project" else None
    if (query.scope == "chat" and chat is None) or (query.scope == "project" and project is None):
        return None
    return Bounds(chat, project, query.source, query.tool, query.kind)


def _unknown(asked: Plan, pool: Pool) -> list[str]:
    return [
        term.words[0]
        for term, often in zip(asked.terms, pool.frequency, strict=True)
        if not often and not is_stop(term.words[0])
    ]
