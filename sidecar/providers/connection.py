"""How a provider is reached: its address, its key, its patience. Made by `connections`, used by who talks."""

from __future__ import annotations

from typing import Literal

import msgspec

ProviderType = Literal["openai", "openai-responses", "anthropic", "gemini", "ollama", "local"]
KeySource = Literal["memory", "environment", "configuration", "keyring"]

IDLE_S = 300.0
"""Reasoning models may be silent for minutes before the first word."""

RETRIES = 4
"""With the back-off doubling from half a second, about eight seconds of a provider that is down."""


class ModelFacts(msgspec.Struct, frozen=True):
    """What the user says of a model: tokens, and US dollars a million tokens."""

    window: int | None = None
    max_output: int | None = None
    prices: dict[str, float] | None = None


class Connection(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """`name` is what stands before the colon of a model's id. `key` is in no repr."""

    name: str
    type: ProviderType
    base_url: str
    official: bool
    """Whether `base_url` is the provider's own; there nothing is asked without a key."""
    key: str | None = None
    key_source: KeySource | None = None
    key_env: str | None = None
    headers: dict[str, str] = {}
    timeout: float = IDLE_S
    retries: int = RETRIES
    models: dict[str, ModelFacts] = {}

    def __repr__(self) -> str:
        return f"Connection({self.name!r}, {self.type!r}, key from {self.key_source})"
