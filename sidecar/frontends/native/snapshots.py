"""Handlers of `snapshots/*`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from sidecar_protocol import messages as m
from sidecar_protocol.messages.base import Key
from sidecar_protocol.peer import Call

from ...chat.actions import snapshots
from ...chat.sessions.chats import Chats
from ...chat.sessions.session import Session
from ...rpc.dispatch import Handler, run_to_end
from .wire import as_wire, chat_ref, session_of


class SnapshotHandlers:
    def __init__(self, ready: Callable[[], Awaitable[Chats]]) -> None:
        self._chats = ready

    def handlers(self) -> Mapping[str, Handler]:
        return {
            "snapshots/list": self._list,
            "snapshots/show": self._show,
            "snapshots/restore": self._restore,
        }

    async def _session(self, params: Key) -> Session:
        session = await session_of(self._chats, params)
        await session.refresh_unless_owner()
        return session

    async def _list(self, call: Call, params: Key) -> m.SnapshotsListResult:
        session = await self._session(params)
        found = await snapshots.list_snapshots(session)
        return m.SnapshotsListResult(**chat_ref(session.chat.key), items=[_info(one) for one in found])

    async def _show(self, call: Call, params: m.SnapshotsShowParams) -> m.SnapshotsShowResult:
        session = await self._session(params)
        found = await snapshots.show_snapshot(session, params.id)
        return m.SnapshotsShowResult(
            **chat_ref(session.chat.key),
            snapshot=_info(found),
            text=found.text,
            entries=[as_wire(entry, m.SnapshotEntry) for entry in found.entries],
        )

    async def _restore(self, call: Call, params: m.SnapshotsRestoreParams) -> m.SnapshotsRestoreResult:
        session = await self._session(params)
        restored = await run_to_end(snapshots.restore_snapshot(session, params.id))
        return m.SnapshotsRestoreResult(
            **chat_ref(session.chat.key),
            snapshot=_info(restored.snapshot),
            text=restored.snapshot.text,
            opened=restored.opened,
            missing=restored.missing,
            seq=restored.seq,
        )


def _info(found: snapshots.RenderedSnapshot) -> m.SnapshotInfo:
    return m.SnapshotInfo(
        id=found.id,
        kind=found.kind,
        reason=found.reason,
        turn_id=found.turn_id,
        turns=found.turns,
        ts=found.ts,
        entries=len(found.entries),
        tokens=found.tokens,
        hidden=found.hidden,
    )
