"""How each provider is reached, and with which key: from settings, environment, keyring and the app.

A key is sent only to the host that it was given for: a vendor's variable counts at the vendor's own URL only. Makes
no requests; every key that it reads is redacted from what the process writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from ..model.failures import Failure, ProviderFailed, invalid_param
from ..settings import Settings, SettingsError
from ..settings.providers import TYPES, is_api_key, is_base_url
from ..system import redact
from ..system.distribution import install_command
from .endpoint import DEFAULT_RETRIES, DEFAULT_TIMEOUT_S, Endpoint, KeySource, ModelFacts, ProviderType
from .keyrings import Keyring

KeyStore = Literal["memory", "keyring"]


class Vendor(msgspec.Struct, frozen=True):
    """The defaults of a type: the variables of key and URL, and the URL."""

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
"""Types that need no key at their own URL."""

OLLAMA_PORT = 11434

ADDRESS_EXPECTED = "an http or https address without user, password and query"


ObstacleCode = Literal["no_key", "bad_key", "bad_address", "not_installed"]


class ProviderDescription(msgspec.Struct, frozen=True):
    """A provider as a settings page shows it: everything but the key."""

    name: str
    type: ProviderType
    base_url: str | None
    key_source: KeySource | None
    key_env: str | None
    needs_key: bool
    ready: bool
    reason: str | None = None
    code: ObstacleCode | None = None


class Obstacle(msgspec.Struct, frozen=True):
    """Why a provider cannot be used: a code for apps, and English."""

    code: ObstacleCode
    message: str


class Endpoints:
    """`settings` is called each time, so that a change takes effect. What the app configures is in memory only."""

    def __init__(self, settings: Callable[[], Settings], environ: Mapping[str, str]) -> None:
        self._settings = settings
        self._environ = environ
        self._keys: dict[str, str] = {}
        self._base_urls: dict[str, str] = {}
        self._keyring = Keyring()

    def names(self) -> list[str]:
        """Return the names of all providers: those without configuration first, then the named ones."""
        return [*TYPES, *(name for name in self._tables() if name not in TYPES)]

    def get(self, name: str) -> Endpoint | None:
        """Return how a provider is reached, as far as that is known without waiting; None when it does not exist.

        A key that only the keyring has is missing until `connection` has read it. Raises ProviderFailed when its URL
        in the environment is invalid.
        """
        table = self._tables().get(name)
        if table is None and name not in TYPES:
            return None
        table = table or {}
        type: ProviderType = table.get("type", name)
        base_url, own = self._address(name, type, table)
        key, source, variable = self._key(name, type, table, own)
        headers = dict(table.get("headers", {}))
        redact.add_secrets([key, *headers.values()])
        return Endpoint(
            name=name,
            type=type,
            base_url=base_url,
            official=base_url == VENDORS[type].base_url,
            key=key,
            key_source=source,
            key_env=variable,
            headers=headers,
            timeout=table.get("timeout", DEFAULT_TIMEOUT_S),
            retries=table.get("retries", DEFAULT_RETRIES),
            models={model: ModelFacts(**facts) for model, facts in table.get("models", {}).items()},
        )

    async def connection(self, name: str) -> Endpoint | None:
        """Like `get`, but read the keyring, once, when there is no other key."""
        found = self.get(name)
        if found is None or found.key is not None or found.type == "local":
            return found
        await self._keyring.read(name)
        return self.get(name)

    async def is_configured(self, name: str) -> bool:
        """Return whether this provider has a key, or an entry in the settings."""
        if name in self._tables():
            return True
        try:
            found = await self.connection(name)
        except ProviderFailed:
            return False
        return found is not None and found.key is not None

    async def describe(self, name: str) -> ProviderDescription | None:
        """Return what may be shown of a provider; None when it does not exist."""
        try:
            found = await self.connection(name)
        except ProviderFailed as failure:
            type: ProviderType = self._tables().get(name, {}).get("type", name)
            return ProviderDescription(
                name, type, None, None, None, type not in KEYLESS, False, failure.message, "bad_address"
            )
        if found is None:
            return None
        needs_key = found.official and found.type not in KEYLESS
        obstacle = self._obstacle(found, needs_key)
        return ProviderDescription(
            name=name,
            type=found.type,
            base_url=found.base_url or None,
            key_source=found.key_source,
            key_env=found.key_env,
            needs_key=needs_key,
            ready=obstacle is None,
            reason=obstacle.message if obstacle else None,
            code=obstacle.code if obstacle else None,
        )

    async def configure(
        self,
        name: str,
        *,
        api_key: str | UnsetType | None = UNSET,
        base_url: str | UnsetType | None = UNSET,
        store: KeyStore = "memory",
    ) -> None:
        """Set the key or, for this process, the URL of a provider; None removes it, UNSET leaves it unchanged."""
        self._check(name, api_key, base_url)
        if not isinstance(api_key, UnsetType):
            redact.add_secrets([api_key])
            if store == "keyring":
                await self._keyring.write(name, api_key)
            else:
                _set_or_remove(self._keys, name, api_key)
        if not isinstance(base_url, UnsetType):
            _set_or_remove(self._base_urls, name, base_url.rstrip("/") if base_url else None)

    def unknown(self, name: str) -> Failure:
        """Return the error for an unknown provider. The given name is not repeated: it may be a key."""
        known = self.names()
        failure = invalid_param("provider", f"one of {', '.join(known)}")
        failure.params = {**(failure.params or {}), "known": known}
        return failure

    def _check(self, name: str, api_key: str | UnsetType | None, base_url: str | UnsetType | None) -> None:
        if name not in self.names():
            raise self.unknown(name)
        type = self._tables().get(name, {}).get("type", name)
        if type == "local" and not (_is_removal(api_key) and _is_removal(base_url)):
            raise invalid_param(
                "provider", "one that takes a key or an address; `local` runs on this machine"
            )
        if not _is_removal(api_key) and not is_api_key(api_key):
            raise invalid_param("apiKey", "a key of visible ASCII characters without blanks")
        if not _is_removal(base_url) and not is_base_url(base_url):
            raise invalid_param("baseUrl", ADDRESS_EXPECTED)

    def _tables(self) -> Mapping[str, Mapping[str, Any]]:
        try:
            return self._settings().providers
        except SettingsError as error:
            raise Failure("precondition_failed", str(error), action="fix_settings") from error

    def _address(self, name: str, type: ProviderType, table: Mapping[str, Any]) -> tuple[str, bool]:
        """Return the URL of a provider, and whether the variables of its type apply there."""
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
            # Falling back to the vendor's URL would send data there that was meant for another host.
            message = f"{vendor.address}: expected {ADDRESS_EXPECTED}"
            raise ProviderFailed("offline", message, action="fix_settings")
        return base_url.rstrip("/"), True

    def _key(
        self, name: str, type: ProviderType, table: Mapping[str, Any], own: bool
    ) -> tuple[str | None, KeySource | None, str | None]:
        """Return the key, its origin, and the variable that holds it or should."""
        if "api_key_env" in table:
            variables: tuple[str, ...] = (table["api_key_env"],)
        else:
            variables = VENDORS[type].keys if own else ()
        found = {variable: self._environ.get(variable, "").strip() for variable in variables}
        redact.add_secrets(found.values())
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

    def _obstacle(self, found: Endpoint, needs_key: bool) -> Obstacle | None:
        """Return why a provider cannot be used now, as far as that is known without a request."""
        if found.type == "local":
            missing = Obstacle("not_installed", f"not installed: {install_command('local')}")
            return None if find_spec("xllamacpp") else missing
        if found.key is not None or not needs_key:
            return None
        if found.key_env and self._environ.get(found.key_env, "").strip():
            return Obstacle("bad_key", f"{found.key_env} holds characters that no key has")
        place = f"set {found.key_env} or " if found.key_env else ""
        trouble = f" ({self._keyring.trouble})" if self._keyring.trouble else ""
        return Obstacle("no_key", f"no key: {place}enter one{trouble}")


def _set_or_remove(kept: dict[str, str], name: str, value: str | None) -> None:
    if value is None:
        kept.pop(name, None)
    else:
        kept[name] = value


def _is_removal(value: object) -> bool:
    return value is None or isinstance(value, UnsetType)


def _ollama_url(host: str) -> str:
    """Return OLLAMA_HOST as a URL. It is what the server listens on, so it may lack the scheme or the port, and be
    "any interface", which is reached through loopback.
    """
    scheme, _, rest = host.rpartition("://")
    place, slash, path = rest.partition("/")
    name, port = _host_and_port(place)
    name = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "[::]": "[::1]"}.get(name, name)
    # With a scheme, the port of the scheme is the default, as in Ollama's own client.
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
