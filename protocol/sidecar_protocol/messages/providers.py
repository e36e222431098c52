"""Who can answer, and by which key. A key travels in one direction only: to the sidecar."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from .base import Params, Wire
from .content import ErrorObject

__all__ = [
    "ProviderInfo",
    "ProvidersConfigureParams",
    "ProvidersConfigureResult",
    "ProvidersListResult",
    "ProvidersTestParams",
    "ProvidersTestResult",
]


class ProviderInfo(Wire, kw_only=True, frozen=True):
    """A provider as a settings page shows it. It never has the key."""

    name: str
    """What stands before the colon of a model's id."""
    type: str
    """The interface that it speaks: openai, openai-responses, anthropic, gemini, ollama or local."""
    needs_key: bool
    """Whether nothing can be asked of it without a key."""
    ready: bool
    """Whether it can be asked: a key is there, or none is needed. Nobody was asked; `providers/test` asks."""
    base_url: str | None = None
    """Where it is; absent for what runs on this machine."""
    key_source: Literal["memory", "environment", "configuration", "keyring"] | None = None
    """Where its key comes from; absent when there is none."""
    key_env: str | None = None
    """The environment variable that its key is looked for in."""
    reason: str | None = None
    """Why it is not ready, in English."""


class ProvidersListResult(Wire, kw_only=True, frozen=True):
    items: list[ProviderInfo]
    """The providers: those that need no configuration first, then those of the settings."""
    next_cursor: str | None = None
    """For the next page; absent on the last."""


class ProvidersConfigureParams(Params, kw_only=True, frozen=True):
    """What is absent stays as it is; null takes it back."""

    provider: str
    """Its name."""
    api_key: str | UnsetType | None = UNSET
    """Its key; null removes the key of that `store`. It goes before all other keys when kept in memory."""
    base_url: str | UnsetType | None = UNSET
    """Its address, for this process only; to keep it, set `providers.NAME.base_url` with `settings/write`."""
    store: Literal["memory", "keyring"] = "memory"
    """Where the key is kept: until the process ends, or in the operating system's keyring."""


class ProvidersConfigureResult(ProviderInfo, kw_only=True, frozen=True):
    """The provider as it is now."""


class ProvidersTestParams(Params, kw_only=True, frozen=True):
    provider: str
    """Its name."""
    model: str | None = None
    """Also look whether it has this model, with or without the provider's name before it."""


class ProvidersTestResult(Wire, kw_only=True, frozen=True):
    ok: bool
    """Whether it answered, and has the model."""
    error: ErrorObject | None = None
    """Why not: an error of the vocabulary."""
    models: int | None = None
    """How many models it offers."""
