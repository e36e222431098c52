"""The handler of `hooks/list`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from sidecar_protocol import messages as m
from sidecar_protocol.messages.base import Key
from sidecar_protocol.peer import Call

from ...chat.actions import hook_listing
from ...chat.sessions.chats import Chats
from ...rpc.dispatch import Handler
from .wire import address_of, as_wire


class HookHandlers:
    def __init__(self, ready: Callable[[], Awaitable[Chats]]) -> None:
        self._chats = ready

    def handlers(self) -> Mapping[str, Handler]:
        return {"hooks/list": self._list}

    async def _list(self, call: Call, params: Key) -> m.HooksListResult:
        listed = await hook_listing.list_hooks(await self._chats(), address_of(params))
        return m.HooksListResult(items=[as_wire(one, m.HookInfo) for one in listed])
