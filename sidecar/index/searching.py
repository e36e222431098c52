"""Runs one query: parse, look up, rank, cut to its tokens; and a second time when nothing was found.

A word that the scope does not contain is searched inside other words; when nothing at all is found, it is
treated as a misspelling of an existing one. Both use only the words of the scope, so that no result reveals
another chat.
"""

from __future__ import annotations

import re
from functools import partial

import anyio.to_thread

from ..model.index import ChunkPool, Query, QueryPlan, Results
from ..store.index import IndexStore
from ..store.search.index_search import SearchBounds
from ..text.token_estimate import CountTokens, CutText
from .query import ParsedQuery, is_stop, parse_query, plan_query
from .ranking import RankedChunk, rank_chunks
from .snippets import pack_hits
from .spelling import MIN_MISSPELT, MIN_PART, nearest_word, trigram_groups, trigrams, words_containing

MAX_UNKNOWN = 6
"""Words of a query that are searched inside other words, or corrected."""


class Searcher:
    def __init__(self, store: IndexStore, count: CountTokens, cut: CutText) -> None:
        self._store = store
        self._count = count
        self._cut = cut

    async def search(self, query: Query, bounds: SearchBounds) -> Results:
        if query.limit < 1 or query.max_tokens < 1:
            return Results()
        parsed = parse_query(query.text)
        places, unknown = await self._places(parsed, bounds, query)
        corrected = None
        if not places and unknown:
            corrected = await self._correct_query(query.text, unknown, bounds)
            if corrected is not None:
                places, _ = await self._places(parse_query(corrected), bounds, query)
        if not places:
            return Results()
        hits = await anyio.to_thread.run_sync(
            partial(pack_hits, places, query.limit, query.max_tokens, self._count, self._cut)
        )
        return Results(tuple(hits), sum(hit.tokens for hit in hits), corrected)

    async def _places(
        self, parsed: ParsedQuery, bounds: SearchBounds, query: Query
    ) -> tuple[list[RankedChunk], list[str]]:
        """Return what was found, best first, and the words that the scope does not contain, not even inside
        others."""
        asked = plan_query(parsed)
        if not asked.terms:
            return [], []
        pool = await self._store.gather(asked, bounds)
        unknown = _unknown_words(asked, pool)
        spelled = {word: await self._words_containing(word, bounds) for word in unknown[:MAX_UNKNOWN]}
        spelled = {word: others for word, others in spelled.items() if others}
        if spelled:
            asked = plan_query(parsed, spelled)
            pool = await self._store.gather(asked, bounds)
        recent = query.sort == "recent"
        places = await anyio.to_thread.run_sync(
            partial(rank_chunks, pool, asked, parsed, chat=query.chat, recent=recent)
        )
        return places, [word for word in unknown if word not in spelled]

    async def _words_containing(self, word: str, bounds: SearchBounds) -> tuple[str, ...]:
        if len(word) < MIN_PART:
            return ()
        return words_containing(word, await self._store.spellings(trigrams(word), bounds))

    async def _correct_query(self, text: str, unknown: list[str], bounds: SearchBounds) -> str | None:
        """Return the query with replacements for words that nothing contains; None when there is nothing
        similar."""
        made = text
        for word in [word for word in unknown if len(word) >= MIN_MISSPELT][:MAX_UNKNOWN]:
            rows = [
                row for pieces in trigram_groups(word) for row in await self._store.spellings(pieces, bounds)
            ]
            other = await anyio.to_thread.run_sync(nearest_word, word, rows)
            if other:
                made = re.sub(rf"(?i)(?<![^\W_]){re.escape(word)}(?![^\W_])", other, made)
        return made if made != text else None


def bounds_of(query: Query) -> SearchBounds | None:
    """Return where the query may search; None when it names no owner."""
    chat = query.chat if query.scope == "chat" else None
    project = query.project if query.scope != "all" else None
    if (query.scope == "chat" and chat is None) or (query.scope == "project" and project is None):
        return None
    return SearchBounds(chat, project, query.source, query.tool, query.kind)


def _unknown_words(asked: QueryPlan, pool: ChunkPool) -> list[str]:
    return [
        term.words[0]
        for term, often in zip(asked.terms, pool.frequency, strict=True)
        if not often and not is_stop(term.words[0])
    ]
