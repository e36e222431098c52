"""Undoes an import that was cut off. The caller holds the chat's lease."""

from __future__ import annotations

from typing import Any, Protocol

from ...model.chats import Chat
from ...model.events import NewEvent
from ...store import Store
from ..journal.recorder import Recorder


class ImportedChat(Protocol):
    """The chat that was imported into."""

    chat: Chat
    recorder: Recorder

    @property
    def store(self) -> Store: ...
    def mark_deleted(self) -> None: ...


async def take_back(session: ImportedChat, begun_seq: int, data: dict[str, Any]) -> None:
    """Undo an import that did not end: remove the chat that it created, or hide the turns that it added."""
    if data.get("created"):
        await session.store.imports.remove(session.chat.id)
        session.mark_deleted()
        return
    await hide_added(session, begun_seq)
    await session.recorder.record(
        NewEvent("import.ended", {"importId": data["importId"], "outcome": "cancelled"}), last=True
    )


async def hide_added(session: ImportedChat, begun_seq: int) -> None:
    """Rewind past all turns that an import has added, slice by slice."""
    while added := await session.store.imports.newest_added(session.chat.id, begun_seq):
        hidden = [turn.id for turn in reversed(added)]
        await session.recorder.record(
            NewEvent("chat.rewound", {"head": added[-1].parent, "hidden": hidden}), last=True
        )
