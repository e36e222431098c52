"""Handlers whose modules are imported on the first call, so that the start does not wait for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sidecar_protocol.peer import Call

from ...rpc.dispatch import Handler


def lazy_handlers(names: Sequence[str], make: Callable[[], Mapping[str, Handler]]) -> dict[str, Handler]:
    """Handlers of these methods; `make` returns the real ones, all of them, once."""
    handlers: dict[str, Handler] = {}

    def stand_in(name: str) -> Handler:
        async def serve(call: Call, params: Any) -> Any:
            if not handlers:
                handlers.update(make())
            return await handlers[name](call, params)

        return serve

    return {name: stand_in(name) for name in names}
