"""From `provider:model` to the one who answers. Providers are made at first use, and kept."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

import anyio

from ..model.failures import ProviderFailed
from .base import ModelEntry, Provider
from .connection import Connection
from .connections import Connections

if TYPE_CHECKING:
    from .http.dialect import Dialect

logger = logging.getLogger(__name__)

AUTO = "auto"
"""The model of a chat for which nobody has chosen one."""

TRIALS = ("echo", "scripted")
"""Providers that need nothing but themselves."""

OLLAMA_S = 0.5
"""An Ollama that runs on this machine answers within this."""

NO_MODEL = """\
No model is set up. Any one of these will do:
  set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY in the environment
  start Ollama with a model in it: ollama pull llama3.2
  install a small one: pip install 'sidecar[local]' && sidecar models fetch smollm2
  try without one: SIDECAR_MODEL=echo:"""


class Registry:
    def __init__(self, connections: Connections, models_dir: Callable[[], str]) -> None:
        self._connections = connections
        self._models_dir = models_dir
        self._made: dict[tuple[str, str], Provider] = {}
        self._chosen: str | None = None

    def resolve(self, model: str) -> tuple[Provider, str]:
        """The provider of `model`, and what that provider calls it."""
        provider, colon, name = model.partition(":")
        if provider in TRIALS and colon:
            return self._trial(provider, name), name
        connection = self._connections.get(provider) if colon else None
        if connection is None or not name:
            raise self._unknown(model)
        return self._provider(connection), name

    async def default(self) -> str:
        """The model that answers when nobody has chosen one; raises what to do when there is none."""
        if self._chosen is None:
            self._chosen = self._by_key() or await self._by_ollama() or await self._by_file()
        if self._chosen is None:
            raise ProviderFailed("no_key", NO_MODEL, action="enter_key")
        return self._chosen

    def forget(self) -> None:
        """Keys, addresses or files have changed: choose anew."""
        self._chosen = None

    async def models(self, provider: str | None, chosen: str | None) -> list[ModelEntry]:
        """The models that can be chosen, with `chosen` among them; all providers are asked at once."""
        names = [provider] if provider is not None else self._connections.names()
        found: dict[str, list[ModelEntry]] = {}

        async def ask(name: str) -> None:
            found[name] = await self._models_of(name)

        async with anyio.create_task_group() as tasks:
            for name in names:
                tasks.start_soon(ask, name)
        entries = [entry for name in names for entry in found[name]]
        if chosen and chosen not in {entry.id for entry in entries}:
            entries += self._described(chosen, provider)
        return [entry for entry in await self._trials(chosen) if provider in (None, entry.provider)] + entries

    async def test(self, name: str) -> list[ModelEntry]:
        """Ask a provider for its models; raises ProviderFailed with what is wrong."""
        connection = await self._connections.connection(name)
        if connection is None:
            raise self._connections.unknown(name)
        return await self._provider(connection).models()

    async def _models_of(self, name: str) -> list[ModelEntry]:
        try:
            connection = await self._connections.connection(name) if name not in TRIALS else None
        except ProviderFailed:
            return []  # its address in the environment is none; providers/list says so
        if connection is None:
            return []
        provider = self._provider(connection)
        try:
            return await provider.models()
        except ProviderFailed as failure:
            return provider.listed(failure.reason or "offline")
        except Exception:
            logger.exception("a provider could not list its models")
            return provider.listed("bad_reply")

    def _described(self, model: str, wanted: str | None) -> list[ModelEntry]:
        """The chosen model when its provider does not list it."""
        try:
            provider, name = self.resolve(model)
        except ProviderFailed:
            return []
        if wanted not in (None, model.partition(":")[0]) or model.partition(":")[0] in TRIALS:
            return []
        return [provider.known(name)]

    async def _trials(self, chosen: str | None) -> list[ModelEntry]:
        entries = await self._trial("echo", "").models()
        if chosen and chosen.startswith("scripted:"):
            entries += await self._trial("scripted", chosen.partition(":")[2]).models()
        return entries

    def _by_key(self) -> str | None:
        """The first vendor whose key is here."""
        from .catalogue import catalogue

        for name, model in catalogue().defaults.items():
            try:
                connection = self._connections.get(name)
            except ProviderFailed:
                continue  # its address in the environment is none; another vendor may do
            if connection and connection.key and connection.official:
                return f"{name}:{model}"
        return None

    async def _by_ollama(self) -> str | None:
        connection = self._connections.get("ollama")
        assert connection is not None
        with anyio.move_on_after(OLLAMA_S):
            try:
                listed = await self._provider(connection).models()
            except ProviderFailed:
                return None
            return next((entry.id for entry in listed if "embed" not in entry.id), None)
        return None

    async def _by_file(self) -> str | None:
        connection = self._connections.get("local")
        assert connection is not None
        listed = await self._provider(connection).models()
        return next((entry.id for entry in listed if entry.available), None)

    def _trial(self, provider: str, name: str) -> Provider:
        handle = (provider, name if provider == "scripted" else "")
        if handle not in self._made:
            self._made[handle] = _trial(provider, name)
        return self._made[handle]

    def _provider(self, connection: Connection) -> Provider:
        handle = (connection.name, connection.type)
        if handle not in self._made:
            self._made[handle] = self._make(connection)
        return self._made[handle]

    def _make(self, connection: Connection) -> Provider:
        if connection.type == "local":
            from .local.provider import LocalProvider

            return LocalProvider(self._models_dir())
        from .http.provider import HttpProvider

        return HttpProvider(connection.name, _dialect(connection.type), self._connections)

    def _unknown(self, model: str) -> ProviderFailed:
        names = [*TRIALS, *self._connections.names()]
        return ProviderFailed(
            "model_unknown",
            f"`model`: no provider for {model[:120]!r}; write provider:model with one of {', '.join(names)}",
            params={"model": model[:120], "providers": names},
            action="choose_model",
        )


def _trial(provider: str, name: str) -> Provider:
    if provider == "echo":
        from .echo import EchoProvider

        return EchoProvider()
    from .scripted import ScriptedProvider

    return ScriptedProvider(name)


def _dialect(type: str) -> Dialect:
    if type == "openai":
        from .http.openai_chat import OpenAIChat

        return OpenAIChat()
    if type == "openai-responses":
        from .http.openai_responses import OpenAIResponses

        return OpenAIResponses()
    if type == "anthropic":
        from .http.anthropic import Anthropic

        return Anthropic()
    if type == "gemini":
        from .http.gemini import Gemini

        return Gemini()
    from .http.ollama import Ollama

    return Ollama()
