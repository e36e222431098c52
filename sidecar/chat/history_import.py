"""Reads lines of an export, or plain turns, and says which events they amount to. Pure: does no IO."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from ..model.chats import Chat
from ..model.content import Block, Item, Turn, Usage
from ..model.events import NewEvent
from ..model.failures import Refused
from ..model.files import Patch
from . import facts
from .running import new_id, now, turn_ended
from .titles import first_words

_TERMINAL = {"message": "message.completed", "thought": "thought.completed", "plan": "plan.updated"}


class Blob(msgspec.Struct, frozen=True):
    data: bytes
    mime_type: str
    name: str | None


class Imported(msgspec.Struct):
    """What a source holds. `head` is the newest visible turn where an export says so."""

    turns_read: list[Turn] = []
    blobs: list[Blob] = []
    title: str | None = None
    title_by: str | None = None
    head: str | None = None
    config: dict[str, Any] = {}
    patches: list[Patch] = []
    cleared: set[str] = set()
    """Ids of patches that the user had cleared from the list."""
    open_files: list[dict[str, Any]] = []

    @property
    def turns(self) -> int:
        return len(self.turns_read)

    @property
    def items(self) -> int:
        return sum(len(turn.items) for turn in self.turns_read)


class _Plain(msgspec.Struct, forbid_unknown_fields=True):
    role: str
    text: str
    ts: int | float | str | None = None
    id: str | None = None


class _Line(msgspec.Struct):
    """Any line of a source; its shape says what it is."""

    sidecar: str | None = None
    version: int | None = None
    turn: Turn | None = None
    blob: dict[str, Any] | None = None
    patch: Patch | None = None
    cleared: bool = False
    open_files: list[dict[str, Any]] | None = msgspec.field(default=None, name="openFiles")
    role: str | None = None


_decode_line = msgspec.json.Decoder(_Line).decode
_decode_plain = msgspec.json.Decoder(_Plain).decode


def parse(source: str) -> Imported:
    """Read a source; what is wrong is named by its line, and nothing is imported then."""
    imported = Imported()
    for number, line in enumerate(source.split("\n"), 1):
        if line.strip():
            try:
                _take(imported, line)
            except (msgspec.DecodeError, binascii.Error, KeyError, ValueError) as error:
                raise Refused(
                    "invalid_params",
                    f"Line {number} is neither of an export nor a plain turn: {error}",
                    params={"field": "data", "line": number},
                    hint='A plain turn is {"role":"user","text":"…"} or {"role":"assistant","text":"…"}',
                ) from error
    if not imported.turns_read:
        raise Refused("invalid_params", "There is no turn to import", params={"field": "data"})
    return imported


def to_events(imported: Imported, chat: Chat, *, renumber: bool) -> list[NewEvent]:
    """The events that bring the turns in: the tree of turns comes out as it went in."""
    turns, ids = _renumbered(imported.turns_read) if renumber else (imported.turns_read, {})
    visible: list[str] = []
    root = head = chat.head
    events: list[NewEvent] = []
    for turn in turns:
        parent = turn.parent_turn_id or root
        if parent != head:
            cut = visible.index(parent) + 1 if parent in visible else 0
            events.append(NewEvent("chat.rewound", {"head": parent, "hidden": visible[cut:]}))
            del visible[cut:]
        events += _turn_events(turn, parent)
        visible.append(turn.id)
        head = turn.id
    if imported.head and not renumber and imported.head != head and imported.head in visible:
        cut = visible.index(imported.head) + 1
        events.append(NewEvent("chat.rewound", {"head": imported.head, "hidden": visible[cut:]}))
    named = imported.title or _first_words(turns)
    if named and chat.title is None:
        events.append(NewEvent("chat.renamed", {"title": named, "by": imported.title_by or "sidecar"}))
    if imported.config and not chat.config:
        events.append(NewEvent("config.updated", {"config": imported.config, "stored": imported.config}))
    patches = [_renewed(patch, ids) for patch in imported.patches]
    events += [NewEvent("patch.recorded", patch, ts=patch.ts) for patch in patches]
    pairs = zip(imported.patches, patches, strict=True)
    cleared = [new.id for old, new in pairs if old.id in imported.cleared]
    if cleared:
        events.append(NewEvent("patches.cleared", {"ids": cleared}))
    if imported.open_files and not chat.open_files:
        events.append(NewEvent("files.updated", {"files": imported.open_files}))
    return events


def _take(imported: Imported, line: str) -> None:
    shape = _decode_line(line)
    if shape.role is not None:
        _take_plain(imported, _decode_plain(line))
    elif shape.turn is not None:
        imported.turns_read.append(shape.turn)
    elif shape.patch is not None:
        imported.patches.append(shape.patch)
        if shape.cleared:
            imported.cleared.add(shape.patch.id)
    elif shape.open_files is not None:
        imported.open_files = shape.open_files
    elif shape.blob is not None:
        data = base64.b64decode(shape.blob["data"], validate=True)
        imported.blobs.append(Blob(data, shape.blob["mimeType"], shape.blob.get("name")))
    elif shape.sidecar == "chat":
        header = msgspec.json.decode(line)
        if header.get("version") != 1:
            raise ValueError(f"an export of version {header.get('version')} is newer than this sidecar")
        imported.title, imported.title_by = header.get("title"), header.get("titleBy")
        imported.head, imported.config = header.get("head"), header.get("config") or {}
    else:
        raise ValueError("it has none of `role`, `turn`, `blob`, `patch`, `openFiles` and `sidecar`")


def _take_plain(imported: Imported, plain: _Plain) -> None:
    """A user's line begins a turn; the assistant's lines that follow answer it."""
    at = _timestamp(plain.ts) or (imported.turns_read[-1].started_at if imported.turns_read else now())
    answer = plain.role == "assistant"
    if not answer or not imported.turns_read:
        parent = imported.turns_read[-1].id if imported.turns_read else None
        imported.turns_read.append(_empty_turn(at, parent))
    turn = imported.turns_read[-1]
    item = Item(
        id=plain.id or new_id("i"),
        turn_id=turn.id,
        type="message" if answer else "user",
        status="completed",
        started_at=at,
        ended_at=at,
        text=plain.text,
        content=None if answer else [Block(type="text", text=plain.text)],
        name=None if plain.role in ("user", "assistant") else plain.role,
    )
    turn.items.append(item)


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
    accepted = facts.accepted(turn.prompt_id, turn.id, "queue", first)
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
    ended = turn_ended(turn.id, turn.reason or "interrupted", turn.usage or Usage(), turn.error)
    yield msgspec.structs.replace(ended, ts=turn.ended_at or start)


def _renewed(patch: Patch, ids: dict[str, str]) -> Patch:
    """The patch under the new id of its turn, where turns got new ones."""
    if not ids:
        return patch
    return msgspec.structs.replace(
        patch, id=new_id("pa"), turn_id=ids.get(patch.turn_id, patch.turn_id), item_id=None
    )


def _renumbered(turns: list[Turn]) -> tuple[list[Turn], dict[str, str]]:
    """The same turns under new ids, so that they can join others; and which id became which."""
    ids = {turn.id: new_id("t") for turn in turns}
    renumbered = [
        msgspec.structs.replace(
            turn,
            id=ids[turn.id],
            prompt_id=new_id("p"),
            parent_turn_id=ids.get(turn.parent_turn_id or ""),
            items=[
                msgspec.structs.replace(item, id=new_id("i"), turn_id=ids[turn.id]) for item in turn.items
            ],
        )
        for turn in turns
    ]
    return renumbered, ids


def _first_words(turns: list[Turn]) -> str | None:
    said = (item.content for turn in turns for item in turn.items if item.type == "user" and item.content)
    return first_words(next(said, []))


def _timestamp(ts: int | float | str | None) -> int | None:
    """Milliseconds since 1970 from a number of seconds or milliseconds, an ISO date, or a day in English words."""
    if ts is None:
        return None
    if isinstance(ts, str):
        from datetime import UTC, datetime

        moment = datetime.fromisoformat(_spelled_day(ts) or ts)
        return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    return int(ts if ts > 1e11 else ts * 1000)


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def _spelled_day(text: str) -> str | None:
    """The day of "8 May, 2023", "March-15-2024" or "1:56 pm on 8 May, 2023", as ISO has it; None for all else."""
    words = re.findall(r"[a-z]+|[0-9:]+", text[:100].lower())
    month = next((word[:3] for word in words if word[:3] in _MONTHS and len(word) > 2), None)
    year = next((word for word in words if len(word) == 4 and word.isdigit()), None)
    day = next((word for word in words if len(word) < 3 and word.isdigit()), None)
    if not (month and year and day):
        return None
    return f"{year}-{_MONTHS.index(month) + 1:02}-{int(day):02}"
