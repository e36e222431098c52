"""Runs the sidecar with a second frontend beside its own: a small dialect that a test plugs in.

    second_dialect.py [DIALECT]

Without an argument the client's first message chooses the dialect, as for `sidecar serve`; with one the command does.
A client of the second dialect begins with `initialize` and a number as `second`; `prompt` answers with the
model's text once the turn has ended.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sidecar_protocol.errors import RpcError
from sidecar_protocol.framing import Frame
from sidecar_protocol.jsonrpc import Notification, Request, notification
from sidecar_protocol.peer import Call, Peer

from sidecar.chat.journal.identity import ChatAddress
from sidecar.chat.services.client_app import Capability, OfferedTool
from sidecar.chat.sessions.arrivals import IncomingPrompt
from sidecar.frontends.registry import BUILT_IN, FrontendConnection, FrontendEntry, FrontendRegistry
from sidecar.model.content import Block
from sidecar.model.failures import Failure

if TYPE_CHECKING:
    from sidecar.frontends.base import Frontend

SECOND = "second"


class NoApp:
    """An app that cannot be asked anything."""

    tools: list[OfferedTool] = []

    def can(self, capability: Capability) -> bool:
        return False

    async def ask_permission(self, request: Any) -> Any:
        raise Failure("not_found", "This dialect asks nothing")

    ask_input = call_tool = read_buffer = write_buffer = ask_permission


class SecondFrontend:
    def __init__(self, connection: FrontendConnection) -> None:
        self._host = connection.host
        self._send = connection.wire.send
        self._peer = Peer(self._send, self._serve, self._on_notification, connection.tasks)
        self.app = NoApp()

    def receive(self, frame: Frame) -> None:
        self._peer.receive(frame)

    def send_status(self, type: str, data: Mapping[str, object]) -> None:
        self._send(notification("second/status", {"type": type}))

    def report_access(self, session: object) -> None:
        """It follows no chat."""

    def reset(self) -> None:
        """It follows no chat."""

    def refuse(self) -> None:
        self._peer.refuse(RpcError(-32000, "Closing"))

    async def idle(self) -> None:
        await self._peer.idle()

    def abandon(self) -> None:
        self._peer.abandon()

    def _on_notification(self, message: Notification) -> None:
        if message.method == "quit":
            self._host.begin_exit(0)

    async def _serve(self, call: Call) -> Any:
        if call.method == "initialize":
            self._host.client_connected("second", None)
            return {"second": call.params["second"]}
        if call.method == "ping":
            return {"dialect": SECOND}
        if call.method == "prompt":
            return {"text": await self._prompt(call.params["chat"], call.params["text"])}
        raise RpcError(-32601, f"The second dialect has no {call.method}")

    async def _prompt(self, chat: str, text: str) -> str | None:
        chats = await self._host.opened_chats()
        session = await chats.session_for_prompt(ChatAddress(chat))
        await session.send(IncomingPrompt(text, [Block(type="text", text=text)], "queue"))
        assert session.turn
        await session.turn.done.wait()
        _, page = await chats.history(
            session, before=None, after=None, around=None, limit=1, max_bytes=1 << 20
        )
        return page.turns[-1].items[-1].text


def is_second(first: Request) -> bool:
    return first.method == "initialize" and type(first.params.get("second")) is int


def load_second() -> type[Frontend]:
    return SecondFrontend


FRONTENDS = FrontendRegistry([*BUILT_IN, FrontendEntry(SECOND, load_second, is_second)])

if __name__ == "__main__":
    from sidecar.server.bootstrap import serve
    from sidecar.system.launch import ServeOptions

    serve(ServeOptions(frontend=sys.argv[1] if sys.argv[1:] else None), FRONTENDS)
