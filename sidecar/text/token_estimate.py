"""An upper estimate of a text's tokens by its length, without a tokenizer's tables."""

from __future__ import annotations

from collections.abc import Callable

CountTokens = Callable[[str], int]

CutText = Callable[[str, int], str]
"""Cuts the text to so many tokens and marks the omission; "" when nothing useful fits."""

BYTES_PER_TOKEN = 3
"""English has about four characters per token, code three, Chinese one, which are three bytes each."""

FEWEST_BYTES_PER_TOKEN = 2
"""Of whole conversations: what must fit a window without being counted assumes no more."""

USUAL_BYTES_PER_TOKEN = 4
"""Of a conversation in English: for sizes that are only compared."""

MANY_CHARACTERS_PER_TOKEN = 6
"""More than most texts have: a part of so many holds as many tokens as are looked for, and usually more."""


def estimate_tokens(text: str) -> int:
    return -(-len(text.encode(errors="replace")) // BYTES_PER_TOKEN)
