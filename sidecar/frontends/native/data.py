"""Handlers of methods about stored data: `data/purge`, `projects/rebind`, `stats/read`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
from sidecar_protocol import messages as m
from sidecar_protocol.peer import Call

from ...chat.actions import project_move, purge_chats
from ...chat.sessions.chats import Chats, LockedChat
from ...model import figures
from ...model.failures import invalid_param
from ...rpc.dispatch import Handler, run_to_end
from .wire import address_of, as_wire, chat_ref


class DataHandlers:
    def __init__(self, ready: Callable[[], Awaitable[Chats]]) -> None:
        self._chats = ready

    def handlers(self) -> Mapping[str, Handler]:
        return {"data/purge": self._purge, "projects/rebind": self._rebind, "stats/read": self._stats}

    async def _purge(self, call: Call, params: m.DataPurgeParams) -> m.DataPurgeResult:
        if not (params.confirm or params.dry_run):
            raise invalid_param(
                "confirm", "true: what is purged does not come back (dryRun: true only counts)"
            )
        chats = await self._chats()
        wanted = await purge_chats.purge_target(chats, params.scope, address_of(params))
        if params.dry_run:
            removed, size = await purge_chats.count_purge(chats, wanted), chats.store.retention.size()
            return _purge_result(wanted.scope, purge_chats.PurgeResult(removed, [], 0, size), dry_run=True)
        done = await run_to_end(purge_chats.purge(chats, wanted))
        return _purge_result(wanted.scope, done)

    async def _rebind(self, call: Call, params: m.ProjectsRebindParams) -> m.ProjectsRebindResult:
        chats = await self._chats()
        moved = await run_to_end(project_move.rebind_project(chats, params.from_, params.to))
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
        found = await (await self._chats()).statistics(params.scope, address_of(params))
        return msgspec.convert(
            msgspec.to_builtins(figures.statistics_report(params.scope, found)), m.StatsReadResult
        )


def _purge_result(scope: Any, done: purge_chats.PurgeResult, *, dry_run: bool = False) -> m.DataPurgeResult:
    return m.DataPurgeResult(
        scope=scope,
        removed=as_wire(done.removed, m.PurgeCounts),
        left=[_locked_chat(one) for one in done.left],
        bytes_freed=done.freed,
        database_bytes=done.size,
        dry_run=dry_run,
    )


def _locked_chat(one: LockedChat) -> m.LeftChat:
    return m.LeftChat(**chat_ref(one.chat.key), reason="locked", owner=as_wire(one.owner, m.Owner))
