"""One duplex end of a JSON-RPC connection, used by the sidecar and by the Python client.

Turns whole frames into calls and calls into frames. It owns the two tables: calls that the other side waits
for, and requests that this side waits for. It knows no method, no transport and no framing.

Invariant: every request received gets exactly one answer, also when its handler fails, is cancelled, or the
connection is closing.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import msgspec
from anyio.abc import TaskGroup

from . import jsonrpc
from .errors import RpcError, no_memory
from .framing import Frame
from .jsonrpc import Invalid, Notification, Request, RequestId, Response

logger = logging.getLogger(__name__)


class Call:
    """A request of the other side while it is handled."""

    def __init__(self, request: Request) -> None:
        self.id = request.id
        self.method = request.method
        self.params = request.params
        self.scope = anyio.CancelScope()
        self.cancelled = False
        self._after: list[Callable[[], None]] = []

    def after_answer(self, action: Callable[[], None]) -> None:
        """Run `action` once the answer stands in the outgoing stream, whatever the answer is."""
        self._after.append(action)

    def run_after_answer(self) -> None:
        for action in self._after:
            action()

    def cancel(self) -> None:
        self.cancelled = True
        self.scope.cancel()


class Cancelling(msgspec.Struct, frozen=True):
    """How a dialect withdraws a request: the notification, its member with the id, and whether such a request is
    still answered.
    """

    notification: str = "$/cancelRequest"
    member: str = "id"
    answers: bool = True


NATIVE_CANCELLING = Cancelling()

Serve = Callable[[Call], Awaitable[Any]]
Hear = Callable[[Notification], None]


class Peer:
    """`write` takes one encoded message and must not block; `serve` answers a call by returning or raising RpcError."""

    def __init__(
        self,
        write: Callable[[bytes], None],
        serve: Serve,
        hear: Hear,
        tasks: TaskGroup,
        cancelling: Cancelling = NATIVE_CANCELLING,
    ) -> None:
        self._cancelling = cancelling
        self._write = write
        self._serve = serve
        self._hear = hear
        self._tasks = tasks
        self._calls: dict[RequestId, Call] = {}
        self._waiting: dict[RequestId, _Waiter] = {}
        self._next_id = 0
        self._closed: RpcError | None = None
        self._idle = anyio.Event()

    @property
    def inflight(self) -> int:
        return len(self._calls)

    def receive(self, frame: Frame) -> None:
        """Take one frame. Calls start in the order in which their frames came."""
        message = jsonrpc.parse(frame)
        match message:
            case Request():
                self._begin(message)
            case Notification(self._cancelling.notification, params):
                # What is no call may be known to the owner, such as an operation that no request began.
                if not self._cancel(params.get(self._cancelling.member)):
                    self._hear(message)
            case Notification():
                self._hear(message)
            case Response():
                self._settle(message)
            case Invalid(id, error):
                self._write(jsonrpc.failure(id, error))

    async def request(self, method: str, params: Any) -> Any:
        """Ask the other side and wait for its answer; cancelling the wait cancels the request there."""
        if self._closed:
            raise self._closed
        self._next_id += 1
        id = self._next_id
        # Entered before the request is written: no answer can come earlier than its waiter.
        waiter = self._waiting[id] = _Waiter()
        self._write(jsonrpc.request(id, method, params))
        try:
            return await waiter.wait()
        except anyio.get_cancelled_exc_class():
            # An answer that came in the same moment has removed it: then there is nothing to cancel.
            if id in self._waiting and not self._closed:
                self.notify(self._cancelling.notification, {self._cancelling.member: id})
            raise
        finally:
            # A late answer finds no waiter and is logged, instead of reaching the next request.
            self._waiting.pop(id, None)

    def notify(self, method: str, params: Any) -> None:
        self._write(jsonrpc.notification(method, params))

    def refuse(self, error: RpcError) -> None:
        """From now on every new request is answered with `error`, and requests of ours that wait fail with it."""
        self._closed = error
        for waiter in self._waiting.values():
            waiter.fail(error)

    def cancel_calls(self) -> None:
        """Nobody will read the answers to the calls under way: end them."""
        # Only the scopes are cancelled: each call then writes its own answer, or it would get two.
        for call in self._calls.values():
            call.scope.cancel()

    async def idle(self) -> None:
        """Wait until every call under way has its answer."""
        while self._calls:
            if self._idle.is_set():
                self._idle = anyio.Event()
            await self._idle.wait()

    def abandon(self) -> None:
        """The process is about to end: whoever still waits gets an error."""
        for call in self._calls.values():
            self._write(jsonrpc.failure(call.id, self._cancellation(call)))

    def _begin(self, request: Request) -> None:
        if self._closed:
            self._write(jsonrpc.failure(request.id, self._closed))
        elif request.id in self._calls:
            error = RpcError.named(
                "invalid_request", f"The id {request.id!r} is in use by a request under way"
            )
            self._write(jsonrpc.failure(request.id, error))
        else:
            call = self._calls[request.id] = Call(request)
            self._tasks.start_soon(self._answer, call)

    async def _answer(self, call: Call) -> None:
        reply: bytes | None = None
        try:
            with call.scope:
                reply = jsonrpc.success(call.id, await self._serve(call))
        except RpcError as error:
            reply = jsonrpc.failure(call.id, error)
        except MemoryError:
            reply = jsonrpc.failure(call.id, no_memory())
        finally:
            # A cancelled task group lands here too: the answer is written without awaiting.
            del self._calls[call.id]
            if reply or not call.cancelled or self._cancelling.answers:
                self._write(reply or jsonrpc.failure(call.id, self._cancellation(call)))
            call.run_after_answer()
            if not self._calls:
                self._idle.set()

    def _cancellation(self, call: Call) -> RpcError:
        if call.cancelled:
            return RpcError.named("request_cancelled", "Cancelled by the side that asked")
        return self._closed or RpcError.named(
            "server_cancelled", "Cancelled by the side that answers", retryable=True
        )

    def _cancel(self, id: Any) -> bool:
        """Cancel a call; return whether there is one with this id."""
        known = jsonrpc.as_request_id(id)
        if known is None or known not in self._calls:
            return False
        self._calls[known].cancel()
        return True

    def _settle(self, response: Response) -> None:
        waiter = self._waiting.pop(response.id, None)
        if waiter is None:
            logger.warning(
                "ignored a response to a request that was never sent", extra={"rpc_id": response.id}
            )
        elif response.error:
            waiter.fail(response.error)
        else:
            waiter.succeed(response.result)


class _Waiter:
    def __init__(self) -> None:
        self._done = anyio.Event()
        self._result: Any = None
        self._error: RpcError | None = None

    async def wait(self) -> Any:
        await self._done.wait()
        if self._error:
            raise self._error
        return self._result

    def succeed(self, result: Any) -> None:
        self._result = result
        self._done.set()

    def fail(self, error: RpcError) -> None:
        self._error = error
        self._done.set()
