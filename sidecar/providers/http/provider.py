"""A provider over HTTP: connects a dialect to the transport, and knows what its models can do."""

from __future__ import annotations

import re
from typing import Any

import anyio
import anyio.lowlevel
import msgspec

from ...media import AUDIO_TYPES, IMAGE_TYPES
from ...model.events import encode
from ...model.failures import ProviderFailed, named_window
from ...system import redact
from ...text.control_tokens import break_control_tokens
from ..base import Completion, Emit, ModelEntry, ModelRequest, ReplyPart
from ..catalogue import CatalogueEntry, catalogue
from ..endpoint import Endpoint, ModelFacts
from ..endpoints import KEYLESS, Endpoints
from ..wording import ReplyTooLarge
from . import errors
from .connection import ConnectionSilent
from .dialect import Dialect, MalformedReply, ModelInfo, ReplyReader, StreamError
from .sse import LineReader, SseEvent, SseReader, TooLong
from .surrogates import SurrogateJoiner
from .transport import Transport

LIST_S = 5.0
"""A settings page waits for a list of models no longer than this."""

PARALLEL_DETAILS = 4
"""Ollama needs one request per model; a few run in parallel."""

EVENTS_PER_YIELD = 200
"""Events of one read that are handled before yielding to other tasks: a few milliseconds."""

MAX_LISTED = 2000
"""Models of one provider that are listed; the largest aggregators have some hundreds."""

_NOT_CHAT_MODELS = re.compile(
    r"embed|whisper|tts|dall-e|image|realtime|transcri|moderation|instruct|sora|davinci|babbage"
)
"""OpenAI lists all its models without their purpose."""


_MEDIA_TYPES = {
    "openai": (*IMAGE_TYPES, "audio/wav", "audio/mpeg"),
    "openai-responses": (*IMAGE_TYPES, "audio/wav", "audio/mpeg"),
    "gemini": ("image/png", "image/jpeg", "image/webp", *AUDIO_TYPES),
}
"""By the type of the provider; the others accept all images and no audio."""


class HttpProvider:
    reads_history = True

    def __init__(self, name: str, dialect: Dialect, endpoints: Endpoints) -> None:
        self._name = name
        self._dialect = dialect
        self._endpoints = endpoints
        self._transport: tuple[Endpoint, Transport] | None = None
        self._reported: dict[str, ModelInfo] = {}
        self._named_windows: dict[str, int] = {}
        """The context windows that the provider named in refusals, by model."""
        self._accepted_tokens: dict[str, int] = {}
        """The largest input that each model has accepted, as the provider counted it."""

    @property
    def retries(self) -> int:
        return self._endpoint().retries

    async def stream(self, request: ModelRequest, emit: Emit) -> Completion:
        accepted = self._accepted_tokens.get(request.model, 0)
        try:
            completion = await self._stream(request, emit)
        except ProviderFailed as failure:
            window = named_window(failure)
            # Less than what it has accepted before is no window, but a limit for some time.
            if window and window > accepted:
                self._named_windows[request.model] = window
            raise
        self._accepted_tokens[request.model] = max(accepted, completion.usage.input or 0)
        return completion

    async def _stream(self, request: ModelRequest, emit: Emit) -> Completion:
        connection, transport = await self._connect()
        reply = self._dialect.reply(request, connection)
        reading = _StreamReader(self._dialect.lines, reply, emit, connection.timeout)
        body = encode(self._dialect.body(request, self.model_entry(request.model), connection))
        if may_parse_control_tokens(connection):
            # In JSON the tokens are spelled as in the texts, and stand nowhere else.
            body = break_control_tokens(body.decode()).encode()
        headers = {"content-type": "application/json", **self._dialect.headers(connection)}
        try:
            path = self._dialect.path(request.model)
            await transport.post(path, headers, body, request.model, reading.take)
            await reading.close()
        except StreamError as trouble:
            raise errors.classify(trouble.trouble, connection, request.model) from trouble
        except (
            MalformedReply,
            ReplyTooLarge,
            TooLong,
            msgspec.MsgspecError,
            UnicodeDecodeError,
            RecursionError,
        ) as error:
            said = f"an event of its reply is malformed: {error}"
            raise errors.failure("bad_reply", said, connection, model=request.model) from error
        self._check(reply, reading, connection, request.model)
        return reply.completion()

    async def warm(self, model: str) -> None:
        """Open a connection, so that the first token need not wait for handshakes."""
        try:
            _, transport = await self._connect()
            await transport.warm()
        except ProviderFailed:
            return

    def model_entry(self, model: str) -> ModelEntry:
        return self._known(model, self._endpoint())

    def _known(self, model: str, connection: Endpoint) -> ModelEntry:
        return _entry(
            connection,
            model,
            connection.models.get(model) or ModelFacts(),
            self._reported.get(model) or self._reported.get(f"{model}:latest") or ModelInfo(model),
            catalogue().find(connection.type, model),
            self._named_windows.get(model),
        )

    async def models(self) -> list[ModelEntry]:
        """Return what the provider lists, and what the user has configured."""
        connection, transport = await self._connect()
        headers = self._dialect.headers(connection)
        document = await transport.get(self._dialect.models_path, headers, LIST_S)
        try:
            models = self._dialect.models(document)[:MAX_LISTED]
        except msgspec.MsgspecError as error:
            raise errors.failure("bad_reply", f"its list of models: {error}", connection) from error
        if connection.type == "ollama":
            models = await self._with_details(models, connection, transport)
        elif connection.official and connection.type.startswith("openai"):
            models = [each for each in models if not _NOT_CHAT_MODELS.search(each.id)]
        self._reported = {each.id: each for each in models}
        return [self._known(id, connection) for id in dict.fromkeys([*self._reported, *connection.models])]

    def offline_entries(self, reason: str) -> list[ModelEntry]:
        """Return what is known without a request, which would fail for this reason."""
        connection = self._endpoint()
        names = [*connection.models, *(known.match for known in catalogue().of(connection.type))]
        entries = [
            self.model_entry(name)
            for name in (dict.fromkeys(names) if connection.official else connection.models)
        ]
        return [msgspec.structs.replace(entry, available=False, reason=reason) for entry in entries]

    async def _with_details(
        self, models: list[ModelInfo], connection: Endpoint, transport: Transport
    ) -> list[ModelInfo]:
        """Request the details of each model: Ollama's list has no context windows."""
        found: dict[str, ModelInfo] = {}
        limit = anyio.CapacityLimiter(PARALLEL_DETAILS)
        dialect: Any = self._dialect

        async def show(each: ModelInfo) -> None:
            async with limit:
                try:
                    headers = dialect.headers(connection)
                    document = await transport.ask("/api/show", headers, {"model": each.id}, LIST_S)
                    found[each.id] = dialect.model_details(each.id, document)
                except (ProviderFailed, msgspec.MsgspecError):
                    found[each.id] = each

        with anyio.move_on_after(LIST_S):
            async with anyio.create_task_group() as tasks:
                for each in models:
                    tasks.start_soon(show, each)
        return [found.get(each.id, each) for each in models]

    async def _connect(self) -> tuple[Endpoint, Transport]:
        connection = await self._endpoints.connection(self._name)
        assert connection is not None
        if connection.key is None and connection.official and connection.type not in KEYLESS:
            raise errors.no_key_failure(connection)
        before = self._transport
        if before is not None and before[0] == connection:
            return before
        made = self._transport = (connection, Transport(connection))
        if before is not None:
            await before[1].close()
        return made

    def _endpoint(self) -> Endpoint:
        connection = self._endpoints.get(self._name)
        assert connection is not None
        return connection

    def _check(self, reply: ReplyReader, reading: _StreamReader, connection: Endpoint, model: str) -> None:
        """Raise for an invalid reply, by what was received instead."""
        if not reply.ended:
            if unexpected_body := reading.unexpected_body():
                said = f"it answered with something else than a stream: {unexpected_body}"
                raise errors.failure("bad_reply", said, connection, model=model)
            said = "the reply stopped before its end" if reading.events else "it sent no reply"
            raise errors.failure("stream_cut", said, connection, model=model)
        if reply.is_empty:
            raise errors.failure("bad_reply", "the reply is empty", connection, model=model)


class _StreamReader:
    """Converts the bytes of a reply to chunks."""

    def __init__(self, lines: bool, reply: ReplyReader, emit: Emit, timeout: float) -> None:
        self._lines = LineReader() if lines else None
        self._events = SseReader()
        self._reply = reply
        self._emit = emit
        self._mender = SurrogateJoiner()
        self._head = b""
        self._patience = timeout
        self._last_event = anyio.current_time()
        self.events = 0

    async def take(self, data: bytes) -> bool:
        if not self.events:
            self._head += data[: max(0, 4096 - len(self._head))]
        found = self._events.feed(data) if self._lines is None else _as_events(self._lines.feed(data))
        await self._emit_events(found)
        self._check_timeout(bool(found))
        # The socket may hold much: the tasks that store and show it must run in between.
        await anyio.lowlevel.checkpoint()
        return self._reply.ended

    def _check_timeout(self, progress: bool) -> None:
        """Blank lines and comments keep a connection open; they do not count as progress."""
        if progress:
            self._last_event = anyio.current_time()
        elif anyio.current_time() - self._last_event > self._patience:
            raise ConnectionSilent

    async def close(self) -> None:
        """Handle the end of the stream; an unfinished event counts only when its data are complete."""
        if self._reply.ended:
            return
        rest = self._events.close() if self._lines is None else _as_events(self._lines.close())
        try:
            await self._emit_events(rest)
        except msgspec.MsgspecError:
            return
        for chunk in self._reply.close():
            await self._emit(chunk)

    def unexpected_body(self) -> str | None:
        """Return what came in place of a stream: an error in JSON, a page; None when events came, or nothing."""
        head = self._head.strip()
        if self.events or not head:
            return None
        text = redact.redact_text(
            head.decode(errors="replace")
        )  # redact before cutting: half a key would remain
        return errors.parse_error_body(head)[1] or text[:80]

    async def _emit_events(self, events: list[SseEvent]) -> None:
        for event in events:
            self.events += 1
            if self.events % EVENTS_PER_YIELD == 0:
                await anyio.lowlevel.checkpoint()
            for chunk in self._chunks(event):
                await self._emit(chunk)
            if self._reply.ended:
                return

    def _chunks(self, event: SseEvent) -> list[ReplyPart]:
        if not self._mender.is_holding:
            try:
                return self._reply.take(event)
            except msgspec.DecodeError:
                if b"\\u" not in event.data:
                    raise
        return self._reply.take(SseEvent(event.type, self._mender.join(event.data)))


def may_parse_control_tokens(endpoint: Endpoint) -> bool:
    """Return whether the server may be one that takes a text for control tokens, as llama.cpp, Ollama and vLLM do."""
    return endpoint.type == "ollama" or not endpoint.official


def _as_events(lines: list[bytes]) -> list[SseEvent]:
    return [SseEvent("", line) for line in lines if line.strip()]


def _entry(
    connection: Endpoint,
    model: str,
    user: ModelFacts,
    reported: ModelInfo,
    known: CatalogueEntry | None,
    named_window: int | None,
) -> ModelEntry:
    """The user's settings take precedence over the provider's data, and these over the data file; a window that the
    provider named is the limit of all of them.
    """
    file = known or CatalogueEntry(connection.type, model, model)
    window = user.window or reported.window or file.window
    return ModelEntry(
        id=f"{connection.name}:{model}",
        name=reported.name or file.name,
        provider=connection.name,
        window=min(filter(None, (window, named_window)), default=None),
        named_window=named_window,
        max_output=user.max_output or reported.max_output or file.max_output,
        modalities=reported.modalities or file.modalities,
        media_types=_MEDIA_TYPES.get(connection.type, IMAGE_TYPES),
        efforts=reported.efforts if reported.efforts is not None else (file.efforts if known else None),
        # A model that is missing in the file is newer than the file.
        thinking=file.thinking if known else "adaptive",
        reasoning=file.reasoning,
        takes_tools=reported.tools if reported.tools is not None else file.tools,
        thinks=reported.thinks if reported.thinks is not None else file.is_thinking,
        prices=user.prices or reported.prices or file.prices,
    )
