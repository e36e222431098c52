"""Handlers that are imported when one of them is first called: a start waits for none of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sidecar_protocol.peer import Call

from ...rpc.dispatch import Handler


def lazily(names: Sequence[str], make: Callable[[], Mapping[str, Handler]]) -> dict[str, Handler]:
    """Handlers of these methods; `make` gives the real ones, all of them, once."""
    table: dict[str, Handler] = {}

    def stand_in(name: str) -> Handler:
        async def serve(call: Call, params: Any) -> Any:
            if not table:
                table.update(make())
            return await table[name](call, params)

        return serve

    return {name: stand_in(name) for name in names}
