"""Handlers of what is kept and for whom: `data/purge`, `projects/rebind`, `stats/read`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import anyio
import msgspec
from sidecar_protocol import messages as m
from sidecar_protocol.peer import Call

from ...chat import purging, rebinding
from ...chat.chats import Chats, Left
from ...model import figures
from ...model.failures import invalid
from ...rpc.dispatch import Handler
from .system import System
from .wire import address_of, as_wire, chat_ref

DAY_S = 24 * 3600


class CustodyHandlers:
    def __init__(self, ready: Callable[[], Awaitable[Chats]], system: System) -> None:
        self._ready = ready
        self._system = system

    def table(self) -> Mapping[str, Handler]:
        return {"data/purge": self._purge, "projects/rebind": self._rebind, "stats/read": self._stats}

    async def _purge(self, call: Call, params: m.DataPurgeParams) -> m.DataPurgeResult:
        if not (params.confirm or params.dry_run):
            raise invalid("confirm", "true: what is purged does not come back (dryRun: true only counts)")
        chats = await self._ready()
        wanted = await purging.target(chats, params.scope, address_of(params))
        if params.dry_run:
            removed, size = await purging.planned(chats, wanted), chats.store.custody.size()
            return _purged(wanted.scope, purging.Purged(removed, [], 0, size), dry_run=True)
        with anyio.CancelScope(shield=True):
            done = await purging.purge(chats, wanted)
        self._system.distrust(wanted.paths if wanted.scope != "chat" else [])
        return _purged(wanted.scope, done)

    async def _rebind(self, call: Call, params: m.ProjectsRebindParams) -> m.ProjectsRebindResult:
        chats = await self._ready()
        with anyio.CancelScope(shield=True):
            moved = await rebinding.rebind(chats, params.from_, params.to)
        if moved.gone:
            self._system.distrust(moved.old)
        rebound = moved.rebound
        return m.ProjectsRebindResult(
            path=moved.project.path,
            chats=moved.chats,
            renamed=len(rebound.renamed),
            open_files=moved.open_files,
            rules=rebound.rules,
            rules_left=rebound.rules_left,
            sources=rebound.sources,
            figures=rebound.figures,
            was_trusted=rebound.was_trusted,
            trusted=rebound.trusted,
        )

    async def _stats(self, call: Call, params: m.StatsReadParams) -> m.StatsReadResult:
        found = await (await self._ready()).statistics(params.scope, address_of(params))
        return stats_to_wire(params.scope, found)


def stats_to_wire(scope: str, found: figures.Statistics) -> m.StatsReadResult:
    usage = found.usage
    lists = ("usage", "savings", "tools", "days", "projects", "index")
    plain = {name: getattr(found, name) for name in found.__struct_fields__ if name not in lists}
    return m.StatsReadResult(
        scope=scope,
        **plain,
        **_savings(found.savings),
        input_tokens=usage.input_tokens or 0,
        output_tokens=usage.output_tokens or 0,
        cached_tokens=usage.cached_tokens or 0,
        cost=usage.cost,
        tools=[m.ToolFigures(**_flat(tool)) for tool in found.tools],
        days=[m.DayFigures(**{**_flat(day), "day": _date(day.day)}) for day in found.days],
        projects=[m.ProjectFigures(**_flat(project)) for project in found.projects],
        index=as_wire(found.index, m.IndexFigures),
    )


def _purged(scope: Any, done: purging.Purged, *, dry_run: bool = False) -> m.DataPurgeResult:
    return m.DataPurgeResult(
        scope=scope,
        removed=as_wire(done.removed, m.PurgeCounts),
        left=[_left(one) for one in done.left],
        bytes_freed=done.freed,
        database_bytes=done.size,
        dry_run=dry_run,
    )


def _left(one: Left) -> m.LeftChat:
    return m.LeftChat(**chat_ref(one.chat.key), reason="locked", owner=m.Owner(**one.held.facts["owner"]))


def _flat(value: figures.ToolFigures | figures.DayFigures | figures.ProjectFigures) -> dict[str, Any]:
    fields = msgspec.structs.asdict(value)
    savings = fields.pop("savings")
    return {**fields, **_savings(savings)}


def _savings(savings: figures.Savings) -> dict[str, Any]:
    return {**msgspec.structs.asdict(savings), "kept_out": savings.kept_out}


def _date(day: int) -> str:
    return datetime.fromtimestamp(day * DAY_S, UTC).date().isoformat()
