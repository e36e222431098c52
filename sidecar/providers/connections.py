"""From settings, environment, keyring and what the app says: how each provider is reached, and by which key.

A key goes to the host that it was given for: a vendor's own variable counts at the vendor's own address only.
Talks to nobody; every key that it learns is hidden from what the process writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from ..model.failures import Failure, ProviderFailed, invalid
from ..settings import Settings, SettingsError
from ..settings.providers import TYPES, is_api_key, is_base_url
from ..system import redact
from .connection import IDLE_S, RETRIES, Connection, KeySource, ModelFacts, ProviderType
from .keyrings import Keyring

KeyStore = Literal["memory", "keyring"]


class Vendor(msgspec.Struct, frozen=True):
    """What holds for a type without any configuration: the variables of key and address, and the address."""

    keys: tuple[str, ...]
    address: str | None
    base_url: str


VENDORS: dict[str, Vendor] = {
    "openai": Vendor(("OPENAI_API_KEY",), "OPENAI_BASE_URL", "https://api.openai.com/v1"),
    "openai-responses": Vendor(("OPENAI_API_KEY",), "OPENAI_BASE_URL", "https://api.openai.com/v1"),
    "anthropic": Vendor(("ANTHROPIC_API_KEY",), "ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
    "gemini": Vendor(
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        "GOOGLE_GEMINI_BASE_URL",
        "https://generativelanguage.googleapis.com",
    ),
    "ollama": Vendor(("OLLAMA_API_KEY",), "OLLAMA_HOST", "http://127.0.0.1:11434"),
    "local": Vendor((), None, ""),
}

KEYLESS = ("ollama", "local")
"""Types that answer without a key at their own address."""

OLLAMA_PORT = 11434

ADDRESS = "an http or https address without user, password and query"


class Description(msgspec.Struct, frozen=True):
    """A provider as a settings page shows it: everything but the key."""

    name: str
    type: ProviderType
    base_url: str | None
    key_source: KeySource | None
    key_env: str | None
    needs_key: bool
    ready: bool
    reason: str | None = None


class Connections:
    """`settings` is asked each time, so that what is written takes effect. What the app says is kept in memory."""

    def __init__(self, settings: Callable[[], Settings], environ: Mapping[str, str]) -> None:
        self._settings = settings
        self._environ = environ
        self._keys: dict[str, str] = {}
        self._base_urls: dict[str, str] = {}
        self._keyring = Keyring()

    def names(self) -> list[str]:
        """The providers that there are: those without configuration first, then the named ones."""
        return [*TYPES, *(name for name in self._tables() if name not in TYPES)]

    def get(self, name: str) -> Connection | None:
        """How a provider is reached, as far as that is known without waiting; None when there is no such one.

        A key that only the keyring has is missing until `connection` has asked for it. Raises ProviderFailed
        when the environment's address of it is none.
        """
        table = self._tables().get(name)
        if table is None and name not in TYPES:
            return None
        table = table or {}
        type: ProviderType = table.get("type", name)
        base_url, own = self._address(name, type, table)
        key, source, variable = self._key(name, type, table, own)
        headers = dict(table.get("headers", {}))
        redact.learn([key, *headers.values()])
        return Connection(
            name=name,
            type=type,
            base_url=base_url,
            official=base_url == VENDORS[type].base_url,
            key=key,
            key_source=source,
            key_env=variable,
            headers=headers,
            timeout=table.get("timeout", IDLE_S),
            retries=table.get("retries", RETRIES),
            models={model: ModelFacts(**facts) for model, facts in table.get("models", {}).items()},
        )

    async def connection(self, name: str) -> Connection | None:
        """As `get`; the keyring is asked, once, when there is no other key."""
        found = self.get(name)
        if found is None or found.key is not None or found.type == "local":
            return found
        await self._keyring.read(name)
        return self.get(name)

    async def describe(self, name: str) -> Description | None:
        """What may be shown of a provider; None when there is no such one."""
        try:
            found = await self.connection(name)
        except ProviderFailed as failure:
            type: ProviderType = self._tables().get(name, {}).get("type", name)
            return Description(name, type, None, None, None, type not in KEYLESS, False, failure.message)
        if found is None:
            return None
        needs_key = found.official and found.type not in KEYLESS
        reason = self._obstacle(found, needs_key)
        return Description(
            name=name,
            type=found.type,
            base_url=found.base_url or None,
            key_source=found.key_source,
            key_env=found.key_env,
            needs_key=needs_key,
            ready=reason is None,
            reason=reason,
        )

    async def configure(
        self,
        name: str,
        *,
        api_key: str | UnsetType | None = UNSET,
        base_url: str | UnsetType | None = UNSET,
        store: KeyStore = "memory",
    ) -> None:
        """Give a provider a key or, for this process, an address; None takes it back, UNSET leaves it."""
        self._check(name, api_key, base_url)
        if not isinstance(api_key, UnsetType):
            redact.learn([api_key])
            if store == "keyring":
                await self._keyring.write(name, api_key)
            else:
                _put(self._keys, name, api_key)
        if not isinstance(base_url, UnsetType):
            _put(self._base_urls, name, base_url.rstrip("/") if base_url else None)

    def unknown(self, name: str) -> Failure:
        """The refusal of a provider that does not exist. What was given is not repeated: it may be a key."""
        known = self.names()
        failure = invalid("provider", f"one of {', '.join(known)}")
        failure.params = {**(failure.params or {}), "known": known}
        return failure

    def _check(self, name: str, api_key: str | UnsetType | None, base_url: str | UnsetType | None) -> None:
        if name not in self.names():
            raise self.unknown(name)
        type = self._tables().get(name, {}).get("type", name)
        if type == "local" and not (_is_nothing(api_key) and _is_nothing(base_url)):
            raise invalid("provider", "one that takes a key or an address; `local` runs on this machine")
        if not _is_nothing(api_key) and not is_api_key(api_key):
            raise invalid("apiKey", "a key of visible ASCII characters without blanks")
        if not _is_nothing(base_url) and not is_base_url(base_url):
            raise invalid("baseUrl", ADDRESS)

    def _tables(self) -> Mapping[str, Mapping[str, Any]]:
        try:
            return self._settings().providers
        except SettingsError as error:
            raise Failure("precondition_failed", str(error), action="fix_settings") from error

    def _address(self, name: str, type: ProviderType, table: Mapping[str, Any]) -> tuple[str, bool]:
        """Where a provider is, and whether that is where its type's own variables belong."""
        vendor = VENDORS[type]
        given = self._base_urls.get(name) or table.get("base_url")
        if given:
            base_url = str(given).rstrip("/")
            return base_url, base_url == vendor.base_url
        found = self._environ.get(vendor.address, "").strip() if vendor.address else ""
        if not found:
            return vendor.base_url, True
        base_url = _ollama_url(found) if type == "ollama" else found
        if not is_base_url(base_url):
            # To go on with the vendor's own address would send there what was meant to stay elsewhere.
            message = f"{vendor.address}: expected {ADDRESS}"
            raise ProviderFailed("offline", message, action="fix_settings")
        return base_url.rstrip("/"), True

    def _key(
        self, name: str, type: ProviderType, table: Mapping[str, Any], own: bool
    ) -> tuple[str | None, KeySource | None, str | None]:
        """The key, where it comes from, and the variable that holds it or is meant to."""
        if "api_key_env" in table:
            variables: tuple[str, ...] = (table["api_key_env"],)
        else:
            variables = VENDORS[type].keys if own else ()
        found = {variable: self._environ.get(variable, "").strip() for variable in variables}
        redact.learn(found.values())
        held = [variable for variable, key in found.items() if is_api_key(key)]
        variable = next(iter((*held, *variables)), None)
        if name in self._keys:
            return self._keys[name], "memory", variable
        if held:
            return found[held[0]], "environment", variable
        if "api_key" in table:
            return table["api_key"], "configuration", variable
        kept = (self._keyring.known(name) or "").strip()
        return (kept, "keyring", variable) if is_api_key(kept) else (None, None, variable)

    def _obstacle(self, found: Connection, needs_key: bool) -> str | None:
        """Why a provider cannot be used now, as far as that is known without asking it."""
        if found.type == "local":
            from importlib.util import find_spec

            return None if find_spec("xllamacpp") else "not installed: pip install 'sidecar[local]'"
        if found.key is not None or not needs_key:
            return None
        if found.key_env and self._environ.get(found.key_env, "").strip():
            return f"{found.key_env} holds characters that no key has"
        place = f"set {found.key_env} or " if found.key_env else ""
        return f"no key: {place}enter one" + (f" ({self._keyring.trouble})" if self._keyring.trouble else "")


def _put(kept: dict[str, str], name: str, value: str | None) -> None:
    if value is None:
        kept.pop(name, None)
    else:
        kept[name] = value


def _is_nothing(value: object) -> bool:
    return value is None or isinstance(value, UnsetType)


def _ollama_url(host: str) -> str:
    """OLLAMA_HOST as an address. It is what the server listens on, so it may lack the scheme or the port, and
    be "any interface", which is reached at the loopback."""
    scheme, _, rest = host.rpartition("://")
    place, slash, path = rest.partition("/")
    name, port = _host_and_port(place)
    name = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "[::]": "[::1]"}.get(name, name)
    # With a scheme, its own port is the default, as Ollama's own client has it.
    port = port or {"": str(OLLAMA_PORT), "http": "80", "https": "443"}.get(scheme, "")
    return f"{scheme or 'http'}://{name}:{port}{slash}{path}"


def _host_and_port(place: str) -> tuple[str, str]:
    if place.startswith("["):
        name, _, port = place.partition("]")
        return name + "]", port.removeprefix(":")
    if place.count(":") > 1:
        return f"[{place}]", ""
    name, _, port = place.partition(":")
    return name, port
