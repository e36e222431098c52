"""Counts tokens of texts and messages for one model: exactly where its tokenizer is known, otherwise by an estimate.

The first count of a process loads a library. Until then, and while everything fits many times over, an upper estimate
by length is used, so that a first token never waits for it.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ...context.assembly import MESSAGE_TOKENS
from ...context.tokens.counting import TokenCounter, is_ready
from ...context.tokens.families import Calibration, TokenizerFamily, family_of
from ...model.content import Block
from ...providers.base import AssistantMessage, Message
from ...text.token_estimate import BYTES_PER_TOKEN, estimate_tokens
from .messages import plain_text

IMAGE_TOKENS = 1600
AUDIO_BYTES_PER_TOKEN = 1000
"""Providers count images by their size in pixels and audio by its length; these are the upper end of both."""

counter = TokenCounter()
"""One for the process: the same text is counted once, whichever chat it is in."""


class TokenMeter(msgspec.Struct, frozen=True):
    """Counts for one model. `rough` estimates by length, without tables."""

    family: TokenizerFamily
    rough: bool = False

    @property
    def exact(self) -> bool:
        return self.family.exact and not self.rough

    def count(self, text: str) -> int:
        if self.rough:
            return estimate_tokens(text)
        return counter.count(text, self.family)

    def cut(self, text: str, tokens: int, keep: str = "head") -> str:
        """The head or the tail of a text within so many tokens."""
        if self.rough:
            size = max(0, tokens) * BYTES_PER_TOKEN
            data = text.encode(errors="replace")
            part = data[:size] if keep == "head" else data[max(0, len(data) - size) :]
            return part.decode(errors="ignore")
        return counter.cut(text, tokens, self.family, "tail" if keep == "tail" else "head")

    def message(self, message: Message) -> int:
        content = [] if isinstance(message, AssistantMessage) else message.content
        return MESSAGE_TOKENS + self.media(content) + self.count(plain_text([message]))

    def messages(self, messages: Iterable[Message]) -> int:
        return sum(self.message(message) for message in messages)

    def media(self, blocks: Iterable[Block]) -> int:
        """The tokens of images and audio; texts are counted as texts."""
        return sum(_media_tokens(block) for block in blocks)


def meter_for(model: str, factor: float, *, rough_is_enough: bool) -> TokenMeter:
    family = Calibration(factor).applied(family_of(model))
    return TokenMeter(family, rough=rough_is_enough and not is_ready(family))


def _media_tokens(block: Block) -> int:
    if block.text:
        return 0  # a line of text replaces it, and is counted as text
    if block.type == "image":
        return IMAGE_TOKENS
    return (block.size or 0) // AUDIO_BYTES_PER_TOKEN if block.type == "audio" else 0
