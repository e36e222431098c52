"""Finds what a prompt needs and the request does not contain: older turns of the chat, and texts of the index.

Searches before the assembly, which then takes what its budget allows. Other chats are not searched.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from functools import cache
from itertools import zip_longest
from typing import TYPE_CHECKING

from ...context.fences import fence_text
from ...context.materials import IndexLookup, Retrieve, RetrievedText
from ...model.chats import Chat
from ...model.failures import Failure, StorageFailed
from ...model.index import IndexHit, Query
from ...model.recall import MessagePool
from ...store.store import Store
from ...system.lazy import lazy_module
from ..tool_calls.environment import ToolEnvironment
from ..tool_calls.output_index import readable_results
from .token_meter import TokenMeter

if TYPE_CHECKING:
    from ...context import retrieval as past_search
    from ...context.gates import terms
else:
    terms = lazy_module("sidecar.context.gates.terms")
    past_search = lazy_module("sidecar.context.retrieval")

logger = logging.getLogger(__name__)

MAX_QUERY = 2000
"""Characters of a prompt that are searched for; text pasted beyond that is not the question."""

MAX_NAMES = 8
"""Names in a prompt that may be definitions."""

_NAME = re.compile(
    r"\b(?:[A-Za-z_]\w*(?:\.|::))*(?:\w*_\w+|[a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*)\b|\b[A-Za-z_]\w*(?=\()"
)
"""Identifiers of code: words joined by underscores or capitals, or before a parenthesis."""


async def past_lookup(store: Store, chat: Chat, prompt: str, turn_id: str, meter: TokenMeter) -> Retrieve:
    """Return a function that searches the chat's older turns for the prompt's words, within a budget."""
    try:
        pool = await store.turns.search(chat.id, past_search.terms_of(prompt))
    except StorageFailed as failure:  # a failed search must not fail the turn
        logger.warning("the chat's past cannot be searched", extra={"error": failure.message})
        pool = MessagePool()

    def render(text: str) -> str:
        return fence_text(chat.epoch, "retrieval", "earlier in this chat", text)

    empty = meter.count(render(""))

    # Ranked once: the assembly asks several times, with different budgets.
    @cache
    def best() -> list[past_search.Scored]:
        return past_search.rank_messages(prompt, pool, frozenset((turn_id,)))

    def retrieve(space: int, without: frozenset[str]) -> RetrievedText | None:
        others = [one for one in best() if one.candidate.turn not in without]
        snippets = past_search.pack_snippets(others, meter.count, space - empty)
        if not snippets:
            return None
        text = render(past_search.render_snippets(snippets))
        return RetrievedText(text, meter.count(text), tuple(snippet.turn for snippet in snippets))

    return retrieve


async def index_lookup(
    environment: ToolEnvironment, prompt: str, meter: TokenMeter, space: int, *, points_back: bool
) -> IndexLookup | None:
    """Search the index for this chat's sources and those that belong to its project alone."""
    chat, settings = environment.chat, environment.settings.values.index
    store = environment.services.store
    if not settings.enabled or space <= 0:
        return None
    try:
        there = await store.index.has_any(chat.id, chat.project_path)
        hits = await _search_index(environment, prompt[:MAX_QUERY], space) if there else []
    except Failure as failure:
        logger.warning("the index cannot be searched", extra={"error": failure.message})
        return None
    if not hits:
        return None

    def render(parts: Sequence[str]) -> str:
        return fence_text(chat.epoch, "kept", "kept tool output, files and pages", "\n\n".join(parts))

    def take(space: int, sent: Sequence[str]) -> RetrievedText | None:
        taken: list[str] = []
        for hit in _missing_hits(prompt, hits, sent, points_back):
            more = [*taken, _hit_text(hit)]
            # Counted with the fence around it. A hit that is too long is skipped, and a shorter one after it may
            # fit.
            if meter.count(render(more)) <= space:
                taken = more
        text = render(taken)
        return RetrievedText(text, meter.count(text), ()) if taken else None

    return take


async def _search_index(environment: ToolEnvironment, prompt: str, space: int) -> list[IndexHit]:
    """Return at most `retrieval_limit` hits: for the words of the prompt, and for the definitions that it names."""
    chat, limit = environment.chat, environment.settings.values.index.retrieval_limit
    queries = [Query(prompt, "chat", chat.id, chat.project_path, limit=limit, max_tokens=space)]
    names = list(dict.fromkeys(_NAME.findall(prompt)))[:MAX_NAMES] if chat.project_path else []
    if names:
        words = " OR ".join(f'"{name}"' for name in names)
        queries.append(
            Query(words, "chat", chat.id, chat.project_path, kind="file", limit=limit, max_tokens=space)
        )
    found = await environment.services.index().search(queries)
    first, *others = await readable_results(await environment.read_rules(), found)
    files = [
        hit
        for results in others
        for hit in results.hits
        if any(name.rpartition(".")[2] in hit.title for name in names)
    ]
    in_turn = [hit for pair in zip_longest(first.hits, files) for hit in pair if hit is not None]
    return list({hit.id: hit for hit in in_turn}.values())[:limit]


def _missing_hits(
    prompt: str, hits: Sequence[IndexHit], sent: Sequence[str], points_back: bool
) -> list[IndexHit]:
    """The hits that are not in the request already, and that cover something of the prompt that nothing else does."""
    _, missing = terms.uncovered_terms(prompt, sent)
    needed = []
    for hit in hits:
        if any(hit.text.strip() in text for text in sent):
            continue
        _, still = terms.uncovered_terms(prompt, [hit.text, hit.title])
        if points_back or set(missing) - set(still):
            needed.append(hit)
    return needed


def _hit_text(hit: IndexHit) -> str:
    return (
        f"[{hit.source.id} {hit.title or hit.source.label} lines {hit.lines[0]}-{hit.lines[1]}]\n{hit.text}"
    )
