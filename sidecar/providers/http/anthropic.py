"""Anthropic's Messages API."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, Required, TypedDict

import msgspec

from ...model import JsonObject
from ..base import ModelEntry, ModelRequest, ReplyPart, StopReason, TokenUsage, ToolSpec, Verbatim
from ..endpoint import Endpoint
from ..wording import (
    Arguments,
    CallIds,
    Media,
    ModelPart,
    Part,
    ResultPieces,
    Text,
    call,
    own_spelling,
    parts,
)
from .dialect import (
    MalformedReply,
    ModelInfo,
    ReplyReader,
    RequestBody,
    StreamError,
    effort_of,
    rendered_messages,
    spoken,
    thought,
)
from .errors import ProviderError
from .sse import SseEvent

API_VERSION = "2023-06-01"

DEFAULT_MAX_OUTPUT = 8192
"""The API requires a limit; every current model accepts this one."""

THINKING_BUDGETS = {"low": 2048, "medium": 8192, "high": 16_384, "xhigh": 24_576, "max": 32_000}
"""Thinking tokens for models that need a number instead of a level."""

ANSWER_BESIDE_THOUGHT = 4096
"""Tokens reserved for the answer when thinking has a budget: both count against one limit."""


class CacheControl(TypedDict):
    type: Literal["ephemeral"]


class ImageSource(TypedDict):
    type: Literal["base64"]
    media_type: str
    data: str


class ContentBlock(TypedDict, total=False):
    """A block of a message, of any type."""

    type: Required[str]
    text: str
    source: ImageSource
    id: str
    name: str
    input: JsonObject
    tool_use_id: str
    content: str | list[ContentBlock]
    is_error: bool
    cache_control: CacheControl


class RequestMessage(TypedDict):
    role: Literal["user", "assistant"]
    content: list[ContentBlock]


class RequestTool(TypedDict):
    name: str
    description: str
    input_schema: JsonObject
    cache_control: NotRequired[CacheControl]


class Thinking(RequestBody, frozen=True, kw_only=True):
    type: str
    budget_tokens: int | None = None
    display: str | None = None


class OutputConfig(RequestBody, frozen=True, kw_only=True):
    effort: str


class MessagesRequest(RequestBody, frozen=True, kw_only=True):
    model: str
    max_tokens: int
    stream: bool
    system: list[ContentBlock] | None = None
    tools: list[RequestTool] | None = None
    messages: list[RequestMessage]
    thinking: Thinking | None = None
    output_config: OutputConfig | None = None


CACHE_MARK: CacheControl = {"type": "ephemeral"}

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

    def headers(self, endpoint: Endpoint) -> dict[str, str]:
        key = {"x-api-key": endpoint.key} if endpoint.key else {}
        return {"anthropic-version": API_VERSION, **key}

    def body(self, request: ModelRequest, known: ModelEntry, endpoint: Endpoint) -> MessagesRequest:
        messages = rendered_messages(
            request,
            known,
            _render_prompt,
            lambda part, results: _render_reply(
                part, own_spelling(part, endpoint.name, request.model), results
            ),
        )
        _mark_cache_breakpoints(messages)
        limit = _output_limit(request, known)
        said = parts(request.messages)
        thinking, output_config = _effort(request, known, limit, said)
        return MessagesRequest(
            model=request.model,
            max_tokens=limit,
            stream=True,
            system=_system(request.instructions),
            # One breakpoint for tools and system prompt together, at the end of the last of them: the API allows
            # four.
            tools=_tools(request.tools or _removed_tools(said), marked=not request.instructions),
            messages=messages,
            thinking=thinking,
            output_config=output_config,
        )

    def reply(self, request: ModelRequest, endpoint: Endpoint) -> MessagesReply:
        return MessagesReply(CallIds(request.messages), endpoint.name, request.model)

    def models(self, document: Any) -> list[ModelInfo]:
        return [_model_info(model) for model in msgspec.convert(document, ModelListing).data]


def _output_limit(request: ModelRequest, known: ModelEntry) -> int:
    """Return the longest answer that the model supports and the context window allows."""
    most = known.max_output or DEFAULT_MAX_OUTPUT
    if request.max_output:
        return min(most, request.max_output)
    return max(1, min(most, request.answer_space or most))


def _effort(
    request: ModelRequest, known: ModelEntry, limit: int, said: list[Part]
) -> tuple[Thinking | None, OutputConfig | None]:
    """Return the thinking options in the format of this generation of models."""
    effort = request.effort
    if not effort or effort == "none":
        return None, None
    if known.thinking == "budget":
        budget = min(THINKING_BUDGETS.get(effort, THINKING_BUDGETS["medium"]), limit - ANSWER_BESIDE_THOUGHT)
        last = said[-1]
        # While thinking has a budget, the API refuses a call that is sent back without its thoughts.
        unsigned = isinstance(last, ModelPart) and last.verbatim is None
        takes = budget >= 1024 and not unsigned
        return Thinking(type="enabled", budget_tokens=budget) if takes else None, None
    if known.thinking != "adaptive":
        return None, None
    asked = effort_of(request, known)
    return Thinking(type="adaptive", display="summarized"), OutputConfig(effort=asked) if asked else None


def _system(instructions: str | None) -> list[ContentBlock] | None:
    if not instructions or not instructions.strip():
        return None
    return [{"type": "text", "text": instructions, "cache_control": CACHE_MARK}]


def _removed_tools(said: list[Part]) -> list[ToolSpec]:
    """Return tools that earlier turns have called and that no longer exist: the API requires every named tool."""
    names = dict.fromkeys(made.name for part in said if isinstance(part, ModelPart) for made in part.calls)
    return [ToolSpec(name, "No longer available.", {"type": "object"}) for name in names]


def _tools(tools: list[ToolSpec], marked: bool) -> list[RequestTool] | None:
    spelled: list[RequestTool] = [
        {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}
        for tool in tools
    ]
    if spelled and marked:
        spelled[-1]["cache_control"] = CACHE_MARK
    return spelled or None


def _mark_cache_breakpoints(messages: list[RequestMessage]) -> None:
    """Set breakpoints of the prompt cache: at the end of this request, and at the end of the one before it."""
    for message in [message for message in messages if message["role"] == "user"][-2:]:
        message["content"][-1]["cache_control"] = CACHE_MARK


def _render_prompt(pieces: list[Text | Media]) -> RequestMessage:
    return {"role": "user", "content": [_render_piece(piece) for piece in pieces]}


def _render_reply(
    part: ModelPart, content: list[ContentBlock] | None, results: list[ResultPieces]
) -> list[RequestMessage]:
    """Return a reply and the results of its calls; `content` is the reply as the API wrote it, if it did."""
    if content is None:
        # The API refuses a reply that ends in white space.
        text = part.text.rstrip()
        content = [{"type": "text", "text": text}] if text else []
        content += [{"type": "tool_use", "id": c.id, "name": c.name, "input": c.input} for c in part.calls]
    spelled: list[RequestMessage] = [{"role": "assistant", "content": content}]
    if results:
        # The result of a failed call may be text only: its images follow.
        images = [_render_piece(image) for result in results if result.failed for image in result.media]
        spelled.append({"role": "user", "content": [*map(_render_result, results), *images]})
    return spelled


def _render_result(result: ResultPieces) -> ContentBlock:
    content: str | list[ContentBlock] = result.text
    if result.media and not result.failed:
        content = [_render_piece(Text(result.text)), *map(_render_piece, result.media)]
    return {
        "type": "tool_result",
        "tool_use_id": result.call_id,
        "content": content,
        "is_error": result.failed,
    }


def _render_piece(piece: Text | Media) -> ContentBlock:
    if isinstance(piece, Text):
        return {"type": "text", "text": piece.text}
    source: ImageSource = {"type": "base64", "media_type": piece.mime_type, "data": piece.data}
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
    input: JsonObject | None = None


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


class PartialBlock(msgspec.Struct):
    """A content block whose deltas are still coming in."""

    start: BlockStart
    texts: list[str] = []
    arguments: Arguments = msgspec.field(default_factory=Arguments)
    signature: str = ""


class MessagesReply(ReplyReader):
    """Ends with `message_stop`, or with its stop reason when the stream ends there."""

    def __init__(self, ids: CallIds, provider: str, model: str) -> None:
        super().__init__()
        self._ids = ids
        self._source = (provider, model)
        self._blocks: dict[int, PartialBlock] = {}
        self._done: list[JsonObject] = []
        self._signed = False
        self._finished = False

    def take(self, event: SseEvent) -> list[ReplyPart]:
        update = _DECODER.decode(event.data)
        match update.type:
            case "content_block_delta" if update.delta:
                return self.note(self._delta(self._block(update.index), update.delta))
            case "content_block_start" if update.content_block:
                self._blocks[update.index or 0] = PartialBlock(update.content_block)
                started = update.content_block
                return self.note(thought(started.thinking) + spoken(started.text))
            case "content_block_stop":
                return self.note(self._stop(self._block(update.index), update.index or 0))
            case "message_start" if update.message and update.message.usage:
                self._count(update.message.usage)
            case "message_delta":
                self._ends(update)
            case "message_stop":
                self.ended = True
            case "error":
                error = update.error or Error()
                raise StreamError(
                    ProviderError(_STATUS_OF_TYPE.get(error.type, 500), error.type, error.message)
                )
        return []

    def close(self) -> list[ReplyPart]:
        self.ended = self.ended or self._finished
        return []

    def verbatim(self) -> Verbatim | None:
        # Only where it is needed: thoughts must be sent back with calls, and plain text is ours to word.
        return Verbatim(*self._source, self._done) if self._signed and self.calls else None

    def _block(self, index: int | None) -> PartialBlock:
        if index not in self._blocks:
            raise MalformedReply(f"an event for block {index}, which has not started")
        return self._blocks[index]

    def _delta(self, block: PartialBlock, delta: Delta) -> list[ReplyPart]:
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

    def _stop(self, block: PartialBlock, index: int) -> list[ReplyPart]:
        del self._blocks[index]
        start, text = block.start, "".join(block.texts)
        match start.type:
            case "text":
                if text := (start.text or "") + text:
                    self._done.append({"type": "text", "text": text})
            case "thinking":
                self._signed = True
                signature = block.signature or start.signature or ""
                whole: JsonObject = {
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

    def _ends(self, update: Event) -> None:
        if update.delta and update.delta.stop_reason:
            # Not the end yet: the usage may come with a later event, and `message_stop` after that.
            self._finished = True
            self.stop = _STOPS.get(update.delta.stop_reason, "end_turn")
        if update.usage:
            self._count(update.usage)

    def _count(self, usage: Usage) -> None:
        """Return all input tokens: the API counts cache reads and cache writes separately."""
        before = self.usage
        read, written = usage.cache_read_input_tokens, usage.cache_creation_input_tokens
        sent = before.input
        cached = before.cached if read is None else read
        if usage.input_tokens is not None and (
            before.input is None or read is not None or written is not None
        ):
            sent = usage.input_tokens + (cached or 0) + (written or 0)
        self.usage = TokenUsage(sent, usage.output_tokens, cached)


class ListedModel(msgspec.Struct):
    id: str
    display_name: str | None = None
    max_input_tokens: int | None = None
    max_tokens: int | None = None
    capabilities: JsonObject | None = None


class ModelListing(msgspec.Struct):
    data: list[ListedModel] = []


def _model_info(model: ListedModel) -> ModelInfo:
    able = model.capabilities or {}
    image = able.get("image_input")
    modalities = ("text", "image") if isinstance(image, dict) and image.get("supported") else ("text",)
    levels, thinking = able.get("effort"), able.get("thinking")
    efforts = (
        tuple(name for name, level in levels.items() if isinstance(level, dict) and level.get("supported"))
        if isinstance(levels, dict)
        else None
    )
    return ModelInfo(
        model.id,
        model.display_name,
        model.max_input_tokens,
        model.max_tokens,
        modalities if model.capabilities else None,
        efforts,
        thinks=bool(thinking.get("supported")) if isinstance(thinking, dict) else None,
    )
