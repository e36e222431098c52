"""What a turn asks the model first: the newest turns that fit its window, the new prompt, and their media."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec

from ..context import window as fits
from ..context.window import Budget
from ..model.chats import Chat
from ..model.content import Block, Turn
from ..model.failures import Failure, ProviderFailed
from ..providers.base import Message, ModelRequest, Provider, ToolSpec, UserMessage
from ..store.store import Store
from .messages import messages_of

SMALL = 4000
"""Tokens that fit every window: below this a model's window need not be asked for."""

FIRST_PAGE_TURNS = 25
PAGE_TURNS = 200
PAGE_BYTES = 1024 * 1024
"""History is read in pages, each twice as long as the one before, until the window is full: most windows of a
long chat are full after few turns, and reading more would only make the first word late."""

MAX_MEDIA_BYTES = 20 * 1024 * 1024
"""Of images and audio in one request, the newest first; providers take little more."""


class Question(msgspec.Struct, frozen=True):
    """A turn's first request, how it was measured, and whether its model's window matters and nobody knows it."""

    request: ModelRequest
    manifest: dict[str, Any]
    window_is_missed: bool


class Asked(msgspec.Struct, frozen=True):
    """What is asked: by which model, under which configuration of the chat, with which prompt."""

    provider: Provider
    model: str
    config: dict[str, Any]
    effort: str | None
    turn_id: str
    prompt: list[Block]
    """Empty when an earlier turn is gone on with: what was said is in the history."""
    tools: list[ToolSpec] = []
    window_is_asked: bool = False
    """Whether the provider was asked for this model's window before, and did not say."""


async def question(store: Store, chat: Chat, asked: Asked) -> Question:
    """The newest whole turns that fit, then the prompt; raises when the prompt alone does not fit."""
    instructions = asked.config.get("instructions")
    told = msgspec.json.encode(asked.tools).decode() if asked.tools else ""
    fixed = fits.of_text(instructions or "") + fits.of_text(told) + fits.of_content(asked.prompt)
    window, is_missed = await _window(store, chat, asked, fixed)
    budget = fits.budget(window or fits.ASSUMED_WINDOW, asked.config.get("outputReserve"))
    if fixed > budget.total:
        raise _too_large(fixed, budget)
    turns = await _newest(store, chat, asked.turn_id, budget.total - fixed)
    if not turns and not asked.prompt:
        raise _too_large(fixed + await _last(store, chat, asked.turn_id), budget)
    sent = sum(fits.of_turn(turn) for turn in turns)
    messages = messages_of(turns, asked.prompt or None)
    request = ModelRequest(
        model=asked.model,
        messages=messages,
        effort=asked.effort,
        instructions=instructions,
        tools=asked.tools,
        media=await _media(store, messages),
        window=window,
        room=budget.window - fixed - sent,
        max_output=asked.config.get("outputReserve"),
        cache_key=chat.key.session_id.rpartition("-")[2],
    )
    return Question(request, _manifest(asked, budget, fixed, sent, len(turns)), is_missed)


async def _window(store: Store, chat: Chat, asked: Asked, fixed: int) -> tuple[int | None, bool]:
    """The model's window: the chat's word, or what is known, or what the provider says when it matters; and
    whether it matters and nobody knows it."""
    chosen: int | None = asked.config.get("window")
    known = chosen or asked.provider.known(asked.model).window
    if known is not None or asked.window_is_asked:
        return known, known is None
    if await _is_small(store, chat, asked, fixed):
        return None, False
    with suppress(ProviderFailed):
        await asked.provider.models()
    known = asked.provider.known(asked.model).window
    return known, known is None


async def _is_small(store: Store, chat: Chat, asked: Asked, fixed: int) -> bool:
    """Whether the prompt and the whole chat before it fit every window."""
    if fixed > SMALL:
        return False
    _, page = await store.history(chat.id, limit=PAGE_TURNS, max_bytes=PAGE_BYTES)
    ended = [turn for turn in page.turns if turn.id != asked.turn_id]
    return page.before is None and fits.newest(ended, SMALL - fixed) == ended


async def _newest(store: Store, chat: Chat, running: str, room: int) -> list[Turn]:
    found: list[Turn] = []
    before: str | None = None
    limit = FIRST_PAGE_TURNS
    while True:
        _, page = await store.history(chat.id, before=before, limit=limit, max_bytes=PAGE_BYTES)
        limit = min(2 * limit, PAGE_TURNS)
        ended = [turn for turn in page.turns if turn.id != running]
        taken = fits.newest(ended, room)
        found = taken + found
        room -= sum(fits.of_turn(turn) for turn in taken)
        before = page.before
        if before is None or len(taken) < len(ended):
            return found


async def _last(store: Store, chat: Chat, running: str) -> int:
    """The tokens of the turn that is gone on with."""
    _, page = await store.history(chat.id, limit=2, max_bytes=PAGE_BYTES)
    return max((fits.of_turn(turn) for turn in page.turns if turn.id != running), default=0)


async def _media(store: Store, messages: list[Message]) -> dict[str, bytes]:
    """The bytes of what the messages show, the newest first, as far as a request can hold them."""
    media: dict[str, bytes] = {}
    left = MAX_MEDIA_BYTES
    blocks = [block for message in messages if isinstance(message, UserMessage) for block in message.content]
    for block in reversed(blocks):
        size = block.size or 0
        if block.blob_id and block.blob_id not in media and block.type in ("image", "audio") and size <= left:
            _, media[block.blob_id] = await store.read_blob(block.blob_id, 0, size)
            left -= size
    return media


def _manifest(asked: Asked, budget: Budget, fixed: int, sent: int, turns: int) -> dict[str, Any]:
    """What is sent, by the contract's section 7; every count is an estimate, so `exact` is false."""
    blocks = [
        {"id": "history", "kind": "history", "label": f"{turns} turns", "tokens": sent, "included": "full"},
        {"id": "prompt", "kind": "prompt", "label": "prompt", "tokens": fixed, "included": "full"},
    ]
    return {
        "model": f"{asked.provider.known(asked.model).provider}:{asked.model}",
        "window": budget.window,
        "reserve": budget.reserve,
        "budget": budget.total,
        "used": fixed + sent,
        "exact": False,
        "blocks": blocks if sent else blocks[1:],
    }


def _too_large(needed: int, budget: Budget) -> Failure:
    return Failure(
        "context_budget",
        f"The prompt needs about {needed} tokens and the model's window has room for {budget.total}",
        action="edit_prompt",
        hint="Shorten the prompt, or choose a model with a larger window",
        facts={"needed": needed, "available": budget.total},
    )
