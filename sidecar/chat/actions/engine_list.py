"""Lists the engines that can answer a chat."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio.to_thread

from ...system.lazy import lazy_module
from ..sessions.chats import Chats

if TYPE_CHECKING:
    from ...engines import listing
else:
    listing = lazy_module("sidecar.engines.listing")


async def engines(chats: Chats) -> list[listing.EngineState]:
    """Each engine, whether it is installed and logged in, and why not."""
    return await anyio.to_thread.run_sync(listing.engine_states, chats.services.engines)
