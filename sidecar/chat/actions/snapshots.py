"""Snapshots on request: lists and shows them, and sends one with the next prompt.

Stored ones have the kind `context`. `workflow` and `navigation` are made on request from the current state, so they
follow every rewind, and end with the chat.
"""

from __future__ import annotations

from typing import Any, Literal

import anyio.to_thread
import msgspec

from ...context.budget import SNAPSHOT_TOKENS as MAX_TOKENS
from ...context.fences import fence_text
from ...context.resume import (
    ResumeEntry,
    SessionState,
    entries,
    navigation_entries,
    rendered_entries,
    workflow_entries,
)
from ...model.events import NewEvent
from ...model.failures import Failure, Refused
from ...store.tables.snapshots import SnapshotRow
from ...system.clock import now
from ...workspace.open_files import OpenFiles
from ...workspace.paths import Workspace
from ..request.resume import SNAPSHOT
from ..request.token_meter import TokenMeter, meter_for
from ..sessions.session import Session

SnapshotKind = Literal["context", "workflow", "navigation"]
OPENED_BY = "snapshot"


class RenderedSnapshot(msgspec.Struct, frozen=True):
    """A snapshot with its text, and the `tokens` that it takes in a request."""

    id: str
    kind: SnapshotKind
    reason: Literal["interval", "compaction", "close", "exit", "now"]
    turn_id: str
    turns: int
    ts: int
    entries: list[ResumeEntry]
    text: str
    tokens: int
    hidden: bool = False
    seq: int = 0
    """The seq of the journal at the end of its last turn."""


class RestoredSnapshot(msgspec.Struct, frozen=True):
    """The snapshot that waits for the next prompt, and what happened to its files."""

    snapshot: RenderedSnapshot
    opened: list[str]
    missing: list[str]
    seq: int


async def list_snapshots(session: Session) -> list[RenderedSnapshot]:
    """The current ones, then the stored ones, newest first; one that is due is taken first."""
    await session.resume_snapshots.after_turn()
    meter = await _token_meter(session)
    rows = await session.store.snapshots.list_snapshots(session.chat.id)
    return [
        *await _current_snapshots(session, meter),
        *(_stored_snapshot(session, row, meter) for row in rows),
    ]


async def show_snapshot(session: Session, id: str) -> RenderedSnapshot:
    meter = await _token_meter(session)
    row = await session.store.snapshots.find(session.chat.id, id)
    if row:
        return _stored_snapshot(session, row, meter)
    of_now = {found.id: found for found in await _current_snapshots(session, meter)}
    if id not in of_now:
        known = ", ".join(
            [*of_now, *(row.id for row in await session.store.snapshots.list_snapshots(session.chat.id))]
        )
        raise Refused(
            "not_found",
            f"`id`: this chat has no snapshot {id[:80]!r}; there are: {known or 'none yet'}",
            params={"field": "id", "id": id[:80]},
        )
    return of_now[id]


async def restore_snapshot(session: Session, id: str) -> RestoredSnapshot:
    """Send the snapshot with the next prompt, once, and open its files. Nothing is rewound."""
    found = await show_snapshot(session, id)
    if found.hidden:
        raise Refused(
            "precondition_failed",
            f"`id`: the snapshot's last turn {found.turn_id} is hidden",
            params={"field": "id", "turnId": found.turn_id},
            hint=f'chat/rewind with `to: {{"turnId": "{found.turn_id}"}}` brings it back',
        )
    wanted = await _files(session, found)

    async def make() -> tuple[tuple[list[str], list[str]], list[NewEvent]]:
        files, opened, missing = await anyio.to_thread.run_sync(_open_existing, session, wanted)
        kept = [msgspec.structs.replace(entry, seek=[]) for entry in found.entries]
        data = {"snapshotId": id, "kind": found.kind, "turnId": found.turn_id, "entries": kept}
        events = [session.environment.set_open_files(files)] if opened else []
        return (opened, missing), [*events, NewEvent("snapshot.restored", data)]

    (opened, missing), seq = await session.apply(make)
    return RestoredSnapshot(found, opened, missing, seq)


async def _token_meter(session: Session) -> TokenMeter:
    """The token meter of the chat's model; of the one that answered last when none is chosen."""
    model = session.chat.model or session.config.model
    return meter_for(model, await session.store.compactions.calibration(model), rough_is_enough=False)


async def _current_snapshots(session: Session, meter: TokenMeter) -> list[RenderedSnapshot]:
    session_state = await session.resume_snapshots.session_state()
    made: list[tuple[SnapshotKind, list[ResumeEntry]]] = [
        ("workflow", workflow_entries(session_state)),
        ("navigation", navigation_entries(session_state)),
    ]
    at = session.chat.last_activity
    return [
        _with_text(
            session,
            RenderedSnapshot(kind, kind, "now", session_state.up_to, session_state.turns, at, found, "", 0),
            meter,
        )
        for kind, found in made
        if found
    ]


def _stored_snapshot(session: Session, row: SnapshotRow, meter: TokenMeter) -> RenderedSnapshot:
    session_state = msgspec.convert(row.session_state, SessionState)
    reason: Any = row.reason
    made = RenderedSnapshot(
        row.id,
        "context",
        reason,
        row.turn,
        session_state.turns,
        row.ts,
        entries(session_state),
        "",
        0,
        row.hidden,
        row.seq,
    )
    return _with_text(session, made, meter)


def _with_text(session: Session, made: RenderedSnapshot, meter: TokenMeter) -> RenderedSnapshot:
    """The snapshot with its text: measured with its fence, and shown without it."""

    def spell(text: str) -> str:
        return fence_text(session.chat.epoch, SNAPSHOT, f"{SNAPSHOT} {made.id}", text)

    text = rendered_entries(made.entries, meter.count, MAX_TOKENS, spell)
    inside = text.partition("\n")[2].rpartition("\n")[0]
    return msgspec.structs.replace(made, text=inside, tokens=meter.count(text))


async def _files(session: Session, found: RenderedSnapshot) -> list[tuple[str, bool]]:
    """The files of a snapshot, least recent first, and whether each was pinned."""
    if found.kind == "context":
        state = await session.store.patches.open_files_at(session.chat.id, found.seq)
        return [
            (file.path, file.pinned)
            for file in OpenFiles.from_state(state, session.environment.settings.open_file_limits).files
        ]
    looked = [entry.path for entry in reversed(found.entries) if entry.kind == "file" and entry.path]
    return [(path, False) for path in looked if found.kind == "navigation"]


def _open_existing(
    session: Session, wanted: list[tuple[str, bool]]
) -> tuple[OpenFiles, list[str], list[str]]:
    """The open files with the wanted ones added; those, and the ones that could not be opened."""
    files = session.environment.files
    try:
        workspace = session.environment.workspace()
    except Failure:
        workspace = None  # the project is gone, and its files with it
    there = [(path, _existing_path(workspace, path), pinned) for path, pinned in wanted]
    for _, real, pinned in there:
        if real is not None:
            may_pin = sum(file.pinned for file in files.files) < files.limits.max_pinned
            files = files.opened(real, OPENED_BY, now(), pinned=pinned and may_pin)
    open_now = {file.path for file in files.files}
    opened = [real for _, real, _ in there if real is not None and real in open_now]
    return files, opened, [path for path, real, _ in there if real not in open_now]


def _existing_path(workspace: Workspace | None, path: str) -> str | None:
    """The real path of a file, if it exists."""
    try:
        return workspace.real(path) if workspace else None
    except Failure:
        return None
