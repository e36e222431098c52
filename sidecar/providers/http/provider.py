"""A provider that is asked over HTTP: joins a dialect to the transport, and knows what its models can do."""

from __future__ import annotations

import re
from typing import Any

import anyio
import anyio.lowlevel
import msgspec

from ...model.events import encode
from ...model.failures import ProviderFailed
from ...system import redact
from ..base import Chunk, Completion, Emit, ModelEntry, ModelRequest
from ..catalogue import Known, catalogue
from ..connection import Connection, ModelFacts
from ..connections import KEYLESS, Connections
from ..wording import RanAway
from . import faults
from .dialect import Dialect, Malformed, Reply, Told, Troubled
from .line import Silent
from .sse import LineReader, SseEvent, SseReader, TooLong
from .surrogates import Mender
from .transport import Transport

LIST_S = 5.0
"""A settings page waits for a list of models no longer than this."""

SHOWN_AT_ONCE = 4
"""Ollama is asked about each of its models; a few at a time."""

EVENTS_A_BREATH = 200
"""Events of one read that are handled at a stretch: a few milliseconds, and then others get their turn."""

MAX_LISTED = 2000
"""Models of one provider that are listed; the largest aggregators have some hundreds."""

_NO_CHAT = re.compile(
    r"embed|whisper|tts|dall-e|image|realtime|transcri|moderation|instruct|sora|davinci|babbage"
)
"""OpenAI lists all that it has without saying what each is for."""


class HttpProvider:
    reads_history = True

    def __init__(self, name: str, dialect: Dialect, connections: Connections) -> None:
        self._name = name
        self._dialect = dialect
        self._connections = connections
        self._transport: tuple[Connection, Transport] | None = None
        self._told: dict[str, Told] = {}

    @property
    def retries(self) -> int:
        return self._here().retries

    async def stream(self, request: ModelRequest, emit: Emit) -> Completion:
        connection, transport = await self._connected()
        reply = self._dialect.reply(request, connection)
        reading = _Reading(self._dialect.lines, reply, emit, connection.timeout)
        body = encode(self._dialect.body(request, self.known(request.model), connection))
        headers = {"content-type": "application/json", **self._dialect.headers(connection)}
        try:
            path = self._dialect.path(request.model)
            await transport.post(path, headers, body, request.model, reading.take)
            await reading.close()
        except Troubled as trouble:
            raise faults.judged(trouble.trouble, connection, request.model) from trouble
        except (
            Malformed,
            RanAway,
            TooLong,
            msgspec.MsgspecError,
            UnicodeDecodeError,
            RecursionError,
        ) as error:
            said = f"an event of its reply is malformed: {error}"
            raise faults.failure("bad_reply", said, connection, model=request.model) from error
        self._check(reply, reading, connection, request.model)
        return reply.completion()

    async def warm(self, model: str) -> None:
        """Have a connection open, so that the first word need not wait for handshakes."""
        try:
            _, transport = await self._connected()
            await transport.warm()
        except ProviderFailed:
            return

    def known(self, model: str) -> ModelEntry:
        return self._known(model, self._here())

    def _known(self, model: str, connection: Connection) -> ModelEntry:
        return _entry(
            connection,
            model,
            connection.models.get(model) or ModelFacts(),
            self._told.get(model) or Told(model),
            catalogue().find(connection.type, model),
        )

    async def models(self) -> list[ModelEntry]:
        """What the provider lists, and what the user has named beside."""
        connection, transport = await self._connected()
        headers = self._dialect.headers(connection)
        document = await transport.get(self._dialect.models_path, headers, LIST_S)
        try:
            told = self._dialect.models(document)[:MAX_LISTED]
        except msgspec.MsgspecError as error:
            raise faults.failure("bad_reply", f"its list of models: {error}", connection) from error
        if connection.type == "ollama":
            told = await self._shown(told, connection, transport)
        elif connection.official and connection.type.startswith("openai"):
            told = [each for each in told if not _NO_CHAT.search(each.id)]
        self._told = {each.id: each for each in told}
        return [self._known(id, connection) for id in dict.fromkeys([*self._told, *connection.models])]

    def listed(self, reason: str) -> list[ModelEntry]:
        """What is known without asking, when asking is no use for this reason."""
        connection = self._here()
        names = [*connection.models, *(known.match for known in catalogue().of(connection.type))]
        entries = [
            self.known(name) for name in (dict.fromkeys(names) if connection.official else connection.models)
        ]
        return [msgspec.structs.replace(entry, available=False, reason=reason) for entry in entries]

    async def _shown(self, told: list[Told], connection: Connection, transport: Transport) -> list[Told]:
        """Ollama's list says nothing of windows: each model is asked about."""
        found: dict[str, Told] = {}
        limit = anyio.CapacityLimiter(SHOWN_AT_ONCE)
        dialect: Any = self._dialect

        async def show(each: Told) -> None:
            async with limit:
                try:
                    headers = dialect.headers(connection)
                    document = await transport.ask("/api/show", headers, {"model": each.id}, LIST_S)
                    found[each.id] = dialect.shown(each.id, document)
                except (ProviderFailed, msgspec.MsgspecError):
                    found[each.id] = each

        with anyio.move_on_after(LIST_S):
            async with anyio.create_task_group() as tasks:
                for each in told:
                    tasks.start_soon(show, each)
        return [found.get(each.id, each) for each in told]

    async def _connected(self) -> tuple[Connection, Transport]:
        connection = await self._connections.connection(self._name)
        assert connection is not None
        if connection.key is None and connection.official and connection.type not in KEYLESS:
            raise faults.no_key(connection)
        before = self._transport
        if before is not None and before[0] == connection:
            return before
        made = self._transport = (connection, Transport(connection))
        if before is not None:
            await before[1].close()
        return made

    def _here(self) -> Connection:
        connection = self._connections.get(self._name)
        assert connection is not None
        return connection

    def _check(self, reply: Reply, reading: _Reading, connection: Connection, model: str) -> None:
        """A reply that is no reply is a failure, told apart by what did come."""
        if not reply.ended:
            if instead := reading.instead():
                said = f"it answered with something else than a stream: {instead}"
                raise faults.failure("bad_reply", said, connection, model=model)
            said = "the reply stopped before its end" if reading.events else "it sent no reply"
            raise faults.failure("stream_cut", said, connection, model=model)
        if reply.is_empty:
            raise faults.failure("bad_reply", "the reply is empty", connection, model=model)


class _Reading:
    """The bytes of a reply on their way to chunks."""

    def __init__(self, lines: bool, reply: Reply, emit: Emit, patience: float) -> None:
        self._lines = LineReader() if lines else None
        self._events = SseReader()
        self._reply = reply
        self._emit = emit
        self._mender = Mender()
        self._head = b""
        self._patience = patience
        self._last_event = anyio.current_time()
        self.events = 0

    async def take(self, data: bytes) -> bool:
        if not self.events:
            self._head += data[: max(0, 4096 - len(self._head))]
        found = self._events.feed(data) if self._lines is None else _as_events(self._lines.feed(data))
        await self._hand_out(found)
        self._check_patience(bool(found))
        # Much may wait in the socket: whoever writes down and shows what has come must get a turn between.
        await anyio.lowlevel.checkpoint()
        return self._reply.ended

    def _check_patience(self, progress: bool) -> None:
        """Blank lines and comments keep a connection open; they are no sign that an answer comes."""
        if progress:
            self._last_event = anyio.current_time()
        elif anyio.current_time() - self._last_event > self._patience:
            raise Silent

    async def close(self) -> None:
        """The stream has ended; an event that it was cut in counts only when it is whole."""
        if self._reply.ended:
            return
        rest = self._events.close() if self._lines is None else _as_events(self._lines.close())
        try:
            await self._hand_out(rest)
        except msgspec.MsgspecError:
            return
        for chunk in self._reply.close():
            await self._emit(chunk)

    def instead(self) -> str | None:
        """What came in place of a stream: an error in JSON, a page; None when events came, or nothing."""
        head = self._head.strip()
        if self.events or not head:
            return None
        text = redact.redacted(head.decode(errors="replace"))  # cut first, half a key would stay
        return faults.error_of(head)[1] or text[:80]

    async def _hand_out(self, events: list[SseEvent]) -> None:
        for event in events:
            self.events += 1
            if self.events % EVENTS_A_BREATH == 0:
                await anyio.lowlevel.checkpoint()
            for chunk in self._chunks(event):
                await self._emit(chunk)
            if self._reply.ended:
                return

    def _chunks(self, event: SseEvent) -> list[Chunk]:
        if not self._mender.is_holding:
            try:
                return self._reply.take(event)
            except msgspec.DecodeError:
                if b"\\u" not in event.data:
                    raise
        return self._reply.take(SseEvent(event.type, self._mender.mend(event.data)))


def _as_events(lines: list[bytes]) -> list[SseEvent]:
    return [SseEvent("", line) for line in lines if line.strip()]


def _entry(
    connection: Connection, model: str, user: ModelFacts, told: Told, known: Known | None
) -> ModelEntry:
    """The user's word goes before the provider's, and that before the data file's."""
    file = known or Known(connection.type, model, model)
    return ModelEntry(
        id=f"{connection.name}:{model}",
        name=told.name or file.name,
        provider=connection.name,
        window=user.window or told.window or file.window,
        max_output=user.max_output or told.max_output or file.max_output,
        modalities=told.modalities or file.modalities,
        efforts=told.efforts if told.efforts is not None else (file.efforts if known else None),
        # A model that the file does not know is newer than the file.
        thinking=file.thinking if known else "adaptive",
        reasoning=file.reasoning,
        prices=user.prices or told.prices or file.prices,
    )
