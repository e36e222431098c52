"""The tables `[providers.NAME]`: their names, their keys, what fits, and what is never shown.

Knows no provider's address and no environment; like the whole floor it imports nothing heavy until a file is read.
"""

from __future__ import annotations

from .errors import SettingsError
from .keys import KEYS, Key, meant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from .keys import Kind, Value

TABLE = "providers"
TYPES = ("openai", "openai-responses", "anthropic", "gemini", "ollama", "local")
"""The interfaces that are spoken; each is also the name of a provider that is there without a table."""

FIXED = ("echo", "scripted")
"""Providers that have nothing to set."""

MASK = "(set)"
"""What is shown in a secret's place. It is refused as a value, so that nobody writes back what was shown."""

MAX_KEY_LENGTH = 8192
"""Longer than any token that is in use; what is longer is a file that was pasted by mistake."""

MAX_URL_LENGTH = 2048
MAX_TOKENS = 1_000_000_000

_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_DIGITS = frozenset("0123456789")
_NAME = _LETTERS | _DIGITS | frozenset("_-")
_VARIABLE = _LETTERS | _DIGITS | frozenset("_")
_OURS = ("host", "content-length", "transfer-encoding", "connection")
"""Headers that say where a request ends and who it is for: another value would cut it elsewhere."""

_HEADER = _LETTERS | _DIGITS | frozenset("!#$%&'*+-.^_`|~")
_FACTS = ("window", "max_output", "prices")
_PRICES = ("input", "output", "cached")


class Field(Key):
    """A key that every provider's table has. `quiet` ones are not repeated in an error: they may hold a secret."""

    __slots__ = ("_fits", "_words", "quiet", "secret")

    def __init__(
        self,
        name: str,
        kind: Kind,
        default: Value,
        doc: str,
        *,
        words: str = "",
        fits: Callable[[Any], bool] | None = None,
        choices: tuple[str, ...] = (),
        low: int = 0,
        high: int = 0,
        shown: str | None = None,
        secret: bool = False,
    ) -> None:
        super().__init__(
            name, kind, default, doc, choices=choices, low=low, high=high, project="never", shown=shown
        )
        self._words = words
        self._fits = fits
        self.secret = secret
        self.quiet = fits is not None

    @property
    def expected(self) -> str:
        return self._words or super().expected

    def narrow(self, value: object) -> Value:
        if self._fits is None:
            return super().narrow(value)
        return value if self._fits(value) else None  # type: ignore[return-value]


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
    if not isinstance(value, str) or len(value) > MAX_URL_LENGTH:
        return False
    if not all("!" <= char <= "~" for char in value) or any(char in value for char in "?#@\\"):
        return False
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(value)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _is_variable(value: object) -> bool:
    return (
        isinstance(value, str)
        and 0 < len(value) <= 128
        and _VARIABLE.issuperset(value)
        and value[0] not in _DIGITS
    )


def _are_headers(value: object) -> bool:
    return isinstance(value, dict) and all(_is_header(name, text) for name, text in value.items())


def _is_header(name: str, text: object) -> bool:
    return (
        name != ""
        and _HEADER.issuperset(name)
        and name.lower() not in _OURS
        and isinstance(text, str)
        and text == text.strip()
        and len(text) <= MAX_KEY_LENGTH
        and text != MASK
        and all(" " <= char <= "~" for char in text)
    )


def _are_models(value: object) -> bool:
    return isinstance(value, dict) and _mistaken_model(value) is None


FIELDS: dict[str, Field] = {
    field.name: field
    for field in (
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
            secret=True,
        ),
        Field(
            "headers",
            "text",
            None,
            "Headers to send with every request. Their values are never shown.",
            words="a table of header names and their text",
            fits=_are_headers,
            secret=True,
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
        ),
    )
}


def find(name: str) -> Key | None:
    """The key with this dotted name, of the table of keys or of a provider's table."""
    table, _, rest = name.partition(".")
    if table != TABLE:
        return KEYS.get(name)
    provider, _, field = rest.partition(".")
    return FIELDS.get(field) if is_name(provider) else None


def is_name(name: str) -> bool:
    return 0 < len(name) <= 64 and _NAME.issuperset(name) and name not in FIXED


def flat(tables: object) -> dict[str, Any]:
    """The providers' tables as values by dotted key. Raises for what is no table, and for a name that none has."""
    found: dict[str, Any] = {}
    if not isinstance(tables, dict):
        raise SettingsError(TABLE, f"expected the table [{TABLE}], found a value")
    for name, table in tables.items():
        dotted = f"{TABLE}.{name}"
        if not is_name(name):
            raise _misnamed(name)
        if not isinstance(table, dict):
            raise SettingsError(dotted, f"expected the table [{dotted}], found a value")
        found.update({f"{dotted}.{field}": value for field, value in table.items()})
    return found


def check_types(tables: Mapping[str, Mapping[str, object]]) -> None:
    """A provider whose name is no type must say which it is of."""
    for name, table in tables.items():
        if name not in TYPES and "type" not in table:
            choices = ", ".join(f'"{choice}"' for choice in TYPES)
            raise SettingsError(
                f"{TABLE}.{name}", "`type` is missing", hint=f"Set it in the same file to one of {choices}"
            )


def unknown(name: str) -> SettingsError:
    """There is no such key in a provider's table."""
    provider, _, field = name.partition(".")[2].partition(".")
    if not is_name(provider):
        return _misnamed(provider)
    hint = meant(field, list(FIELDS)) if field else None
    keys = ", ".join(f"`{key}`" for key in FIELDS)
    names = (TABLE, provider, field) if field else None
    return SettingsError(
        name, "there is no such setting", hint=hint or f"[{TABLE}.{provider}] has {keys}", names=names
    )


def mistake(name: str, value: object) -> SettingsError | None:
    """What exactly is wrong within a table of models; None when `name` is no such table."""
    if not name.endswith(".models") or not isinstance(value, dict):
        return None
    found = _mistaken_model(value)
    if found is None:
        return None
    path, message, hint = found
    return SettingsError(name, f"{path[0]!r:.80}: {message}", hint=hint, names=(*name.split(".", 2), *path))


def shown(name: str, value: Any) -> Any:
    """The value as anybody may see it."""
    key = find(name)
    if not isinstance(key, Field) or not key.secret or value is None:
        return value
    return dict.fromkeys(value, MASK) if isinstance(value, dict) else MASK


def by_name(values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The providers' values by name and key, out of all values by dotted key."""
    found: dict[str, dict[str, Any]] = {}
    for dotted, value in values.items():
        if dotted.startswith(TABLE + "."):
            _, name, field = dotted.split(".", 2)
            found.setdefault(name, {})[field] = value
    return found


def _misnamed(name: str) -> SettingsError:
    if name in FIXED:
        return SettingsError(f"{TABLE}.{name}", "this provider has nothing to set")
    return SettingsError(
        f"{TABLE}.{name}",
        "a provider's name has 1 to 64 letters, digits, `_` and `-`",
        names=(TABLE, name),
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
