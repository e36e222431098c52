"""The fake provider itself: listens on loopback, parses requests, and lets an API or a fault respond.

In a test: `async with FakeProvider() as fake:` and then `fake.url`, `fake.requests`, `fake.fault(...)`. From
synchronous code: `with in_thread() as fake:`. As a process: `sidecar fake-provider`.
"""

from __future__ import annotations

import itertools
import socket
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Literal, NamedTuple

import anyio
from anyio.abc import SocketAttribute, SocketStream, TaskGroup
from anyio.from_thread import start_blocking_portal
from anyio.streams.stapled import MultiListener

from . import control, markers
from .anthropic import AnthropicMessages
from .base import Api, Style, Vendor
from .exchange import Exchange, refuse, respond
from .faults import FAULTS, find_fault
from .gemini import Gemini
from .ollama import Ollama
from .openai_chat import OpenAIChat
from .openai_responses import OpenAIResponses
from .rules import parse_body
from .values import DEFAULT_MODELS, Json, Model, ModelCall, PlannedReply, Recorded, Rejected
from .wire import CLIENT_GONE, RawRequest, Wire

REMEMBERED = 10_000  # requests that are kept for tests to inspect; the oldest are dropped
REMEMBERED_BYTES = 256 * 1024 * 1024  # and bytes of their bodies: long chats are sent again with every turn


class FakeProvider:
    """An imitation of five APIs on one port. `requests` are the received ones, oldest first."""

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        key: str | None = None,
        models: Sequence[Model] = DEFAULT_MODELS,
        prefix: str | None = "fake",
        style: Style = "openai",
        cache_minimum: int = 1024,
        body_limit: int = 32 * 1024 * 1024,
        forbidden: str | None = None,
        forbidden_answer: tuple[int, Json | str] | Literal["silence"] | None = None,
    ) -> None:
        self.requests: list[Recorded] = []
        self.connections = 0
        self.on_request: Callable[[Recorded], None] | None = None
        self.host, self.port = host, port
        self.forbidden = forbidden
        """A text that no request may contain: it is refused as by a content policy."""
        self.forbidden_answer = forbidden_answer
        """The status and the body of that refusal, as some other server words it: JSON, or the text of a page. With
        "silence" the model declines without a word.
        """
        self.vendor = Vendor(
            key=key,
            models=models,
            prefix=prefix,
            style=style,
            cache_minimum=cache_minimum,
            body_limit=body_limit,
        )
        self._apis: tuple[Api, ...] = (
            AnthropicMessages(),
            OpenAIChat(),
            OpenAIResponses(),
            Gemini(),
            Ollama(),
        )
        self._numbers = itertools.count(1)
        self._queue: list[_Queued] = []
        self._played: Counter[tuple[str, str, str]] = Counter()
        self._arrived = anyio.Event()
        self._kept = 0
        self._crash: Exception | None = None
        self._tasks: TaskGroup | None = None
        self._listener: MultiListener[SocketStream] | None = None

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    @property
    def env(self) -> dict[str, str]:
        """Return the environment variables that connect a client to this fake."""
        key = self.vendor.key or "fake-key"
        return {
            "OPENAI_BASE_URL": f"{self.url}/v1",
            "OPENAI_API_KEY": key,
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": key,
            "GOOGLE_GEMINI_BASE_URL": self.url,
            "GEMINI_API_KEY": key,
            "OLLAMA_HOST": self.url,
        }

    def fault(self, name: str, times: int = 1, *, api: str | None = None, path: str | None = None) -> None:
        """Play a fault for the next `times` model requests (of one API, if given). Faults are queued.

        With a `path`, for the next requests to it, of any kind: this is the only way to fail lists of models.
        """
        find_fault(name, api)
        self._queue += [_Queued(name, api, path)] * times

    async def wait_for(self, count: int) -> Recorded:
        """Return the request of that number (from 1), as soon as it has come in."""
        while len(self.requests) < count:
            await self._arrived.wait()
        return self.requests[count - 1]

    def clear(self) -> None:
        """Drop requests and faults; caches and stored responses stay."""
        self.requests.clear()
        self._kept = 0
        self._queue.clear()
        self._played.clear()

    async def __aenter__(self) -> FakeProvider:
        self._listener = await anyio.create_tcp_listener(local_host=self.host, local_port=self.port)
        self.port = self._listener.extra(SocketAttribute.local_port)
        self._tasks = await anyio.create_task_group().__aenter__()
        self._tasks.start_soon(self._listener.serve, self._connection)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        assert self._tasks is not None
        assert self._listener is not None
        self._tasks.cancel_scope.cancel()
        # An exception of the caller must not pass through the task group, which would wrap it.
        theirs = isinstance(error, Exception)
        try:
            result = await self._tasks.__aexit__(*((None, None, None) if theirs else (kind, error, trace)))
        finally:
            with anyio.CancelScope(shield=True):
                await self._listener.aclose()
        if self._crash is not None and error is None:
            raise RuntimeError("the fake provider itself broke") from self._crash
        return None if theirs else result

    async def _connection(self, stream: SocketStream) -> None:
        self.connections += 1
        async with stream:
            wire = Wire(stream, next(self._numbers))
            if self._queue and self._queue[0].name == "accept_close":
                self._queue.pop(0)
                await wire.close()
                return
            while (raw := await wire.next_request(self.vendor.body_limit)) is not None:
                await self._exchange(wire, raw)
                if not await wire.ready_for_next():
                    return

    async def _exchange(self, wire: Wire, raw: RawRequest) -> None:
        """Respond, and watch the client meanwhile: when it disconnects, the response is cancelled at once."""
        api, request = self._record(wire, raw)
        try:
            async with anyio.create_task_group() as tasks:

                async def watch() -> None:
                    await wire.watch()
                    tasks.cancel_scope.cancel()

                tasks.start_soon(watch)
                await self._answer(api, wire, request, raw)
                tasks.cancel_scope.cancel()
            request.closed_early = wire.open and not wire.finished
        finally:
            request.ended.set()
            if self.on_request is not None:
                self.on_request(request)
        if request.closed_early:
            wire.open = False

    def _record(self, wire: Wire, raw: RawRequest) -> tuple[Api | None, Recorded]:
        path, _, query = raw.target.partition("?")
        api = next((api for api in self._apis if api.serves(raw.method, path, raw.headers)), None)
        name = api.name if api else "unknown"
        request = Recorded(name, raw.method, path, query, raw.headers, raw.body, wire.number)
        if not path.startswith(control.PREFIX):
            self._remember(request)
        return api, request

    def _remember(self, request: Recorded) -> None:
        self.requests.append(request)
        self._arrived.set()
        self._arrived = anyio.Event()
        self._kept += len(request.body)
        while len(self.requests) > REMEMBERED or (self._kept > REMEMBERED_BYTES and len(self.requests) > 1):
            self._kept -= len(self.requests.pop(0).body)

    async def _answer(self, api: Api | None, wire: Wire, request: Recorded, raw: RawRequest) -> None:
        try:
            if api is None:
                status, body = control.answer(self, request)
                request.status = status
                await wire.respond(status, {"content-type": "application/json"}, body)
                return
            await self._ask(api, wire, request, raw)
        except Rejected as rejected:
            assert api is not None
            request.rule = rejected.message
            await refuse(api, wire, request, rejected)
        except CLIENT_GONE:
            pass  # the watcher sees it as well; `closed_early` records it
        except Exception as error:
            self._crash = self._crash or error
            traceback.print_exception(error, file=sys.stderr)
            await wire.reset()

    async def _ask(self, api: Api, wire: Wire, request: Recorded, raw: RawRequest) -> None:
        if raw.too_large:
            raise Rejected("Request exceeds the maximum size", status=413, reason="too_large")
        api.authorize(request, self.vendor)
        if request.method == "POST":
            _check_content_type(request)
            request.json = parse_body(request.body)
        fixed = api.fixed_response(request, self.vendor)
        is_forbidden = fixed is None and bool(self.forbidden) and str(self.forbidden).encode() in request.body
        if is_forbidden and self.forbidden_answer != "silence":
            await self._forbid(api, wire, request)
            return
        if fixed is not None:
            model_call, reply = ModelCall("", {}, ""), PlannedReply()
        else:
            model_call = api.check(request, self.vendor)
            reply = _cut(
                markers.reply_to(model_call.prompt, model_call.results, model_call.rounds), model_call
            )
        if is_forbidden:
            model_call.details["filtered"], reply = True, PlannedReply(stop="refusal")
        exchange = Exchange(api, self.vendor, wire, request, model_call, reply, fixed)
        request.fault = self._queued_fault(request, asks=fixed is None) or self._fault_of_prompt(
            api, model_call, reply
        )
        if request.fault is None:
            await exchange.deliver()
        else:
            await FAULTS[request.fault].play(exchange)

    async def _forbid(self, api: Api, wire: Wire, request: Recorded) -> None:
        if not isinstance(self.forbidden_answer, tuple):
            raise Rejected("Your request was flagged as potentially violating our usage policy.")
        status, body = self.forbidden_answer
        kind = "text/html" if isinstance(body, str) else "application/json"
        await respond(api, wire, request, status, body, {"content-type": kind})

    def _queued_fault(self, request: Recorded, *, asks: bool) -> str | None:
        for at, queued in enumerate(self._queue):
            here = queued.path == request.path if queued.path is not None else asks
            if here and queued.api in (None, request.api):
                del self._queue[at]
                return queued.name
        return None

    def _fault_of_prompt(self, api: Api, model_call: ModelCall, reply: PlannedReply) -> str | None:
        """Return the first fault that the prompt names and that is not used up."""
        for name, times in reply.faults:
            try:
                find_fault(name, api.name)
            except ValueError as error:
                raise Rejected(str(error)) from None
            key = (api.name, name, model_call.prompt)
            self._played[key] += 1
            if times is None or self._played[key] <= times:
                return name
        return None


class _Queued(NamedTuple):
    name: str
    api: str | None
    path: str | None


@contextmanager
def in_thread(**options: Any) -> Iterator[FakeProvider]:
    """Run a fake on a thread, for synchronous code. Takes the parameters of `FakeProvider`."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(FakeProvider(**options)) as fake,
    ):
        yield fake


def unused_port() -> int:
    """Return a port that nobody listens on: connecting to it is refused."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _check_content_type(request: Recorded) -> None:
    given = request.headers.get("content-type", "")
    if given.partition(";")[0].strip().lower() != "application/json":
        raise Rejected(
            f"Unsupported content type: '{given or 'none'}'. This API method only accepts 'application/json' requests,"
            " but you specified the header 'Content-Type: "
            + given
            + "'. Please try again with a supported content type.",
            status=400,
        )


def _cut(reply: PlannedReply, model_call: ModelCall) -> PlannedReply:
    """Limit the reply to what the request allows: thoughts, parallel calls, length."""
    thoughts = reply.thoughts if model_call.thinking else ()
    calls = reply.calls if model_call.parallel else reply.calls[:1]
    text, stop = reply.text, reply.stop
    if model_call.max_output is not None and len(thoughts) + len(text) > model_call.max_output:
        thoughts = thoughts[: model_call.max_output]
        text, calls, stop = text[: model_call.max_output - len(thoughts)], (), "length"
    if stop == "length":
        calls = ()
    return PlannedReply(thoughts, text, calls, stop, reply.delay, reply.usage, reply.faults)
