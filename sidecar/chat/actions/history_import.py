"""Converts an import to events: first a survey of all its lines, then the events turn by turn.

The survey finds errors before anything is written, and what concerns the whole: title, branches, blobs, ledger.
Pure: does no IO, and holds one turn at a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

import msgspec

from ...model import JsonObject
from ...model.chats import Chat
from ...model.content import Block, Item, Turn, Usage
from ...model.events import NewEvent
from ...model.files import Patch
from ...model.items import HISTORY_LEFT_OUT
from ...system.clock import now
from ..journal import event_factory
from ..journal.running_turn import new_id, turn_ended_event
from ..sessions.titles import first_words
from .import_lines import (
    MAX_BLOBS,
    MAX_ITEMS,
    MAX_PATCHES,
    MAX_TURNS,
    Blob,
    ExportHeader,
    ImportEntry,
    OpenFilesLine,
    PatchLine,
    Plain,
    WrongLine,
)

_TERMINAL = {"message": "message.completed", "thought": "thought.completed", "plan": "plan.updated"}


class ImportedHistory(msgspec.Struct):
    """What concerns a whole import. `head` is the newest visible turn, where an export names it."""

    turns: int = 0
    items: int = 0
    title: str | None = None
    title_by: str | None = None
    head: str | None = None
    config: JsonObject = {}
    header_keys: set[str] = set()
    """The keys of the first line."""
    blob_ids: set[str] = set()
    """The blobs that come with the source, by their hash."""
    turn_ids: set[str] = set()
    """The ids of turns that have their own; plain turns get theirs when they are written."""
    patches: list[Patch] = []
    cleared: set[str] = set()
    """Ids of patches that the user had cleared from the list."""
    open_files: list[JsonObject] = []


class ImportSurvey:
    """Takes every line once; `imported` is complete after the last one."""

    def __init__(self) -> None:
        self.imported = ImportedHistory()
        self._prompt_ids: set[str] = set()
        self._patch_ids: set[str] = set()
        self._items_of_turn = 0

    def take(self, entry: ImportEntry) -> None:
        """Add a line; WrongLine when it cannot be imported."""
        imported = self.imported
        match entry:
            case Plain():
                self._take_plain(entry)
            case Turn():
                self._take_turn(entry)
            case Blob():
                imported.blob_ids.add(entry.id)
                _check_count(len(imported.blob_ids), MAX_BLOBS, "blobs")
            case PatchLine():
                self._take_patch(entry)
            case OpenFilesLine():
                imported.open_files = entry.files
            case ExportHeader():
                imported.title, imported.title_by = entry.title, entry.title_by
                imported.head = entry.head
                imported.config = {**imported.config, **(entry.config or {})}
                imported.header_keys |= entry.keys

    def _take_plain(self, plain: Plain) -> None:
        _milliseconds(plain.ts)
        # As `TurnGrouper` groups them: the limits are checked before anything is written.
        if plain.role != "assistant" or not self.imported.turns:
            self._count_turn()
        self._count_items(1)

    def _take_turn(self, turn: Turn) -> None:
        if turn.id in self.imported.turn_ids:
            raise WrongLine("duplicate", f"another turn has the `id` {turn.id[:80]!r}")
        if turn.prompt_id in self._prompt_ids:
            raise WrongLine("duplicate", f"another turn has the `promptId` {turn.prompt_id[:80]!r}")
        self.imported.turn_ids.add(turn.id)
        self._prompt_ids.add(turn.prompt_id)
        self._count_turn()
        self._count_items(len(turn.items))

    def _take_patch(self, line: PatchLine) -> None:
        if line.patch.id in self._patch_ids:
            raise WrongLine("duplicate", f"another patch has the `id` {line.patch.id[:80]!r}")
        self._patch_ids.add(line.patch.id)
        _check_count(len(self._patch_ids), MAX_PATCHES, "patches")
        self.imported.patches.append(line.patch)
        if line.cleared:
            self.imported.cleared.add(line.patch.id)

    def _count_turn(self) -> None:
        self.imported.turns += 1
        self._items_of_turn = 0
        _check_count(self.imported.turns, MAX_TURNS, "turns")

    def _count_items(self, number: int) -> None:
        self._items_of_turn += number
        self.imported.items += number
        _check_count(self._items_of_turn, MAX_ITEMS, "items in one turn")


class TurnGrouper:
    """Groups lines to turns, in order: a user's line starts one, and the assistant's lines answer it."""

    def __init__(self) -> None:
        self._open: Turn | None = None

    def take(self, entry: ImportEntry) -> Turn | None:
        """The turn that ends before this line, if one does."""
        if isinstance(entry, Turn):
            ended, self._open = self._open, entry
            return ended
        if isinstance(entry, Plain):
            return self._take_plain(entry)
        return None

    def last(self) -> Turn | None:
        """The turn that ends with the last line."""
        ended, self._open = self._open, None
        return ended

    def _take_plain(self, plain: Plain) -> Turn | None:
        before = self._open
        at = _milliseconds(plain.ts) or (before.started_at if before else now())
        ended = None
        if before is None or plain.role != "assistant":
            ended, self._open = before, _empty_turn(at, before.id if before else None)
        assert self._open is not None
        self._open.items.append(_plain_item(plain, self._open.id, at))
        return ended


class TurnEvents:
    """The events that add turns to a chat, one turn after the other; the tree of turns is preserved.

    `chat` is the one that they are added to, None for a new one; `visible` are its turns, where new ones may begin at
    older ones.
    """

    def __init__(self, chat: Chat | None, *, renumber: bool, visible: Iterable[str] = ()) -> None:
        self._root = self._head = chat.head if chat else None
        self._renumber = renumber
        self._ids: dict[str, str] = {}
        self._visible: list[str] = list(visible)
        self._first_words: str | None = None

    def of(self, turn: Turn) -> Iterator[NewEvent]:
        if self._renumber:
            turn = self._with_new_ids(turn)
        parent = turn.parent_turn_id or self._root
        if parent != self._head:
            # Hidden branches come in by the same events as a user's rewind: the journal knows no other way.
            yield self._rewind(parent)
        yield from _turn_events(turn, parent)
        self._visible.append(turn.id)
        self._head = turn.id
        if self._first_words is None:
            self._first_words = first_title([turn])

    def end(self, imported: ImportedHistory, chat: Chat) -> Iterator[NewEvent]:
        """The events after the last turn: the ledger, then the head, title, configuration and open files."""
        patches = [_with_new_turn(patch, self._ids) for patch in imported.patches]
        for patch in patches:
            yield NewEvent("patch.recorded", patch, ts=patch.ts)
        pairs = zip(imported.patches, patches, strict=True)
        cleared = [new.id for old, new in pairs if old.id in imported.cleared]
        if cleared:
            yield NewEvent("patches.cleared", {"ids": cleared})
        if not self._renumber:
            yield from self.move(imported.head)
        named = imported.title or self._first_words
        if named and chat.title is None:
            yield NewEvent("chat.renamed", {"title": named, "by": imported.title_by or "sidecar"})
        # What the chat has already wins over what comes with the file, here and below.
        if imported.config and not chat.config:
            yield NewEvent("config.updated", {"config": imported.config, "stored": imported.config})
        if imported.open_files and not chat.open_files:
            yield NewEvent("files.updated", {"files": imported.open_files})

    @property
    def visible(self) -> list[str]:
        """The visible turns, as far as they are known."""
        return self._visible

    def move(self, head: str | None) -> Iterator[NewEvent]:
        """The event that goes back to a visible turn, if it is another one."""
        if head and head != self._head and self._cut(head):
            yield self._rewind(head)
            self._head = head

    def _rewind(self, head: str | None) -> NewEvent:
        cut = self._cut(head)
        event = NewEvent("chat.rewound", {"head": head, "hidden": self._visible[cut:]})
        del self._visible[cut:]
        return event

    def _cut(self, head: str | None) -> int:
        """How many visible turns there are up to `head`; 0 when it is none of them. The search starts at the newest,
        and a rewind removes the turns that it passed, so that many branches do not take quadratic time.
        """
        return next((at for at in range(len(self._visible), 0, -1) if self._visible[at - 1] == head), 0)

    def _with_new_ids(self, turn: Turn) -> Turn:
        """The same turn with new ids, so that it can join others."""
        id = self._ids[turn.id] = new_id("t")
        items = [msgspec.structs.replace(item, id=new_id("i"), turn_id=id) for item in turn.items]
        parent = self._ids.get(turn.parent_turn_id or "")
        return msgspec.structs.replace(turn, id=id, prompt_id=new_id("p"), parent_turn_id=parent, items=items)


def _check_count(number: int, limit: int, what: str) -> None:
    if number > limit:
        raise WrongLine("too_many", f"there are more than {limit} {what}", limit)


def _plain_item(plain: Plain, turn_id: str, at: int) -> Item:
    answer = plain.role == "assistant"
    return Item(
        id=plain.id or new_id("i"),
        turn_id=turn_id,
        type="message" if answer else "user",
        status="completed",
        started_at=at,
        ended_at=at,
        text=plain.text,
        content=None if answer else [Block(type="text", text=plain.text)],
        name=None if plain.role in ("user", "assistant") else plain.role,
    )


def _empty_turn(at: int, parent: str | None) -> Turn:
    return Turn(
        id=new_id("t"),
        prompt_id=new_id("p"),
        items=[],
        status="completed",
        model="",
        engine="import",
        started_at=at,
        ended_at=at,
        reason="end_turn",
        parent_turn_id=parent,
    )


def _turn_events(turn: Turn, parent: str | None) -> Iterator[NewEvent]:
    start = turn.started_at
    first = turn.items[0] if turn.items and turn.items[0].type == "user" else None
    accepted = event_factory.accepted_data(turn.prompt_id, turn.id, "queue", first)
    yield NewEvent("prompt.accepted", accepted, turn.id, ts=start)
    started = {"promptId": turn.prompt_id, "model": turn.model, "engine": turn.engine}
    if parent:
        started["parentTurnId"] = parent
    yield NewEvent("turn.started", started, turn.id, ts=start)
    for item in turn.items:
        at = item.ended_at or item.started_at
        if item is first:
            continue
        if item.type == "user":
            steer = {"promptId": new_id("p"), "turnId": turn.id, "delivery": "steer", "item": item}
            yield NewEvent("prompt.accepted", steer, turn.id, ts=at)
        else:
            yield NewEvent(_TERMINAL.get(item.type, "tool.ended"), {"item": item}, turn.id, ts=at)
    if turn.alone:
        yield NewEvent("notice", {"code": HISTORY_LEFT_OUT, "params": {}}, turn.id, ts=start)
    ended = turn_ended_event(turn.id, turn.reason or "interrupted", turn.usage or Usage(), turn.error)
    yield msgspec.structs.replace(ended, ts=turn.ended_at or start)


def _with_new_turn(patch: Patch, ids: dict[str, str]) -> Patch:
    """The patch with the new id of its turn, where turns got new ones."""
    if not ids:
        return patch
    return msgspec.structs.replace(
        patch, id=new_id("pa"), turn_id=ids.get(patch.turn_id, patch.turn_id), item_id=None
    )


def first_title(turns: Iterable[Turn]) -> str | None:
    """The first words of the user."""
    said = (item.content for turn in turns for item in turn.items if item.type == "user" and item.content)
    return first_words(next(said, []))


def _timestamp(ts: int | float | str | None) -> int | None:
    """Milliseconds since 1970 from a number of seconds or milliseconds, an ISO date, or a day in English words."""
    if ts is None:
        return None
    if isinstance(ts, str):
        moment = datetime.fromisoformat(_written_date(ts) or ts)
        return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    return int(ts if ts > 1e11 else ts * 1000)


def _milliseconds(ts: int | float | str | None) -> int | None:
    """Like `_timestamp`; WrongLine when the journal cannot hold the time."""
    try:
        found = _timestamp(ts)
    except (ValueError, OverflowError) as error:
        raise WrongLine("not_understood", f"`ts`: seconds, milliseconds or an ISO date: {error}") from error
    if found is not None and abs(found) >= MAX_TS:
        raise WrongLine("not_understood", "`ts`: a time within the next and the last 285,000 years")
    return found


MAX_TS = 2**53
"""Milliseconds: the largest number that every client reads exactly."""


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def _written_date(text: str) -> str | None:
    """The day of "8 May, 2023", "March-15-2024" or "1:56 pm on 8 May, 2023", in ISO format; None for all else."""
    words = re.findall(r"[a-z]+|[0-9:]+", text[:100].lower())
    month = next((word[:3] for word in words if word[:3] in _MONTHS and len(word) > 2), None)
    year = next((word for word in words if len(word) == 4 and word.isdigit()), None)
    day = next((word for word in words if len(word) < 3 and word.isdigit()), None)
    if not (month and year and day):
        return None
    return f"{year}-{_MONTHS.index(month) + 1:02}-{int(day):02}"
