"""The handler of `history/import`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from sidecar_protocol import messages as m
from sidecar_protocol.peer import Call

from ...chat.actions import foreign_import
from ...chat.actions.foreign_import import Brought, HistoryRequest
from ...chat.journal.identity import chat_key, real_project_path
from ...chat.sessions.chats import Chats
from ...rpc.dispatch import Handler
from ...rpc.wire import MessageWriter
from .progress import Progress


class HistoryHandlers:
    def __init__(self, ready: Callable[[], Awaitable[Chats]], wire: MessageWriter) -> None:
        self._chats = ready
        self._wire = wire

    def handlers(self) -> Mapping[str, Handler]:
        return {"history/import": self._import}

    async def _import(self, call: Call, params: m.HistoryImportParams) -> m.HistoryImportResult:
        chats = await self._chats()
        progress = Progress(self._wire, str(call.id), "history")
        request = HistoryRequest(
            platform=params.platform,
            path=params.path,
            since=params.since,
            project=real_project_path(params.project_path) if params.project_path is not None else None,
            namespace=chat_key("-", None, params.namespace).namespace,
            dry_run=params.dry_run,
        )

        def report(done: int, total: int, brought: Brought) -> None:
            progress.report(done, total, chats=brought.new + brought.grown)

        brought = await foreign_import.import_history(chats, request, report)
        return m.HistoryImportResult(
            chats=[_chat(one) for one in brought.chats],
            problems=[
                m.HistoryProblem(file=one.file, line=one.line, message=one.message)
                for one in brought.problems
            ],
            new=brought.new,
            grown=brought.grown,
            unchanged=brought.unchanged,
            skipped=brought.skipped,
            deleted=brought.deleted,
            turns=brought.turns,
            messages=brought.messages,
            problem_count=brought.problem_count,
            dry_run=params.dry_run,
        )


def _chat(one: foreign_import.BroughtChat) -> m.HistoryChat:
    return m.HistoryChat(
        chat_id=one.key.value,
        session_id=one.key.session_id,
        status=one.status,
        title=one.title,
        project_path=one.project,
        turns=one.turns,
        messages=one.messages,
        last_activity=one.updated_at,
    )
