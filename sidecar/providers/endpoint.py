"""How a provider is reached: its URL, its key, its timeouts. Built by `endpoints`, used by the providers."""

from __future__ import annotations

from typing import Literal

import msgspec

ProviderType = Literal["openai", "openai-responses", "anthropic", "gemini", "ollama", "local"]
KeySource = Literal["memory", "environment", "configuration", "keyring"]

DEFAULT_TIMEOUT_S = 300.0
"""Reasoning models may be silent for minutes before the first token."""

DEFAULT_RETRIES = 4
"""With a backoff that doubles from half a second, these cover an outage of about eight seconds."""


class ModelFacts(msgspec.Struct, frozen=True):
    """What the user configured about a model: tokens, and US dollars per million tokens."""

    window: int | None = None
    max_output: int | None = None
    prices: dict[str, float] | None = None


class Endpoint(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """`name` is the part of a model id before the colon. `key` is never in the repr."""

    name: str
    type: ProviderType
    base_url: str
    official: bool
    """Whether `base_url` is the vendor's own; there nothing is requested without a key."""
    key: str | None = None
    key_source: KeySource | None = None
    key_env: str | None = None
    headers: dict[str, str] = {}
    timeout: float = DEFAULT_TIMEOUT_S
    retries: int = DEFAULT_RETRIES
    models: dict[str, ModelFacts] = {}

    def __repr__(self) -> str:
        return f"Connection({self.name!r}, {self.type!r}, key from {self.key_source})"
