"""Tokens of texts and messages for one model: exactly where its tokenizer is known, else by a calibrated estimate.

The tables of the tokenizers take a moment to load. Until they are, and while everything fits many times over, an
upper estimate by length serves, so that a first word never waits for them.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ..context.assembly import MESSAGE_TOKENS
from ..context.tokens.counting import Counter, is_loaded
from ..context.tokens.families import Calibration, Family, family_of
from ..model.content import Block
from ..providers.base import Message, UserMessage
from .messages import plain

BYTES_A_TOKEN = 3
"""English has about four characters a token, code three, Chinese one, which are three bytes each."""

IMAGE_TOKENS = 1600
AUDIO_BYTES_A_TOKEN = 1000
"""Providers count images by their size in pixels and audio by its length; these are the upper end of both."""

counter = Counter()
"""One for the process: the same text is counted once, whichever chat it stands in."""


class Measure(msgspec.Struct, frozen=True):
    """Counts for one model. `rough` estimates by length, without tables."""

    family: Family
    rough: bool = False

    @property
    def exact(self) -> bool:
        return self.family.exact and not self.rough

    def count(self, text: str) -> int:
        if self.rough:
            return rough_count(text)
        return counter.count(text, self.family)

    def cut(self, text: str, tokens: int, keep: str = "head") -> str:
        """The head or the tail of a text within so many tokens."""
        if self.rough:
            size = max(0, tokens) * BYTES_A_TOKEN
            data = text.encode(errors="replace")
            part = data[:size] if keep == "head" else data[max(0, len(data) - size) :]
            return part.decode(errors="ignore")
        return counter.cut(text, tokens, self.family, "tail" if keep == "tail" else "head")

    def message(self, message: Message) -> int:
        media = sum(_media(block) for block in message.content) if isinstance(message, UserMessage) else 0
        return MESSAGE_TOKENS + media + self.count(plain([message]))

    def messages(self, messages: Iterable[Message]) -> int:
        return sum(self.message(message) for message in messages)

    def media(self, blocks: Iterable[Block]) -> int:
        """Images and audio; texts are counted as texts."""
        return sum(_media(block) for block in blocks)


def measure_for(model: str, factor: float, *, rough_is_enough: bool) -> Measure:
    family = Calibration(factor).applied(family_of(model))
    return Measure(family, rough=rough_is_enough and not is_loaded(family))


def rough_count(text: str) -> int:
    return -(-len(text.encode(errors="replace")) // BYTES_A_TOKEN)


def _media(block: Block) -> int:
    if block.type == "image":
        return IMAGE_TOKENS
    return (block.size or 0) // AUDIO_BYTES_A_TOKEN if block.type == "audio" else 0
