"""From `provider:model` to the one who answers. Providers are made at first use, and kept."""

from __future__ import annotations

from ..model.failures import ProviderFailed
from .base import ModelEntry, Provider

NAMES = ("echo", "scripted")


class Registry:
    def __init__(self) -> None:
        self._made: dict[str, Provider] = {}

    def resolve(self, model: str) -> tuple[Provider, str]:
        """The provider of `model`, and what that provider calls it."""
        provider, colon, name = model.partition(":")
        if not colon or provider not in NAMES:
            raise ProviderFailed(
                "model_unknown",
                f"`model`: no provider for {model[:120]!r}; write provider:model with one of {', '.join(NAMES)}",
                params={"model": model[:120], "providers": list(NAMES)},
                action="choose_model",
            )
        return self._provider(provider, name), name

    def models(self, chosen: str) -> list[ModelEntry]:
        """The models that can be chosen, with `chosen` among them."""
        entries = self._provider("echo", "").models()
        if chosen.startswith("scripted:"):
            entries += self._provider("scripted", chosen.partition(":")[2]).models()
        return entries

    def _provider(self, provider: str, name: str) -> Provider:
        handle = f"{provider}:{name}" if provider == "scripted" else provider
        if handle not in self._made:
            self._made[handle] = _make(provider, name)
        return self._made[handle]


def _make(provider: str, name: str) -> Provider:
    if provider == "echo":
        from .echo import EchoProvider

        return EchoProvider()
    from .scripted import ScriptedProvider

    return ScriptedProvider(name)
