"""The tables `[providers.NAME]`: their keys, valid values, and what is never shown.

Knows no URL of a provider and no environment; like the whole layer it imports nothing heavy until a file is read.
"""

from __future__ import annotations

from .errors import SettingsError
from .key import suggestion_for
from .tables import (
    DIGITS,
    LETTERS,
    MASK,
    MAX_KEY_LENGTH,
    Field,
    NamedTables,
    headers_field,
    is_address,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

TYPES = ("openai", "openai-responses", "anthropic", "gemini", "ollama", "local")
"""The supported APIs; each is also the name of a provider that exists without a table."""

BUILTIN_NAMES = ("echo", "scripted")
"""Providers that have nothing to set."""

MAX_TOKENS = 1_000_000_000

_VARIABLE = LETTERS | DIGITS | frozenset("_")
_FACTS = ("window", "max_output", "prices")
_PRICES = ("input", "output", "cached")


def is_api_key(value: object) -> bool:
    """Return whether it can be a key in a header: visible ASCII, no blanks."""
    return (
        isinstance(value, str)
        and 0 < len(value) <= MAX_KEY_LENGTH
        and value != MASK
        and all("!" <= char <= "~" for char in value)
    )


def is_base_url(value: object) -> bool:
    """Return whether it is an http(s) URL without user, password, query and fragment."""
    return is_address(value) and not any(char in str(value) for char in "?#@")


def _type_error(name: str, table: Mapping[str, object]) -> SettingsError | None:
    """Check that a provider whose name is not a type has a type."""
    if name in TYPES or "type" in table:
        return None
    choices = ", ".join(f'"{choice}"' for choice in TYPES)
    return SettingsError(
        f"providers.{name}", "`type` is missing", hint=f"Set it in the same file to one of {choices}"
    )


def _is_variable(value: object) -> bool:
    return (
        isinstance(value, str)
        and 0 < len(value) <= 128
        and _VARIABLE.issuperset(value)
        and value[0] not in DIGITS
    )


def _are_models(value: object) -> bool:
    return isinstance(value, dict) and _model_error(value) is None


def _models_error(name: str, value: object) -> SettingsError | None:
    """Return the exact error within a table of models."""
    found = _model_error(value) if isinstance(value, dict) else None
    if found is None:
        return None
    path, message, hint = found
    return SettingsError(name, f"{path[0]!r:.80}: {message}", hint=hint, names=(*name.split(".", 2), *path))


PROVIDER_TABLES = NamedTables(
    "providers",
    "provider",
    (
        Field(
            "type",
            "text",
            None,
            "The API of the provider.",
            choices=TYPES,
            shown="NAME, when that is a type",
        ),
        Field(
            "base_url",
            "text",
            None,
            "The address of the API. The key of the type's default variable is not sent to another address.",
            words="an http or https address without user, password and query",
            fits=is_base_url,
            shown="the type's own",
        ),
        Field(
            "api_key_env",
            "text",
            None,
            "The environment variable that contains the key.",
            words="the name of an environment variable (not the key itself)",
            fits=_is_variable,
            shown="the type's own",
        ),
        Field(
            "api_key",
            "text",
            None,
            "The key itself, if the environment has none. Prefer the keyring. Never shown.",
            words="a key: visible ASCII characters without blanks",
            fits=is_api_key,
            masked=lambda _: MASK,
        ),
        headers_field(),
        Field(
            "timeout",
            "seconds",
            300.0,
            "How long to wait for the next bytes of a response.",
            low=1,
            high=3600,
        ),
        Field("retries", "integer", 4, "How often a request is repeated after a temporary failure.", high=20),
        Field(
            "models",
            "text",
            None,
            "Limits of models in tokens, and prices in US dollars per million tokens.",
            words='a table of models, such as {"qwen3" = {window = 32768, max_output = 8192, prices = {input = 0.1}}}',
            fits=_are_models,
            mistake=_models_error,
        ),
    ),
    _type_error,
    project="never",
    fixed=BUILTIN_NAMES,
)


def _model_error(models: dict[str, object]) -> tuple[tuple[str, ...], str, str | None] | None:
    """Return the first error in a table of models: where, what, and what was meant."""
    for model, facts in models.items():
        if not model.strip() or not model.isprintable():
            return (model,), "a model's name has no control characters and is not empty", None
        if not isinstance(facts, dict):
            return (model,), "expected a table such as {window = 32768}", None
        for fact, value in facts.items():
            wrong = _fact_error(fact, value)
            if wrong is not None:
                return (model, fact), *wrong
    return None


def _fact_error(fact: str, value: object) -> tuple[str, str | None] | None:
    if fact not in _FACTS:
        return _unknown_name(fact, _FACTS)
    if fact != "prices":
        fits = type(value) is int and 1 <= value <= MAX_TOKENS
        return None if fits else (f"`{fact}`: expected a whole number from 1 to {MAX_TOKENS}", None)
    if not isinstance(value, dict):
        return "`prices`: expected a table such as {input = 0.5, output = 1.5}", None
    for price, amount in value.items():
        if price not in _PRICES:
            return _unknown_name(price, _PRICES)
        if type(amount) not in (int, float) or not 0 <= amount <= 1_000_000:
            return f"`prices.{price}`: expected US dollars a million tokens, from 0", None
    return None


def _unknown_name(name: str, names: tuple[str, ...]) -> tuple[str, str | None]:
    known = "It takes " + ", ".join(f"`{each}`" for each in names)
    return f"`{name[:60]}`: there is no such key", suggestion_for(name, names) or known
