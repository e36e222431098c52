"""Forks a chat: creates another with its turns up to one of them.

A short history is committed with the new chat. A long one is appended in slices, like an import, so that other chats
write in between: until its end the new chat is not listed, and if it does not reach its end the chat is removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import anyio
import anyio.to_thread
import msgspec

from ...model.chats import Chat, ChatKey
from ...model.content import Turn
from ...model.events import NewEvent
from ...model.failures import Refused
from ...store import Store
from ...store.tables.turns import unknown_turn
from ..journal.identity import ChatAddress
from ..sessions.chats import Chats, OpenedChat
from ..tool_calls.output_index import index_outputs
from . import import_slices
from .history_import import ImportedHistory, TurnEvents
from .import_slices import ReportBytes

FORK_EVENTS = 500
"""Events that are committed at once: about as many as one slice has."""


class ForkedHistory(msgspec.Struct, frozen=True):
    """The turns of a chat that its fork starts with, and what belongs to them."""

    chat: Chat
    turns: list[Turn]
    imported: ImportedHistory

    @property
    def size(self) -> int:
        """About how many events it has."""
        return sum(len(turn.items) + 3 for turn in self.turns) + len(self.imported.patches)

    @property
    def is_short(self) -> bool:
        return self.size <= FORK_EVENTS

    def events(self) -> Iterator[NewEvent]:
        """The events of the new chat. Call `next` in a thread: there may be many."""
        blank = msgspec.structs.replace(self.chat, head=None, title=None, config={}, open_files=[])
        made = TurnEvents(blank, renumber=False)
        for turn in self.turns:
            yield from made.of(msgspec.structs.replace(turn, siblings=[], hidden=False))
        yield from made.end(self.imported, blank)


async def fork(
    chats: Chats, address: ChatAddress, new_chat_id: str, at: str | None, report: ReportBytes
) -> OpenedChat:
    """Create another chat with this one's turns up to `at`, and the open files and ledger that belong to them.
    `report` gets the progress of a long one, in events.
    """
    source = await chats.existing_session(address)
    history = await _read_history(chats.store, source.chat.id, at)
    key = chats.key(ChatAddress(new_chat_id, None, address.namespace or history.chat.key.namespace, None))
    assert not isinstance(key, str)
    # One transaction: no client ever sees half of it, and nothing needs undoing.
    if history.is_short:
        with anyio.CancelScope(shield=True):
            await _create(chats.store, key, history, list(history.events()))
            opened = await _open(chats, key)
    else:
        opened = await _create_in_slices(chats, key, history, report)
    items = [item for turn in history.turns for item in turn.items]
    opened.session.run_in_background(index_outputs, opened.session.environment, items)
    return msgspec.structs.replace(opened, created=True)


async def _create_in_slices(
    chats: Chats, key: ChatKey, history: ForkedHistory, report: ReportBytes
) -> OpenedChat:
    begun = import_slices.begun_event(created=True)
    with anyio.CancelScope(shield=True):  # once it is in the journal, it needs an end
        chat = await _create(chats.store, key, history, [begun], leased=True)
        opened = await _open(chats, key)

    def report_events(done: int) -> None:
        report(min(done, history.size), history.size)

    try:
        await import_slices.append(opened.session, history.events(), begun, chat.last_seq, report_events)
    # Also when cancelled: half a fork would look like a chat with fewer turns.
    except BaseException:
        with anyio.CancelScope(shield=True):
            await chats.store.imports.remove(chat.id)
            chats.forget(key.session_id)
        raise
    return opened


async def _create(
    store: Store, key: ChatKey, history: ForkedHistory, events: list[NewEvent], *, leased: bool = False
) -> Chat:
    chat = history.chat
    return await store.chats.create_with(
        key, chat.project_path, chat.config, events, secrets_of=chat.id, leased=leased
    )


async def _open(chats: Chats, key: ChatKey) -> OpenedChat:
    return await chats.open(ChatAddress(None, None, None, key.session_id), create=False)


async def _read_history(store: Store, id: int, at: str | None) -> ForkedHistory:
    chat, turns = await store.turns.all(id)
    path = _turns_up_to(turns, at or _last_ended(turns))
    entries = await store.patches.all(id)
    wanted = {turn.id for turn in path}
    end = await store.turns.end_seq(id, path[-1].id)
    imported = ImportedHistory(
        title=chat.title,
        title_by=chat.title_by,
        patches=[entry.patch for entry in entries if entry.patch.turn_id in wanted],
        cleared={entry.patch.id for entry in entries if entry.cleared},
        open_files=await store.patches.open_files_at(id, end or chat.last_seq),
    )
    return ForkedHistory(chat, path, imported)


def _turns_up_to(turns: Sequence[Turn], at: str | None) -> list[Turn]:
    by_id = {turn.id: turn for turn in turns}
    if at is None or at not in by_id:
        if at is None:
            raise Refused("precondition_failed", "This chat has no ended turn to fork at")
        raise unknown_turn(at)
    if by_id[at].status == "running":
        raise Refused(
            "precondition_failed", "`at`: the turn has not ended yet", params={"field": "at.turnId"}
        )
    path: list[Turn] = []
    step: str | None = at
    while step is not None and step in by_id:
        path.append(by_id[step])
        step = by_id[step].parent_turn_id
    return path[::-1]


def _last_ended(turns: Sequence[Turn]) -> str | None:
    ended = [turn.id for turn in turns if not turn.hidden and turn.status != "running"]
    return ended[-1] if ended else None
