"""Stores what the hooks of coding agents have put into a folder: prompts, tool calls and answers become turns of the
agent's chat, and long outputs go into the index. Keeps the texts that hooks give to models.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import groupby

import anyio.to_thread
import msgspec

from ...adapters.registry import ADAPTERS
from ...chat.actions.agent_calls import open_agent_chat
from ...chat.actions.agent_files import EVENTS, agents_folder
from ...chat.actions.history_import import TurnEvents
from ...chat.sessions.chats import Chats
from ...chat.sessions.session import Session
from ...model.chats import Chat
from ...model.content import Turn
from ...model.events import NewEvent
from ...model.failures import Failure
from ...model.index import NewSource
from ...settings import MEMORY
from ...system import redact
from ...system.safe_open import FileRefused, read_regular
from .agent_texts import write_project_text, write_session_text
from .agent_turns import AgentEvent, label_of, turns_of, without_repeats

logger = logging.getLogger(__name__)

MAX_BYTES = 32 * 1024 * 1024
"""Of one event: the longest output that the settings allow, with each character escaped, and its input."""

BATCH = 200
"""Events that are stored at once, so that other chats get their turn."""

INDEXED_CHARACTERS = 2048
"""Shorter outputs are found by their turn."""


async def store_events(chats: Chats) -> int:
    """Store what waits, oldest first; return how many events. What cannot be stored now stays."""
    if chats.store.data_dir == MEMORY:
        return 0
    folder = agents_folder(chats.store.data_dir)
    events = await anyio.to_thread.run_sync(_read_waiting, os.path.join(folder, EVENTS))
    kept, stored = without_repeats(events)
    for _, group in groupby(kept, lambda event: (event.platform, event.session, event.project)):
        found = list(group)
        if await _store_group(chats, folder, found):
            stored += found
    for event in stored:
        with suppress(OSError):
            os.unlink(os.path.join(folder, EVENTS, event.name))
    for project in {event.project for event in stored}:
        await write_project_text(chats, folder, project)
    return len(stored)


async def _store_group(chats: Chats, folder: str, events: Sequence[AgentEvent]) -> bool:
    """Append the events of one session to its chat. One that was stored before a crash is not stored again."""
    first = events[0]
    adapter = ADAPTERS.get(first.platform)
    title = adapter.title if adapter else first.platform
    exists = await anyio.to_thread.run_sync(os.path.isdir, first.project)
    project = first.project if exists else None
    name = f"{title} in {os.path.basename(first.project)}" if project else title
    try:
        session = await open_agent_chat(chats, f"{first.platform}:{first.session}"[:500], project, name)
        stored = await _append(session, turns_of(events))
        await _index_outputs(chats, session.chat, [event for event in events if event.name in stored])
        if any(event.kind == "before_compaction" for event in events):
            await session.resume_snapshots.take_snapshot("compaction")
        await write_session_text(session, folder, first.platform, first.session)
    except Failure as failure:
        logger.warning("events of an agent were not stored", extra={"error": failure.message})
        return False
    return True


async def _append(session: Session, turns: Sequence[tuple[Turn, list[str]]]) -> set[str]:
    """Commit the turns that the chat does not have; return the names of their events."""
    known = {
        turn.id for turn, _ in turns if await session.store.turns.get(session.chat.id, turn.id) is not None
    }
    new = [(turn, names) for turn, names in turns if turn.id not in known]
    # Each follows the one before: without a parent, a turn would be another answer to what was before all of them.
    parents = [None, *(turn.id for turn, _ in new)]

    async def make() -> tuple[None, list[NewEvent]]:
        made = TurnEvents(session.chat, renumber=False)
        followed = (
            msgspec.structs.replace(turn, parent_turn_id=parent)
            for (turn, _), parent in zip(new, parents, strict=False)
        )
        return None, [event for turn in followed for event in made.of(turn)]

    if new:
        await session.apply(make)
    return {name for _, names in new for name in names}


async def _index_outputs(chats: Chats, chat: Chat, events: Iterable[AgentEvent]) -> None:
    settings = chats.services.settings(chat.project_path).values
    if not settings.index.enabled:
        return
    for event in events:
        long = event.kind == "after_tool" and len(event.text) >= INDEXED_CHARACTERS
        if long and settings.for_adapter(event.platform).index:
            await chats.services.index().keep(
                NewSource(
                    text=event.text,
                    label=label_of(event),
                    kind="output",
                    chat=chat.id,
                    project=chat.project_path,
                    tool=event.tool,
                )
            )


def _read_waiting(folder: str) -> list[AgentEvent]:
    """The oldest events. A file that is no event is removed: it would stand before all others for ever."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".json"))[:BATCH]
    except OSError:
        return []
    events = []
    for name in names:
        path = os.path.join(folder, name)
        try:
            text = redact.redact_text(read_regular(path, MAX_BYTES).decode())
            event = msgspec.json.decode(text, type=AgentEvent)
            events.append(msgspec.structs.replace(event, name=name))
        except (OSError, FileRefused, UnicodeDecodeError, msgspec.MsgspecError) as error:
            logger.warning("an event of an agent cannot be read", extra={"file": name, "error": str(error)})
            with suppress(OSError):
                os.unlink(path)
    return events
