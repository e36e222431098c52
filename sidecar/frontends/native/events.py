"""Writes the events of a followed chat as `event` notifications."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anyio.abc import TaskGroup

from ...chat.sessions.session import Session
from ...model.events import StoredEvent, encode
from ...rpc.wire import MessageWriter
from ...system.clock import now
from ...system.lazy import lazy_module
from ..attachments import Attachments
from .wire import EventEncoder

if TYPE_CHECKING:
    from . import files as file_handlers
else:
    file_handlers = lazy_module("sidecar.frontends.native.files")


class NativeSink:
    """Implements `EventSink`."""

    def __init__(self, session: Session, epoch: str, wire: MessageWriter) -> None:
        self._session = session
        self._encoder = EventEncoder(session.chat.key, epoch)
        self._wire = wire

    async def resolve(self, events: list[StoredEvent]) -> list[StoredEvent]:
        if any(event.type == "files.updated" for event in events):
            return await file_handlers.with_open_files(self._session, events)
        return events

    def send(self, event: StoredEvent) -> None:
        self._wire.send(self._encoder.notification(event))

    def send_deletion(self, cursor: int) -> None:
        self.send(StoredEvent(cursor + 1, cursor + 1, now(), None, "chat.deleted", encode({})))


NativeAttachments = Attachments[NativeSink]


def native_attachments(wire: MessageWriter, tasks: TaskGroup) -> NativeAttachments:
    """The chats that a client of this dialect follows."""
    return Attachments(wire, tasks, lambda session, epoch: NativeSink(session, epoch, wire))
