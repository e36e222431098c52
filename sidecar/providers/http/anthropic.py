"""Anthropic's Messages API."""

from __future__ import annotations

from typing import Any

import msgspec

from ..base import Chunk, ModelEntry, ModelRequest, StopReason, TokenUsage, ToolSpec, Verbatim
from ..connection import Connection
from ..wording import Arguments, CallIds, Media, Part, Replied, Said, Text, call, own, parts, pieces
from .dialect import Malformed, Reply, Told, Troubled, effort_of, present, spoken, thought
from .faults import Trouble
from .sse import SseEvent

VERSION = "2023-06-01"

DEFAULT_MAX_OUTPUT = 8192
"""The API wants a limit; every model that is still served takes this one."""

BUDGETS = {"low": 2048, "medium": 8192, "high": 16_384, "xhigh": 24_576, "max": 32_000}
"""Tokens of thought for models that want a number instead of a word."""

ANSWER_BESIDE_THOUGHT = 4096
"""What must be left for the answer when thoughts have a budget: both come out of one limit."""

CACHED: dict[str, Any] = {"type": "ephemeral"}

_STOPS: dict[str, StopReason] = {
    "end_turn": "end_turn",
    "stop_sequence": "end_turn",
    "pause_turn": "end_turn",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "tool_use": "tool_calls",
    "refusal": "refusal",
}

_STATUS_OF_TYPE = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


class Anthropic:
    lines = False
    models_path = "/v1/models?limit=1000"

    def path(self, model: str) -> str:
        return "/v1/messages"

    def headers(self, connection: Connection) -> dict[str, str]:
        key = {"x-api-key": connection.key} if connection.key else {}
        return {"anthropic-version": VERSION, **key}

    def body(self, request: ModelRequest, known: ModelEntry, connection: Connection) -> dict[str, Any]:
        said = parts(request.messages)
        messages = [message for part in said for message in _spelled(part, request, known, connection)]
        _mark(messages)
        limit = _limit(request, known)
        body = {
            "model": request.model,
            "max_tokens": limit,
            "stream": True,
            "system": _system(request.instructions),
            "tools": _tools(request.tools or _bygone(said), marked=not request.instructions),
            "messages": messages,
            **_effort(request, known, limit, said),
        }
        return present(body)

    def reply(self, request: ModelRequest, connection: Connection) -> MessagesReply:
        return MessagesReply(CallIds(request.messages), connection.name, request.model)

    def models(self, document: Any) -> list[Told]:
        return [_told(model) for model in msgspec.convert(document, Listing).data]


def _limit(request: ModelRequest, known: ModelEntry) -> int:
    """As long an answer as the model gives and the window has room for."""
    most = known.max_output or DEFAULT_MAX_OUTPUT
    if request.max_output:
        return min(most, request.max_output)
    return max(1, min(most, request.room or most))


def _effort(request: ModelRequest, known: ModelEntry, limit: int, said: list[Part]) -> dict[str, Any]:
    """How much to think, in the way that this generation of models wants to be told."""
    effort = request.effort
    if not effort or effort == "none":
        return {}
    if known.thinking == "budget":
        budget = min(BUDGETS.get(effort, BUDGETS["medium"]), limit - ANSWER_BESIDE_THOUGHT)
        last = said[-1]
        # A call that goes back without its thoughts is refused while thoughts have a budget.
        unsigned = isinstance(last, Replied) and last.verbatim is None
        return {} if budget < 1024 or unsigned else {"thinking": {"type": "enabled", "budget_tokens": budget}}
    if known.thinking != "adaptive":
        return {}
    told: dict[str, Any] = {"thinking": {"type": "adaptive", "display": "summarized"}}
    if asked := effort_of(request, known):
        told["output_config"] = {"effort": asked}
    return told


def _system(instructions: str | None) -> list[dict[str, Any]] | None:
    if not instructions or not instructions.strip():
        return None
    return [{"type": "text", "text": instructions, "cache_control": CACHED}]


def _bygone(said: list[Part]) -> list[ToolSpec]:
    """Tools that earlier turns have called and that are gone: the API wants to know every tool that is named."""
    names = dict.fromkeys(made.name for part in said if isinstance(part, Replied) for made in part.calls)
    return [ToolSpec(name, "No longer available.", {"type": "object"}) for name in names]


def _tools(tools: list[ToolSpec], marked: bool) -> list[dict[str, Any]] | None:
    spelled: list[dict[str, Any]] = [
        {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}
        for tool in tools
    ]
    if spelled and marked:
        spelled[-1]["cache_control"] = CACHED
    return spelled or None


def _mark(messages: list[dict[str, Any]]) -> None:
    """Breakpoints of the prompt cache: what this request ends with, and what the one before it ended with."""
    for message in [message for message in messages if message["role"] == "user"][-2:]:
        message["content"][-1]["cache_control"] = CACHED


def _spelled(
    part: Said | Replied, request: ModelRequest, known: ModelEntry, connection: Connection
) -> list[dict[str, Any]]:
    if isinstance(part, Said):
        return [
            {"role": "user", "content": [_piece(piece) for piece in pieces(part.content, request, known)]}
        ]
    content: list[Any] | None = own(part, connection.name, request.model)
    if content is None:
        text = part.text.rstrip()
        content = [{"type": "text", "text": text}] if text else []
        content += [{"type": "tool_use", "id": c.id, "name": c.name, "input": c.input} for c in part.calls]
    spelled: list[dict[str, Any]] = [{"role": "assistant", "content": content}]
    if part.results:
        results = [
            {"type": "tool_result", "tool_use_id": r.call_id, "content": r.text, "is_error": r.failed}
            for r in part.results
        ]
        spelled.append({"role": "user", "content": results})
    return spelled


def _piece(piece: Text | Media) -> dict[str, Any]:
    if isinstance(piece, Text):
        return {"type": "text", "text": piece.text}
    source = {"type": "base64", "media_type": piece.mime_type, "data": piece.data}
    return {"type": "image", "source": source}


class Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None


class Message(msgspec.Struct):
    usage: Usage | None = None


class BlockStart(msgspec.Struct):
    type: str
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    id: str | None = None
    name: str | None = None
    input: dict[str, Any] | None = None


class Delta(msgspec.Struct):
    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None


class Error(msgspec.Struct):
    type: str = ""
    message: str = ""


class Event(msgspec.Struct):
    type: str
    index: int | None = None
    message: Message | None = None
    content_block: BlockStart | None = None
    delta: Delta | None = None
    usage: Usage | None = None
    error: Error | None = None


_DECODER = msgspec.json.Decoder(Event)


class Growing(msgspec.Struct):
    """A content block as its deltas come in."""

    start: BlockStart
    texts: list[str] = []
    arguments: Arguments = msgspec.field(default_factory=Arguments)
    signature: str = ""


class MessagesReply(Reply):
    """Ends with `message_stop`, or with its stop reason when the stream ends there."""

    def __init__(self, ids: CallIds, provider: str, model: str) -> None:
        super().__init__()
        self._ids = ids
        self._source = (provider, model)
        self._blocks: dict[int, Growing] = {}
        self._done: list[dict[str, Any]] = []
        self._signed = False
        self._finished = False

    def take(self, event: SseEvent) -> list[Chunk]:
        told = _DECODER.decode(event.data)
        match told.type:
            case "content_block_delta" if told.delta:
                return self.note(self._delta(self._block(told.index), told.delta))
            case "content_block_start" if told.content_block:
                self._blocks[told.index or 0] = Growing(told.content_block)
                started = told.content_block
                return self.note(thought(started.thinking) + spoken(started.text))
            case "content_block_stop":
                return self.note(self._stop(self._block(told.index), told.index or 0))
            case "message_start" if told.message and told.message.usage:
                self._count(told.message.usage)
            case "message_delta":
                self._ends(told)
            case "message_stop":
                self.ended = True
            case "error":
                error = told.error or Error()
                raise Troubled(Trouble(_STATUS_OF_TYPE.get(error.type, 500), error.type, error.message))
        return []

    def close(self) -> list[Chunk]:
        self.ended = self.ended or self._finished
        return []

    def verbatim(self) -> Verbatim | None:
        return Verbatim(*self._source, self._done) if self._signed and self.calls else None

    def _block(self, index: int | None) -> Growing:
        if index not in self._blocks:
            raise Malformed(f"an event for block {index}, which has not started")
        return self._blocks[index]

    def _delta(self, block: Growing, delta: Delta) -> list[Chunk]:
        match delta.type:
            case "text_delta":
                block.texts.append(delta.text or "")
                return spoken(delta.text)
            case "thinking_delta":
                block.texts.append(delta.thinking or "")
                return thought(delta.thinking)
            case "signature_delta":
                block.signature += delta.signature or ""
            case "input_json_delta":
                block.arguments.add(delta.partial_json)
        return []

    def _stop(self, block: Growing, index: int) -> list[Chunk]:
        del self._blocks[index]
        start, text = block.start, "".join(block.texts)
        match start.type:
            case "text":
                if text := (start.text or "") + text:
                    self._done.append({"type": "text", "text": text})
            case "thinking":
                self._signed = True
                signature = block.signature or start.signature or ""
                whole = {
                    "type": "thinking",
                    "thinking": (start.thinking or "") + text,
                    "signature": signature,
                }
                self._done.append(whole)
            case "redacted_thinking":
                self._signed = True
                self._done.append({"type": "redacted_thinking", "data": start.data or ""})
            case "tool_use":
                arguments = str(block.arguments) or msgspec.json.encode(start.input or {}).decode()
                made = call(self._ids.take(start.id), start.name or "", arguments)
                self._done.append({"type": "tool_use", "id": made.id, "name": made.name, "input": made.input})
                return [made]
        return []

    def _ends(self, told: Event) -> None:
        if told.delta and told.delta.stop_reason:
            self._finished = True
            self.stop = _STOPS.get(told.delta.stop_reason, "end_turn")
        if told.usage:
            self._count(told.usage)

    def _count(self, usage: Usage) -> None:
        """The API counts apart what it read from its cache and what it wrote there; we count all input."""
        before = self.usage
        read, written = usage.cache_read_input_tokens, usage.cache_creation_input_tokens
        sent = before.input
        cached = before.cached if read is None else read
        if usage.input_tokens is not None and (
            before.input is None or read is not None or written is not None
        ):
            sent = usage.input_tokens + (cached or 0) + (written or 0)
        self.usage = TokenUsage(sent, usage.output_tokens, cached)


class Listed(msgspec.Struct):
    id: str
    display_name: str | None = None
    max_input_tokens: int | None = None
    max_tokens: int | None = None
    capabilities: dict[str, Any] | None = None


class Listing(msgspec.Struct):
    data: list[Listed] = []


def _told(model: Listed) -> Told:
    able = model.capabilities or {}
    image = able.get("image_input")
    modalities = ("text", "image") if isinstance(image, dict) and image.get("supported") else ("text",)
    levels = able.get("effort")
    efforts = (
        tuple(name for name, level in levels.items() if isinstance(level, dict) and level.get("supported"))
        if isinstance(levels, dict)
        else None
    )
    return Told(
        model.id,
        model.display_name,
        model.max_input_tokens,
        model.max_tokens,
        modalities if model.capabilities else None,
        efforts,
    )
