"""What a compaction needs from a chat. Does not know sessions or the turn runner."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

import anyio

from ...model.chats import Chat, EffectiveConfig
from ...model.events import NewEvent
from ...providers.base import Provider
from ...store.store import Store
from ..request.resume import ResumeSnapshots
from ..tool_calls.environment import ToolEnvironment

if TYPE_CHECKING:
    from ..request.build import BuiltRequest

T = TypeVar("T")


class CompactableChat(Protocol):
    """A chat that can be compacted. The end of a compaction clears `compacting` and sets `compaction_ended`."""

    chat: Chat
    environment: ToolEnvironment
    resume_snapshots: ResumeSnapshots
    compacting: bool
    compaction_ended: anyio.Event

    @property
    def store(self) -> Store: ...
    @property
    def config(self) -> EffectiveConfig: ...
    async def apply(self, make: Callable[[], Awaitable[tuple[T, list[NewEvent]]]]) -> tuple[T, int]: ...
    async def release_lease_if_idle(self) -> None: ...


class LastRequest(Protocol):
    """The newest request of a chat, and the model that it was sent to."""

    last_request: BuiltRequest | None

    async def resolve(self, model: str) -> tuple[Provider, str]: ...
    def compaction_ended(self) -> None: ...
