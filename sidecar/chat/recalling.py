"""What a prompt needs again that is not in the window: the chat's older turns, and what the index has kept.

Searches before the assembly, which then takes of it what its budget allows. Other chats are not looked at.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from functools import cache

from ..context.fences import fenced
from ..context.materials import Found, Retrieve, Shelf
from ..model.chats import Chat
from ..model.failures import Failure, StorageFailed
from ..model.index import Hit, Query
from ..model.recall import Pool
from ..store.store import Store
from .desk import Desk
from .measuring import Measure

logger = logging.getLogger(__name__)

MAX_QUERY = 2000
"""Characters of a prompt that are looked up; what is pasted beyond that is not what is asked."""

MAX_NAMES = 8
"""Names in a prompt that may be definitions."""

_NAME = re.compile(
    r"\b(?:[A-Za-z_]\w*(?:\.|::))*(?:\w*_\w+|[a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*)\b|\b[A-Za-z_]\w*(?=\()"
)
"""What code is named by: words joined by underscores or capitals, or before a parenthesis."""


async def past(store: Store, chat: Chat, prompt: str, turn_id: str, measure: Measure) -> Retrieve:
    """How older turns come back: what the prompt's words find in the chat's past, packed into some room."""
    from ..context.retrieval import Scored, packed, ranked, rendered, terms_of

    try:
        pool = await store.recall(chat.id, terms_of(prompt))
    except StorageFailed as failure:  # a search that fails must not fail the chat
        logger.warning("the chat's past cannot be searched", extra={"error": failure.message})
        pool = Pool()

    def spelled(text: str) -> str:
        return fenced(chat.epoch, "retrieval", "earlier in this chat", text)

    empty = measure.count(spelled(""))

    @cache
    def best() -> list[Scored]:
        return ranked(prompt, pool, frozenset((turn_id,)))

    def retrieve(room: int, without: frozenset[str]) -> Found | None:
        others = [one for one in best() if one.candidate.turn not in without]
        snippets = packed(others, measure.count, room - empty)
        if not snippets:
            return None
        text = spelled(rendered(snippets))
        return Found(text, measure.count(text), tuple(snippet.turn for snippet in snippets))

    return retrieve


async def shelf(desk: Desk, prompt: str, measure: Measure, room: int, *, points_back: bool) -> Shelf | None:
    """What the index has of this chat, and of the project's files by the names that the prompt mentions."""
    chat, settings = desk.chat, desk.settings.index
    store = desk.workshop.store
    if not settings.enabled or room <= 0:
        return None
    try:
        there = await store.index.has_any(chat.id, chat.project_path)
        hits = await _hits(desk, prompt[:MAX_QUERY], room) if there else []
    except Failure as failure:
        logger.warning("the index cannot be searched", extra={"error": failure.message})
        return None
    if not hits:
        return None

    def spelled(parts: Sequence[str]) -> str:
        return fenced(chat.epoch, "kept", "kept tool output, files and pages", "\n\n".join(parts))

    def take(room: int, sent: Sequence[str]) -> Found | None:
        taken: list[str] = []
        for hit in _needed(prompt, hits, sent, points_back):
            more = [*taken, _drawn(hit)]
            if measure.count(spelled(more)) <= room:
                taken = more
        text = spelled(taken)
        return Found(text, measure.count(text), ()) if taken else None

    return take


async def _hits(desk: Desk, prompt: str, room: int) -> list[Hit]:
    chat, limit = desk.chat, desk.settings.index.retrieval_limit
    here = Query(prompt, "chat", chat.id, chat.project_path, limit=limit, max_tokens=room)
    queries = [here]
    names = list(dict.fromkeys(_NAME.findall(prompt)))[:MAX_NAMES] if chat.project_path else []
    if names:
        words = " OR ".join(f'"{name}"' for name in names)
        queries.append(
            Query(words, "project", None, chat.project_path, kind="file", limit=limit, max_tokens=room)
        )
    first, *others = await desk.workshop.index().search(queries)
    files = [
        hit
        for results in others
        for hit in results.hits
        if any(name.rpartition(".")[2] in hit.title for name in names)
    ]
    known = {hit.id for hit in first.hits}
    return [*first.hits, *(hit for hit in files if hit.id not in known)]


def _needed(prompt: str, hits: Sequence[Hit], sent: Sequence[str], points_back: bool) -> list[Hit]:
    """The hits that are not sent anyway, and that hold something of what the prompt asks for and nothing else says."""
    from ..context.gates.terms import uncovered

    _, missing = uncovered(prompt, sent)
    needed = []
    for hit in hits:
        if any(hit.text.strip() in text for text in sent):
            continue
        _, still = uncovered(prompt, [hit.text, hit.title])
        if points_back or set(missing) - set(still):
            needed.append(hit)
    return needed


def _drawn(hit: Hit) -> str:
    return (
        f"[{hit.source.id} {hit.title or hit.source.label} lines {hit.lines[0]}-{hit.lines[1]}]\n{hit.text}"
    )
