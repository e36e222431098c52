"""Snapshots as a person asks for them: listed, shown, and sent along with the next prompt.

The kept ones are of kind `context`. `workflow` and `navigation` are of now: they are made when they are asked for, so
they follow every rewind, and end with the chat.
"""

from __future__ import annotations

from typing import Any, Literal

import anyio.to_thread
import msgspec

from ..context.budget import SNAPSHOT as MAX_TOKENS
from ..context.continuity import Course, Entry, drawn, entries, navigation, workflow
from ..context.fences import fenced
from ..context.tokens.counting import load
from ..model.events import NewEvent
from ..model.failures import Failure, Refused
from ..store.snapshots import SnapshotRow
from ..workspace.open_files import OpenFiles
from ..workspace.paths import Workspace
from .continuity import SNAPSHOT
from .measuring import Measure, measure_for
from .running import now
from .session import Session

Kind = Literal["context", "workflow", "navigation"]
OPENED_BY = "snapshot"


class Drawn(msgspec.Struct, frozen=True):
    """A snapshot with its text, which takes so many `tokens` when a model is sent it."""

    id: str
    kind: Kind
    reason: Literal["interval", "compaction", "close", "exit", "now"]
    turn_id: str
    turns: int
    ts: int
    entries: list[Entry]
    text: str
    tokens: int
    hidden: bool = False
    seq: int = 0
    """Where the journal stood at its last turn's end."""


class Restored(msgspec.Struct, frozen=True):
    """The snapshot that waits for the next prompt, and what became of its files."""

    snapshot: Drawn
    opened: list[str]
    missing: list[str]
    seq: int


async def listed(session: Session) -> list[Drawn]:
    """Those of now, then the kept ones, the newest first; one that is due is taken before."""
    await session.continuity.after_turn()
    measure = await _measure(session)
    rows = await session.store.snapshots.listed(session.chat.id)
    return [*await _of_now(session, measure), *(_kept(session, row, measure) for row in rows)]


async def shown(session: Session, id: str) -> Drawn:
    measure = await _measure(session)
    row = await session.store.snapshots.find(session.chat.id, id)
    if row:
        return _kept(session, row, measure)
    of_now = {found.id: found for found in await _of_now(session, measure)}
    if id not in of_now:
        known = ", ".join(
            [*of_now, *(row.id for row in await session.store.snapshots.listed(session.chat.id))]
        )
        raise Refused(
            "not_found",
            f"`id`: this chat has no snapshot {id[:80]!r}; there are: {known or 'none yet'}",
            params={"field": "id", "id": id[:80]},
        )
    return of_now[id]


async def restored(session: Session, id: str) -> Restored:
    """Let the snapshot go along with the next prompt, once, and bring its files into view. Nothing is rewound."""
    found = await shown(session, id)
    if found.hidden:
        raise Refused(
            "precondition_failed",
            f"`id`: the snapshot's last turn {found.turn_id} is out of view",
            params={"field": "id", "turnId": found.turn_id},
            hint=f'chat/rewind with `to: {{"turnId": "{found.turn_id}"}}` brings it back',
        )
    wanted = await _files(session, found)

    async def make() -> tuple[tuple[list[str], list[str]], list[NewEvent]]:
        files, opened, missing = await anyio.to_thread.run_sync(_opened, session, wanted)
        kept = [msgspec.structs.replace(entry, seek=[]) for entry in found.entries]
        data = {"snapshotId": id, "kind": found.kind, "turnId": found.turn_id, "entries": kept}
        events = [session.desk.put_files(files)] if opened else []
        return (opened, missing), [*events, NewEvent("snapshot.restored", data)]

    (opened, missing), seq = await session.apply(make)
    return Restored(found, opened, missing, seq)


async def _measure(session: Session) -> Measure:
    """The count of the chat's model; of the one that answered last when none is chosen."""
    model = str(session.chat.model or session.config["model"])
    measure = measure_for(model, await session.store.calibration(model), rough_is_enough=False)
    await anyio.to_thread.run_sync(load, measure.family)
    return measure


async def _of_now(session: Session, measure: Measure) -> list[Drawn]:
    course = await session.continuity.course()
    made: list[tuple[Kind, list[Entry]]] = [
        ("workflow", workflow(course)),
        ("navigation", navigation(course)),
    ]
    at = session.chat.last_activity
    return [
        _drawn(session, Drawn(kind, kind, "now", course.up_to, course.turns, at, found, "", 0), measure)
        for kind, found in made
        if found
    ]


def _kept(session: Session, row: SnapshotRow, measure: Measure) -> Drawn:
    course = msgspec.convert(row.course, Course)
    reason: Any = row.reason
    made = Drawn(
        row.id,
        "context",
        reason,
        row.turn,
        course.turns,
        row.ts,
        entries(course),
        "",
        0,
        row.hidden,
        row.seq,
    )
    return _drawn(session, made, measure)


def _drawn(session: Session, made: Drawn, measure: Measure) -> Drawn:
    """With the text as it would be sent, which is measured within its fence and shown without."""

    def spell(text: str) -> str:
        return fenced(session.chat.epoch, SNAPSHOT, f"{SNAPSHOT} {made.id}", text)

    text = drawn(made.entries, measure.count, MAX_TOKENS, spell)
    inside = text.partition("\n")[2].rpartition("\n")[0]
    return msgspec.structs.replace(made, text=inside, tokens=measure.count(text))


async def _files(session: Session, found: Drawn) -> list[tuple[str, bool]]:
    """The files of a snapshot, the least recent first, and whether each was pinned."""
    if found.kind == "context":
        state = await session.store.open_files_at(session.chat.id, found.seq)
        return [
            (file.path, file.pinned)
            for file in OpenFiles.from_state(state, session.desk.settings.files).files
        ]
    looked = [entry.path for entry in reversed(found.entries) if entry.kind == "file" and entry.path]
    return [(path, False) for path in looked if found.kind == "navigation"]


def _opened(session: Session, wanted: list[tuple[str, bool]]) -> tuple[OpenFiles, list[str], list[str]]:
    """The open files with the wanted ones among them; those, and the ones that could not be opened."""
    files = session.desk.files
    try:
        workspace = session.desk.workspace()
    except Failure:
        workspace = None  # the project is gone, and so are its files
    there = [(path, _there(workspace, path), pinned) for path, pinned in wanted]
    for _, real, pinned in there:
        if real is not None:
            room = sum(file.pinned for file in files.files) < files.limits.max_pinned
            files = files.opened(real, OPENED_BY, now(), pinned=pinned and room)
    open_now = {file.path for file in files.files}
    opened = [real for _, real, _ in there if real is not None and real in open_now]
    return files, opened, [path for path, real, _ in there if real not in open_now]


def _there(workspace: Workspace | None, path: str) -> str | None:
    """The real path of a file that is there."""
    try:
        return workspace.real(path) if workspace else None
    except Failure:
        return None
