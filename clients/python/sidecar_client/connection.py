"""One life of a sidecar: a peer over a transport, from `initialize` to its death. Knows no chats."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import anyio
import msgspec
from anyio.abc import TaskGroup
from sidecar_protocol import messages as m
from sidecar_protocol.errors import CODES, RpcError
from sidecar_protocol.framing import Deframer, Oversized, encode
from sidecar_protocol.jsonrpc import Notification
from sidecar_protocol.limits import MAX_FRAME_BYTES
from sidecar_protocol.peer import Peer, Serve

from .errors import SidecarDied
from .process import Transport

logger = logging.getLogger(__name__)

MAX_INCOMING_BYTES = 2 * MAX_FRAME_BYTES
"""The sidecar keeps its frames within the limit that it advertises; twice that is no frame of its."""

GREETING_SECONDS = 30.0
"""`initialize` is answered before the database is opened: whoever takes this long is no sidecar."""

LEAVE_SECONDS = 2.0
"""The contract's bound on the way out; after it the process is terminated."""

_UNASKED = b'{"jsonrpc":"2.0","id":null'


class _Gone(RpcError):
    """What the peer fails waiting requests with; turned into SidecarDied here."""


class Connection:
    """Requests to one sidecar process. `over` is set once it is gone, and `death` says how it went."""

    def __init__(
        self, transport: Transport, serve: Serve, hear: Callable[[Notification], None], tasks: TaskGroup
    ) -> None:
        self.over = anyio.Event()
        self.death = SidecarDied("The sidecar is gone")
        self._transport = transport
        self._peer = Peer(self._write, serve, hear, tasks)
        self._scope = anyio.CancelScope()
        # Unbounded, because whoever writes waits for an answer: it holds one message for each such waiter.
        self._outgoing, self._to_send = anyio.create_memory_object_stream[bytes](math.inf)

    @property
    def pid(self) -> int | None:
        return self._transport.pid

    async def run(self) -> None:
        """Carry bytes both ways until the process is gone. Cancelling it makes the process go."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._write_all)
            tasks.start_soon(self._transport.watch)
            grace = 0.0
            try:
                with self._scope:
                    await self._read_all()
                    grace = LEAVE_SECONDS
            finally:
                with anyio.CancelScope(shield=True):
                    self._end(await self._transport.finish(grace))
                tasks.cancel_scope.cancel()

    async def initialize(self, hello: m.InitializeParams) -> m.InitializeResult:
        with anyio.move_on_after(GREETING_SECONDS):
            return msgspec.convert(await self.request("initialize", hello), m.InitializeResult)
        raise SidecarDied(f"The program does not answer `initialize` within {GREETING_SECONDS:.0f} seconds")

    async def request(self, method: str, params: Any) -> Any:
        """The raw result. Raises RpcError for an error, SidecarDied when the process goes instead."""
        try:
            return await self._peer.request(method, params)
        except _Gone:
            raise self.death.again() from None

    async def close(self) -> None:
        """`shutdown`, `exit`, and whatever it takes; returns when the process is gone."""
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(LEAVE_SECONDS):
                await self._say_goodbye()
                await self.over.wait()
            self._scope.cancel()
            await self.over.wait()

    async def _say_goodbye(self) -> None:
        try:
            await self.request("shutdown", m.ShutdownParams())
        except (RpcError, SidecarDied):
            logger.debug("shutdown was not answered with a result")
        self._peer.notify("exit", {})
        self._outgoing.close()

    async def _read_all(self) -> None:
        deframer = Deframer("lines", MAX_INCOMING_BYTES)
        while data := await self._transport.receive():
            for frame in deframer.feed(data):
                if isinstance(frame, Oversized):
                    logger.error("the sidecar sent a frame of %d bytes", frame.size)
                    return
                self._peer.receive(frame)

    async def _write_all(self) -> None:
        try:
            async for message in self._to_send:
                await self._transport.send(encode(message, "lines"))
            await self._transport.end_input()
        except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            logger.debug("the sidecar stopped reading")

    def _write(self, message: bytes) -> None:
        # The sidecar's error without an id is nothing to answer: that would be answered, and so for ever.
        if message.startswith(_UNASKED):
            logger.warning("ignored a message that is neither a request nor a response")
        else:
            # Once the connection is over, or about to be, there is nobody to read it.
            with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                self._outgoing.send_nowait(message)

    def _end(self, death: SidecarDied) -> None:
        self.death = death
        self._peer.refuse(_Gone(CODES["shutting_down"], "The sidecar is gone"))
        self._peer.cancel_calls()
        self.over.set()
        self._outgoing.close()
        self._to_send.close()
