"""The tables `[providers.NAME]`: their keys, what fits, and what is never shown.

Knows no provider's address and no environment; like the whole floor it imports nothing heavy until a file is read.
"""

from __future__ import annotations

from .errors import SettingsError
from .key import meant
from .tables import (
    DIGITS,
    LETTERS,
    MASK,
    MAX_KEY_LENGTH,
    Field,
    Tables,
    are_headers,
    is_address,
    mask_each,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

TYPES = ("openai", "openai-responses", "anthropic", "gemini", "ollama", "local")
"""The interfaces that are spoken; each is also the name of a provider that is there without a table."""

FIXED = ("echo", "scripted")
"""Providers that have nothing to set."""

MAX_TOKENS = 1_000_000_000

_VARIABLE = LETTERS | DIGITS | frozenset("_")
_FACTS = ("window", "max_output", "prices")
_PRICES = ("input", "output", "cached")


def is_api_key(value: object) -> bool:
    """Whether it can stand in a header as a key: visible ASCII, no blanks."""
    return (
        isinstance(value, str)
        and 0 < len(value) <= MAX_KEY_LENGTH
        and value != MASK
        and all("!" <= char <= "~" for char in value)
    )


def is_base_url(value: object) -> bool:
    """Whether it is an http(s) address without user, password, query and fragment."""
    return is_address(value) and not any(char in str(value) for char in "?#@")


def _of_a_type(name: str, table: Mapping[str, object]) -> SettingsError | None:
    """A provider whose name is no type must say which it is of."""
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
    return isinstance(value, dict) and _mistaken_model(value) is None


def _mistake(name: str, value: object) -> SettingsError | None:
    """What exactly is wrong within a table of models."""
    found = _mistaken_model(value) if isinstance(value, dict) else None
    if found is None:
        return None
    path, message, hint = found
    return SettingsError(name, f"{path[0]!r:.80}: {message}", hint=hint, names=(*name.split(".", 2), *path))


PROVIDERS = Tables(
    "providers",
    "provider",
    (
        Field(
            "type",
            "text",
            None,
            "The interface that it speaks.",
            choices=TYPES,
            shown="NAME, when that is a type",
        ),
        Field(
            "base_url",
            "text",
            None,
            "Where it is. With an address of its own, the key of the type's own variable is not sent there.",
            words="an http or https address without user, password and query",
            fits=is_base_url,
            shown="the type's own",
        ),
        Field(
            "api_key_env",
            "text",
            None,
            "The environment variable that holds the key.",
            words="the name of an environment variable (not the key itself)",
            fits=_is_variable,
            shown="the type's own",
        ),
        Field(
            "api_key",
            "text",
            None,
            "The key itself, where the environment has none. The keyring is the better place. Never shown.",
            words="a key: visible ASCII characters without blanks",
            fits=is_api_key,
            masked=lambda _: MASK,
        ),
        Field(
            "headers",
            "text",
            None,
            "Headers to send with every request. Their values are never shown.",
            words="a table of header names and their text",
            fits=are_headers,
            masked=mask_each,
        ),
        Field(
            "timeout",
            "seconds",
            300.0,
            "How long to wait for the next sign of life.",
            low=1,
            high=3600,
        ),
        Field("retries", "integer", 4, "How often a request that failed in passing is sent again.", high=20),
        Field(
            "models",
            "text",
            None,
            "What is known of models: tokens, and US dollars a million tokens.",
            words='a table of models, such as {"qwen3" = {window = 32768, max_output = 8192, prices = {input = 0.1}}}',
            fits=_are_models,
            mistake=_mistake,
        ),
    ),
    _of_a_type,
    project="never",
    fixed=FIXED,
)


def _mistaken_model(models: dict[str, object]) -> tuple[tuple[str, ...], str, str | None] | None:
    """The first thing that does not fit in a table of models: where, what, and what was meant."""
    for model, facts in models.items():
        if not model.strip() or not model.isprintable():
            return (model,), "a model's name has no control characters and is not empty", None
        if not isinstance(facts, dict):
            return (model,), "expected a table such as {window = 32768}", None
        for fact, value in facts.items():
            wrong = _mistaken_fact(fact, value)
            if wrong is not None:
                return (model, fact), *wrong
    return None


def _mistaken_fact(fact: str, value: object) -> tuple[str, str | None] | None:
    if fact not in _FACTS:
        return _no_such(fact, _FACTS)
    if fact != "prices":
        fits = type(value) is int and 1 <= value <= MAX_TOKENS
        return None if fits else (f"`{fact}`: expected a whole number from 1 to {MAX_TOKENS}", None)
    if not isinstance(value, dict):
        return "`prices`: expected a table such as {input = 0.5, output = 1.5}", None
    for price, amount in value.items():
        if price not in _PRICES:
            return _no_such(price, _PRICES)
        if type(amount) not in (int, float) or not 0 <= amount <= 1_000_000:
            return f"`prices.{price}`: expected US dollars a million tokens, from 0", None
    return None


def _no_such(name: str, names: tuple[str, ...]) -> tuple[str, str | None]:
    known = "It takes " + ", ".join(f"`{each}`" for each in names)
    return f"`{name[:60]}`: there is no such key", meant(name, names) or known
