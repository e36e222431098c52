"""Which encoding counts for a model, and by how much more its own tokenizer counts. Pure; loads no table.

OpenAI's tokenizers are public and exact here. For all others o200k is counted and multiplied. The factors are
estimates on the safe side for English, code, JSON and logs: the largest measured on such texts with the published
tokenizers of Llama 2 and 3, Qwen, DeepSeek, Mistral, Command R and Gemma (for Gemini too); for Claude that of its
second generation, and 1.47 times as much since Opus 4.7, as users report; for the rest a guess. Text in other
scripts, and columns of digits, which many tokenizers take one by one, can go beyond; the provider's own reports then
correct the factor (`Calibration`).
"""

from __future__ import annotations

import functools
import math
import re

import msgspec

from .encodings import CL100K, O200K

MIN_FACTOR = 0.5
MAX_FACTOR = 2.0
"""A report beyond these counts something else than our text, an image or a cached prefix left out."""

RISE = 0.5
FALL = 0.125
"""The part of a difference that one report corrects. Up fast, since a count too low is refused by the provider; down
slowly, since a count too high only leaves a little room unused."""

MIN_REPORTED = 256
"""Tokens: in a smaller prompt roles and separators, which are no text, weigh too much to learn from."""


class Family(msgspec.Struct, frozen=True):
    """The models that share a tokenizer, as far as we can count for it."""

    name: str
    encoding: str
    factor: float = 1.0
    exact: bool = False
    """Whether the encoding is the model's own; else a count is an estimate."""

    def scaled(self, tokens: int) -> int:
        """What `tokens` of the encoding are for the model."""
        return tokens if self.exact else math.ceil(tokens * self.factor)

    def most(self, tokens: int) -> int:
        """How many tokens of the encoding are at most `tokens` for the model."""
        if self.exact:
            return max(0, tokens)
        found = max(0, math.ceil(tokens / self.factor))
        while found and self.scaled(found) > tokens:
            found -= 1
        return found


class Calibration(msgspec.Struct, frozen=True):
    """What a provider's reports have taught about a family's factor, for one model. Plain data, to be kept."""

    factor: float = 1.0

    def observed(self, estimated: int, reported: int) -> Calibration:
        """After a prompt of `estimated` tokens, by the family without a calibration, was reported as `reported`."""
        if estimated < MIN_REPORTED or reported < MIN_REPORTED:
            return self
        ratio = min(MAX_FACTOR, max(MIN_FACTOR, reported / estimated))
        return Calibration(self.factor + (ratio - self.factor) * (RISE if ratio > self.factor else FALL))

    def applied(self, family: Family) -> Family:
        """The family to count by; one that is exact needs no correction."""
        if family.exact or self.factor == 1.0:
            return family
        return msgspec.structs.replace(family, factor=family.factor * self.factor)


UNKNOWN = Family("unknown", O200K, 1.3)

# The first row whose expression is found in the lowercase name decides. A vendor may stand before a name, as in
# `openai/gpt-4o`, `ft:gpt-4o` and `openai.gpt-oss-20b`, but not a word and a dash: `marco-o1` is not OpenAI's.
_NAMED, _ENDED = r"(?<![a-z0-9-])(?:", r")(?![a-z0-9])"
FAMILIES: tuple[tuple[str, Family], ...] = (
    (
        _NAMED + r"gpt-4o|gpt-4\.[15]|gpt-5|gpt-oss|chatgpt-4o|o[134]|codex" + _ENDED,
        Family("o200k", O200K, exact=True),
    ),
    (_NAMED + r"gpt-4(?!\.)|gpt-3\.5|gpt-35" + _ENDED, Family("cl100k", CL100K, exact=True)),
    (r"gpt-", Family("gpt", O200K, 1.1)),
    (
        r"claude-(instant|[123](?!\d)|(opus|sonnet|haiku)-4(?!\d|[-.][7-9](?!\d)))",
        Family("claude-before-4.7", O200K, 1.2),
    ),
    (r"claude", Family("claude", O200K, 1.65)),
    (r"gemini|gemma", Family("gemini", O200K, 1.25)),
    (r"smollm", Family("smollm", O200K, 1.3)),
    (r"llama-?2|codellama|tinyllama|mixtral|mistral-7b", Family("llama-2", O200K, 1.3)),
    (r"llama", Family("llama", O200K, 1.1)),
    (r"qwen|qwq", Family("qwen", O200K, 1.2)),
    (r"deepseek", Family("deepseek", O200K, 1.1)),
    (r"mistral|ministral|codestral|devstral|magistral|pixtral", Family("mistral", O200K, 1.25)),
    (r"command-", Family("command", O200K, 1.2)),
)


@functools.lru_cache(maxsize=256)
def family_of(model: str) -> Family:
    name = model.lower()
    return next((family for expression, family in FAMILIES if re.search(expression, name)), UNKNOWN)
