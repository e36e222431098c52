"""The handlers of the native frontend over chats in memory: no process, no pipe, and frames kept in a list."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import msgspec
from sidecar_protocol.catalog import METHODS
from sidecar_protocol.jsonrpc import Request
from sidecar_protocol.peer import Call

from sidecar.chat.sessions.chats import Chats
from sidecar.frontends.native.branches import BranchHandlers
from sidecar.frontends.native.chats import ChatHandlers
from sidecar.frontends.native.client import NativeClientApp
from sidecar.frontends.native.context import ContextHandlers
from sidecar.frontends.native.data import DataHandlers
from sidecar.frontends.native.events import native_attachments
from sidecar.frontends.native.files import FileHandlers
from sidecar.frontends.native.hooks import HookHandlers
from sidecar.frontends.native.index import IndexHandlers
from sidecar.frontends.native.permissions import PermissionHandlers
from sidecar.frontends.native.prompts import PromptHandlers
from sidecar.frontends.native.snapshots import SnapshotHandlers
from sidecar.frontends.native.tools import ToolHandlers
from sidecar.providers.base import Completion, TextDelta
from sidecar.rpc.dispatch import Handler, decode_params
from sidecar.rpc.wire import MessageWriter
from tests.unit.chat.memory import finish, open_chats, open_store
from tests.unit.engines.sinks import ScriptedReplies


class ListWriter:
    """Keeps the frames that would go to the client."""

    def __init__(self) -> None:
        self.frames: list[dict[str, Any]] = []
        self.turn_ended = anyio.Event()

    def send(self, frame: bytes) -> None:
        self.frames.append(msgspec.json.decode(frame))
        if self.frames[-1]["params"]["type"] == "turn.ended":
            self.turn_ended.set()

    async def wait_for_space(self) -> None:
        return


class Handlers:
    def __init__(self, chats: Chats, writer: ListWriter, more: Mapping[str, Handler]) -> None:
        self.chats = chats
        self.writer = writer
        wire = cast("MessageWriter", writer)
        attachments = native_attachments(wire, chats.services.tasks)
        self._handlers = {
            **ChatHandlers(self._ready, attachments, wire).handlers(),
            **PromptHandlers(self._ready, attachments).handlers(),
            **BranchHandlers(self._ready, attachments, wire).handlers(),
            **ContextHandlers(self._ready).handlers(),
            **FileHandlers(self._ready).handlers(),
            **PermissionHandlers(self._ready).handlers(),
            **SnapshotHandlers(self._ready).handlers(),
            **DataHandlers(self._ready).handlers(),
            **IndexHandlers(self._ready, wire).handlers(),
            **HookHandlers(self._ready).handlers(),
            **ToolHandlers(self._ready, NativeClientApp(_refuse)).handlers(),
            **more,
        }

    async def _ready(self) -> Chats:
        return self.chats

    async def ask(self, method: str, **params: Any) -> Any:
        call = Call(Request(1, method, params))
        try:
            return await self._handlers[method](call, decode_params(METHODS[method], params))
        finally:
            call.run_after_answer()

    async def run(self, text: str, chat: str = "c", **params: Any) -> Any:
        """Send a prompt whose id is its text, and wait until its turn ended."""
        result = await self.ask("prompt/send", chatId=chat, promptId=text, text=text, **params)
        (session,) = [one for one in self.chats.sessions if one.chat.key.chat_id == chat]
        await finish(session)
        return result


@asynccontextmanager
async def handlers(
    provider: ScriptedReplies, more: Callable[[Chats], Mapping[str, Handler]] | None = None, **options: Any
) -> AsyncIterator[Handlers]:
    """`more` returns further handlers over the same chats; `options` are those of `open_chats`."""
    async with open_store() as store, open_chats(store, provider, **options) as chats:
        yield Handlers(chats, ListWriter(), more(chats) if more else {})


def replies(*texts: str) -> ScriptedReplies:
    """A provider that answers one prompt after the other with these texts."""
    scripts: list[list[TextDelta | Completion]] = [
        [TextDelta(text), Completion("end_turn")] for text in texts
    ]
    return ScriptedReplies(*scripts)


async def _refuse(method: str, params: Any) -> Any:
    raise AssertionError("these tests ask no app")
