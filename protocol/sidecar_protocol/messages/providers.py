"""Which providers are ready, and with which key. A key is only ever sent to the sidecar, never back."""

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
    """The part before the colon of a model's id."""
    type: str
    """The API that it has: openai, openai-responses, anthropic, gemini, ollama or local."""
    needs_key: bool
    """Whether it needs a key."""
    ready: bool
    """Whether it can be used: it has a key, or needs none. No request is sent; `providers/test` sends one."""
    base_url: str | None = None
    """Its address; absent for what runs on this machine."""
    key_source: Literal["memory", "environment", "configuration", "keyring"] | None = None
    """Where its key comes from; absent when there is none."""
    key_env: str | None = None
    """The environment variable of its key."""
    reason: str | None = None
    """Why it is not ready, in English."""
    code: Literal["no_key", "bad_key", "bad_address", "not_installed"] | None = None
    """The same, by name; an app has its own text for it."""


class ProvidersListResult(Wire, kw_only=True, frozen=True):
    items: list[ProviderInfo]
    """The providers: those that need no configuration first, then those of the settings."""
    next_cursor: str | None = None
    """For the next page; absent on the last."""


class ProvidersConfigureParams(Params, kw_only=True, frozen=True):
    """Absent members do not change; null resets one."""

    provider: str
    """Its name."""
    api_key: str | UnsetType | None = UNSET
    """Its key; null removes the key of that `store`. A key in memory takes precedence over all others."""
    base_url: str | UnsetType | None = UNSET
    """Its address, for this process only; to keep it, set `providers.NAME.base_url` with `settings/write`."""
    store: Literal["memory", "keyring"] = "memory"
    """Where the key is stored: in memory until the process ends, or in the operating system's keyring."""


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
