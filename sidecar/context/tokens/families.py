"""Maps a model to an encoding and a factor for its own tokenizer. Pure; loads no table.

OpenAI's tokenizers are public and exact. For all others o200k is counted and multiplied. The factors are safe
estimates for English, code, JSON and logs: the largest measured on such texts with the published tokenizers
of Llama 2 and 3, Qwen, DeepSeek, Mistral, Command R and Gemma (for Gemini too); for Claude that of its second
generation, and 1.47 times as much since Opus 4.7, as users report; for the rest a guess. Text in other
scripts, and columns of digits, which many tokenizers encode one by one, can exceed them; the provider's
reported usage then corrects the factor (`Calibration`).
"""

from __future__ import annotations

import functools
import math
import re

import msgspec

from .encodings import CL100K, O200K

MIN_FACTOR = 0.5
MAX_FACTOR = 2.0
"""A reported factor beyond these counts something else than our text, such as an image, or omits a cached
prefix."""

RISE = 0.5
FALL = 0.125
"""The share of a difference that one report corrects. Up fast, because the provider refuses a count that was
too low; down slowly, because a count that was too high only leaves some tokens unused."""

MIN_REPORTED = 256
"""Tokens: in a smaller prompt, roles and separators weigh too much to learn from."""


class TokenizerFamily(msgspec.Struct, frozen=True):
    """The models that share a tokenizer, as far as it can be counted."""

    name: str
    encoding: str
    factor: float = 1.0
    exact: bool = False
    """Whether the encoding is the model's own; otherwise a count is an estimate."""

    def scaled(self, tokens: int) -> int:
        """Convert tokens of the encoding to tokens of the model."""
        return tokens if self.exact else math.ceil(tokens * self.factor)

    def most(self, tokens: int) -> int:
        """Return how many tokens of the encoding are at most `tokens` for the model."""
        if self.exact:
            return max(0, tokens)
        found = max(0, math.ceil(tokens / self.factor))
        while found and self.scaled(found) > tokens:
            found -= 1
        return found


class Calibration(msgspec.Struct, frozen=True):
    """What a provider's reports showed about a family's factor, for one model. Plain data that is stored."""

    factor: float = 1.0

    def observed(self, estimated: int, reported: int) -> Calibration:
        """Return the calibration after a prompt of `estimated` tokens (by the uncalibrated family) was
        reported as `reported`."""
        if estimated < MIN_REPORTED or reported < MIN_REPORTED:
            return self
        ratio = min(MAX_FACTOR, max(MIN_FACTOR, reported / estimated))
        return Calibration(self.factor + (ratio - self.factor) * (RISE if ratio > self.factor else FALL))

    def applied(self, family: TokenizerFamily) -> TokenizerFamily:
        """Return the family to count by; an exact one needs no correction."""
        if family.exact or self.factor == 1.0:
            return family
        return msgspec.structs.replace(family, factor=family.factor * self.factor)


UNKNOWN = TokenizerFamily("unknown", O200K, 1.3)

# The first row whose expression matches the lowercase name decides. A vendor may precede a name, as in
# `openai/gpt-4o`, `ft:gpt-4o` and `openai.gpt-oss-20b`, but not a word and a dash: `marco-o1` is not
# OpenAI's.
_NAMED, _ENDED = r"(?<![a-z0-9-])(?:", r")(?![a-z0-9])"
FAMILIES: tuple[tuple[str, TokenizerFamily], ...] = (
    (
        _NAMED + r"gpt-4o|gpt-4\.[15]|gpt-5|gpt-oss|chatgpt-4o|o[134]|codex" + _ENDED,
        TokenizerFamily("o200k", O200K, exact=True),
    ),
    (_NAMED + r"gpt-4(?!\.)|gpt-3\.5|gpt-35" + _ENDED, TokenizerFamily("cl100k", CL100K, exact=True)),
    (r"gpt-", TokenizerFamily("gpt", O200K, 1.1)),
    (
        r"claude-(instant|[123](?!\d)|(opus|sonnet|haiku)-4(?!\d|[-.][7-9](?!\d)))",
        TokenizerFamily("claude-before-4.7", O200K, 1.2),
    ),
    (r"claude", TokenizerFamily("claude", O200K, 1.65)),
    (r"gemini|gemma", TokenizerFamily("gemini", O200K, 1.25)),
    (r"smollm", TokenizerFamily("smollm", O200K, 1.3)),
    (r"llama-?2|codellama|tinyllama|mixtral|mistral-7b", TokenizerFamily("llama-2", O200K, 1.3)),
    (r"llama", TokenizerFamily("llama", O200K, 1.1)),
    (r"qwen|qwq", TokenizerFamily("qwen", O200K, 1.2)),
    (r"deepseek", TokenizerFamily("deepseek", O200K, 1.1)),
    (r"mistral|ministral|codestral|devstral|magistral|pixtral", TokenizerFamily("mistral", O200K, 1.25)),
    (r"command-", TokenizerFamily("command", O200K, 1.2)),
)


@functools.lru_cache(maxsize=256)
def family_of(model: str) -> TokenizerFamily:
    name = model.lower()
    return next((family for expression, family in FAMILIES if re.search(expression, name)), UNKNOWN)
