"""Handlers of methods about providers: which exist, their keys, whether they are ready. A key is never sent back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from sidecar_protocol import messages as m
from sidecar_protocol.messages.base import Empty
from sidecar_protocol.peer import Call

from ...model.failures import Failure, ProviderFailed
from ...rpc.dispatch import Handler, to_error
from ...rpc.wire import MessageWriter
from .progress import Progress

if TYPE_CHECKING:
    from ..base import Providers


class ProviderHandlers:
    def __init__(self, system: Providers, wire: MessageWriter) -> None:
        self._system = system
        self._wire = wire

    def handlers(self) -> Mapping[str, Handler]:
        return {
            "providers/list": self._list,
            "providers/configure": self._configure,
            "providers/test": self._test,
            "models/fetch": self._fetch,
        }

    async def _list(self, call: Call, params: Empty) -> m.ProvidersListResult:
        names = self._system.connections.names()
        return m.ProvidersListResult(items=[m.ProviderInfo(**await self._described(name)) for name in names])

    async def _configure(self, call: Call, params: m.ProvidersConfigureParams) -> m.ProvidersConfigureResult:
        await self._system.connections.configure(
            params.provider, api_key=params.api_key, base_url=params.base_url, store=params.store
        )
        self._system.models_changed(params.provider)
        return m.ProvidersConfigureResult(**await self._described(params.provider))

    async def _test(self, call: Call, params: m.ProvidersTestParams) -> m.ProvidersTestResult:
        connections = self._system.connections
        if params.provider not in connections.names():
            raise connections.unknown(params.provider)
        try:
            models = await self._system.test_provider(params.provider)
            _check_model(params.provider, params.model, models)
        except Failure as failure:
            error = to_error(failure)
            wire = m.ErrorObject(code=error.code, message=error.message, data=error.data)
            return m.ProvidersTestResult(ok=False, error=wire)
        return m.ProvidersTestResult(ok=True, models=len(models))

    async def _fetch(self, call: Call, params: m.ModelsFetchParams) -> m.ModelsFetchResult:
        progress = Progress(self._wire, str(call.id), "fetch")
        fetched = await self._system.fetch_model(params.name, progress.report)
        return m.ModelsFetchResult(
            model=fetched.model, path=fetched.path, bytes=fetched.size, fetched=fetched.fetched
        )

    async def _described(self, name: str) -> dict[str, Any]:
        found = await self._system.connections.describe(name)
        if found is None:
            raise self._system.connections.unknown(name)
        return msgspec.structs.asdict(found)


def _check_model(provider: str, model: str | None, models: list[str]) -> None:
    if model is not None and not {model, f"{provider}:{model}"} & set(models):
        raise ProviderFailed(
            "model_unknown",
            f"`model`: {provider} does not list {model[:120]!r}",
            params={"model": model[:120]},
            action="choose_model",
        )
