"""How much of a chat fits a model's window: the newest whole turns, counted by an estimate. Does no IO.

The estimate is on the safe side: English has about four characters a token, code three, Chinese one, which are
three bytes each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ..model.content import Block, Item, Turn

BYTES_A_TOKEN = 3
MESSAGE_TOKENS = 8
"""Role and separators around each message."""

IMAGE_TOKENS = 1600
AUDIO_BYTES_A_TOKEN = 1000
"""Providers count images by their size in pixels and audio by its length; these are the upper end of both."""

ASSUMED_WINDOW = 128_000
"""Of a model that nobody knows; the chat is told so."""

RESERVE = 8192
MARGIN = 0.02
"""Left free because the count is an estimate."""


class Budget(msgspec.Struct, frozen=True):
    """In tokens: the model's window, what is kept for its answer, and what may be sent."""

    window: int
    reserve: int
    total: int


def budget(window: int, reserve: int | None) -> Budget:
    kept = min(reserve or min(RESERVE, window // 4), window)
    return Budget(window, kept, max(0, window - kept - int(window * MARGIN)))


def of_text(text: str) -> int:
    return -(-len(text.encode(errors="replace")) // BYTES_A_TOKEN)


def of_content(blocks: Iterable[Block]) -> int:
    return MESSAGE_TOKENS + sum(_of_block(block) for block in blocks)


def of_turn(turn: Turn) -> int:
    return sum(_of_item(item) for item in turn.items)


def newest(turns: Sequence[Turn], room: int) -> list[Turn]:
    """As many whole turns as fit, the newest first to be taken, in the chat's order."""
    taken: list[Turn] = []
    for turn in reversed(turns):
        room -= of_turn(turn)
        if room < 0:
            break
        taken.append(turn)
    return taken[::-1]


def _of_block(block: Block) -> int:
    if block.type == "image":
        return IMAGE_TOKENS
    if block.type == "audio":
        return (block.size or 0) // AUDIO_BYTES_A_TOKEN
    return of_text(block.text or "") + of_text(block.uri or "")


def _of_item(item: Item) -> int:
    if item.type == "user":
        return of_content(item.content or [])
    if item.type == "tool":
        said = msgspec.json.encode(item.input).decode() + str((item.output or {}).get("text") or "")
        return 2 * MESSAGE_TOKENS + of_text(said)
    return MESSAGE_TOKENS + of_text(item.text or "") if item.type == "message" else 0
