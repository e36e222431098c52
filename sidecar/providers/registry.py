"""Map `provider:model` to a provider. Providers are created on first use, and cached."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import anyio

from ..model.failures import ProviderFailed
from ..system.distribution import install_command
from ..system.lazy import lazy_module
from ..text.suggest import did_you_mean
from .base import ModelEntry, Provider
from .endpoint import Endpoint
from .endpoints import Endpoints

if TYPE_CHECKING:
    from . import catalogue, echo, scripted
    from .http import anthropic, gemini, ollama, openai_chat, openai_responses
    from .http import provider as http_provider
    from .http.dialect import Dialect
    from .local import files as local_files
    from .local import provider as local_provider
else:
    catalogue = lazy_module("sidecar.providers.catalogue")
    echo = lazy_module("sidecar.providers.echo")
    anthropic = lazy_module("sidecar.providers.http.anthropic")
    gemini = lazy_module("sidecar.providers.http.gemini")
    ollama = lazy_module("sidecar.providers.http.ollama")
    openai_chat = lazy_module("sidecar.providers.http.openai_chat")
    openai_responses = lazy_module("sidecar.providers.http.openai_responses")
    http_provider = lazy_module("sidecar.providers.http.provider")
    local_files = lazy_module("sidecar.providers.local.files")
    local_provider = lazy_module("sidecar.providers.local.provider")
    scripted = lazy_module("sidecar.providers.scripted")

logger = logging.getLogger(__name__)

AUTO = "auto"
"""The model of a chat for which none was chosen."""

TEST_PROVIDERS = ("echo", "scripted")
"""Providers that need no configuration."""

OLLAMA_S = 0.5
"""A local Ollama responds within this time."""

NO_MODEL = f"""\
No model is set up. Any one of these will do:
  set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY in the environment
  start Ollama with a model in it: ollama pull llama3.2
  install a small one: {install_command("local")} && sidecar models fetch smollm2
  try without one: SIDECAR_MODEL=echo:"""


class ProviderRegistry:
    """`report_loading` gets the progress of loading a model of this machine."""

    def __init__(
        self,
        endpoints: Endpoints,
        models_dir: Callable[[], str],
        report_loading: Callable[[str, int, int], None] = lambda model, done, total: None,
    ) -> None:
        self._report_loading = report_loading
        self._endpoints = endpoints
        self._models_dir = models_dir
        self._made: dict[tuple[str, str], Provider] = {}
        self._chosen: str | None = None

    def resolve(self, model: str) -> tuple[Provider, str]:
        """Return the provider of `model`, and the provider's own name for the model."""
        provider, colon, name = model.partition(":")
        if provider in TEST_PROVIDERS and colon:
            return self._trial(provider, name), name
        connection = self._endpoints.get(provider) if colon else None
        if connection is None or not name:
            raise self._unknown_provider(model)
        return self._provider(connection), name

    def name_problem(self, model: str) -> str | None:
        """Say why there cannot be a model of this name; None when there can be. Asks no provider."""
        if model == AUTO:
            return None
        provider, colon, name = model.partition(":")
        known = [*TEST_PROVIDERS, *self._endpoints.names()]
        if not colon or provider not in known:
            near = did_you_mean(provider, known)
            meant = f"; did you mean `{near[0]}:{name}`?" if near and colon else ""
            return f"`provider:model` with one of {', '.join(known)}{meant}"
        if not name.strip() and provider != "echo":
            return f"`{provider}:` and the name of a model"
        return None

    async def obstacle(self, model: str) -> str | None:
        """Say why the provider of a model cannot be asked, such as a missing key; None when it can."""
        provider = model.partition(":")[0]
        described = await self._endpoints.describe(provider) if provider not in TEST_PROVIDERS else None
        return described.reason if described else None

    async def is_configured(self, model: str) -> bool:
        """Return whether the provider of the model has a key or an entry in the settings; test providers have
        neither.
        """
        provider, colon, name = model.partition(":")
        return bool(colon and name) and await self._endpoints.is_configured(provider)

    async def default(self) -> str:
        """Return the model to use when none was chosen; raise an error with the remedy when there is none."""
        if self._chosen is None:
            self._chosen = self._by_key() or await self._by_ollama() or await self._by_file()
        if self._chosen is None:
            raise ProviderFailed("no_key", NO_MODEL, action="enter_key")
        return self._chosen

    def cancel_loading(self, model: str) -> None:
        """Stop loading a model of this machine, if it is being loaded."""
        for (_, type), provider in self._made.items():
            if type == "local":
                cast("local_provider.LocalProvider", provider).cancel_loading(model)

    def forget(self) -> None:
        """Drop the cached choice after keys, URLs or files have changed."""
        self._chosen = None

    async def models(self, provider: str | None, chosen: str | None) -> list[ModelEntry]:
        """Return the models that can be chosen, with `chosen` among them; all providers are queried in parallel."""
        names = [provider] if provider is not None else self._endpoints.names()
        found: dict[str, list[ModelEntry]] = {}

        async def ask(name: str) -> None:
            found[name] = await self._models_of(name)

        async with anyio.create_task_group() as tasks:
            for name in names:
                tasks.start_soon(ask, name)
        entries = [entry for name in names for entry in found[name]]
        if chosen and chosen not in {entry.id for entry in entries}:
            entries += self._chosen_entry(chosen, provider)
        return [entry for entry in await self._trials(chosen) if provider in (None, entry.provider)] + entries

    async def test(self, name: str) -> list[ModelEntry]:
        """Request the models of a provider; raise ProviderFailed with the problem."""
        connection = await self._endpoints.connection(name)
        if connection is None:
            raise self._endpoints.unknown(name)
        return await self._provider(connection).models()

    async def _models_of(self, name: str) -> list[ModelEntry]:
        try:
            connection = await self._endpoints.connection(name) if name not in TEST_PROVIDERS else None
        except ProviderFailed:
            return []  # its URL in the environment is invalid; providers/list says so
        if connection is None:
            return []
        provider = self._provider(connection)
        try:
            return await provider.models()
        except ProviderFailed as failure:
            return provider.offline_entries(failure.reason or "offline")
        except Exception:
            logger.exception("a provider could not list its models")
            return provider.offline_entries("bad_reply")

    def _chosen_entry(self, model: str, wanted: str | None) -> list[ModelEntry]:
        """Return the chosen model when its provider does not list it."""
        try:
            provider, name = self.resolve(model)
        except ProviderFailed:
            return []
        if wanted not in (None, model.partition(":")[0]) or model.partition(":")[0] in TEST_PROVIDERS:
            return []
        return [provider.model_entry(name)]

    async def _trials(self, chosen: str | None) -> list[ModelEntry]:
        entries = await self._trial("echo", "").models()
        if chosen and chosen.startswith("scripted:"):
            entries += await self._trial("scripted", chosen.partition(":")[2]).models()
        return entries

    def _by_key(self) -> str | None:
        """Return the first vendor that has a key."""
        for name, model in catalogue.catalogue().defaults.items():
            try:
                connection = self._endpoints.get(name)
            except ProviderFailed:
                continue  # its URL in the environment is invalid; another vendor may work
            if connection and connection.key and connection.official:
                return f"{name}:{model}"
        return None

    async def _by_ollama(self) -> str | None:
        connection = self._endpoints.get("ollama")
        assert connection is not None
        with anyio.move_on_after(OLLAMA_S):
            try:
                listed = await self._provider(connection).models()
            except ProviderFailed:
                return None
            return next((entry.id for entry in listed if "embed" not in entry.id), None)
        return None

    async def _by_file(self) -> str | None:
        connection = self._endpoints.get("local")
        assert connection is not None
        listed = await self._provider(connection).models()
        available = [entry.id for entry in listed if entry.available]
        # Of those that `models fetch` knows the largest: whoever fetched it wants it to answer.
        known = [id for id in available if id.removeprefix("local:") in local_files.TITLES]
        return known[-1] if known else next(iter(available), None)

    def _trial(self, provider: str, name: str) -> Provider:
        handle = (provider, name if provider == "scripted" else "")
        if handle not in self._made:
            self._made[handle] = _trial(provider, name)
        return self._made[handle]

    def _provider(self, connection: Endpoint) -> Provider:
        handle = (connection.name, connection.type)
        if handle not in self._made:
            self._made[handle] = self._make(connection)
        return self._made[handle]

    def _make(self, connection: Endpoint) -> Provider:
        if connection.type == "local":
            return local_provider.LocalProvider(self._models_dir(), report_loading=self._report_loading)
        return http_provider.HttpProvider(connection.name, _dialect(connection.type), self._endpoints)

    def _unknown_provider(self, model: str) -> ProviderFailed:
        names = [*TEST_PROVIDERS, *self._endpoints.names()]
        return ProviderFailed(
            "model_unknown",
            f"`model`: no provider for {model[:120]!r}; write provider:model with one of {', '.join(names)}",
            params={"model": model[:120], "providers": names},
            action="choose_model",
        )


def _trial(provider: str, name: str) -> Provider:
    if provider == "echo":
        return echo.EchoProvider()
    return scripted.ScriptedProvider(name)


def _dialect(type: str) -> Dialect:
    if type == "openai":
        return openai_chat.OpenAIChat()
    if type == "openai-responses":
        return openai_responses.OpenAIResponses()
    if type == "anthropic":
        return anthropic.Anthropic()
    if type == "gemini":
        return gemini.Gemini()
    return ollama.Ollama()
