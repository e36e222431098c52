"""Handlers of `chat/fork` and `chat/rewind`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from sidecar_protocol import messages as m
from sidecar_protocol.peer import Call

from ...chat.actions import branches, fork
from ...chat.sessions.chats import Chats
from ...rpc.dispatch import Handler, run_to_end
from ...rpc.wire import MessageWriter
from .chats import DEFAULT_TAIL, attach, opened_result
from .events import NativeAttachments
from .progress import Progress
from .wire import address_of, as_wire, chat_ref, session_of


class BranchHandlers:
    def __init__(
        self, ready: Callable[[], Awaitable[Chats]], attachments: NativeAttachments, wire: MessageWriter
    ) -> None:
        self._chats = ready
        self._wire = wire
        self._attachments = attachments

    def handlers(self) -> Mapping[str, Handler]:
        return {"chat/fork": self._fork, "chat/rewind": self._rewind}

    async def _fork(self, call: Call, params: m.ChatForkParams) -> m.ChatOpenResult:
        chats = await self._chats()
        at = params.at.turn_id if params.at else None
        progress = Progress(self._wire, str(call.id), "fork")
        opened = await fork.fork(chats, address_of(params), params.new_chat_id, at, progress.report)
        view = await run_to_end(chats.view(opened.session, DEFAULT_TAIL.turns, DEFAULT_TAIL.max_bytes))
        replay = m.Replay(kind="none")
        attach(self._attachments, call, opened.session, view, replay)
        return await opened_result(opened.session, view, status="created", replay=replay)

    async def _rewind(self, call: Call, params: m.ChatRewindParams) -> m.ChatRewindResult:
        session = await session_of(self._chats, params)
        rewound = await run_to_end(
            branches.rewind(
                session,
                before=params.before.turn_id if params.before else None,
                to=params.to.turn_id if params.to else None,
                restore=params.files == "restore",
                dry_run=params.dry_run,
            )
        )
        return m.ChatRewindResult(
            **chat_ref(session.chat.key),
            head=rewound.head,
            hidden=rewound.hidden,
            shown=rewound.shown,
            file_changes=[as_wire(change, m.FileRestore) for change in rewound.files],
            seq=rewound.seq,
        )
