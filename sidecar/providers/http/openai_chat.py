"""Chat Completions: OpenAI's older API, which most other servers support too, each with deviations."""

from __future__ import annotations

from typing import Any, Required, TypedDict

import msgspec

from ...model import JsonObject
from ..base import ModelEntry, ModelRequest, ReplyPart, StopReason, TokenUsage
from ..endpoint import Endpoint
from ..wording import (
    MAX_CALLS,
    Arguments,
    CallIds,
    FunctionCall,
    FunctionTool,
    Media,
    ModelPart,
    ReplyTooLarge,
    ResultPieces,
    Text,
    call,
    function,
    function_call,
    trailing_pieces,
)
from .dialect import (
    ModelInfo,
    ReplyReader,
    RequestBody,
    StreamError,
    bearer_headers,
    effort_of,
    rendered_messages,
    spoken,
    thought,
)
from .errors import ProviderError, parse_error_document
from .sse import SseEvent

_STOPS: dict[str, StopReason] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "content_filter": "refusal",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
}

_AUDIO = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}


class ImageUrl(TypedDict):
    url: str


class AudioData(TypedDict):
    data: str
    format: str


class ContentPiece(TypedDict, total=False):
    """A piece of a prompt, of any type."""

    type: Required[str]
    text: str
    image_url: ImageUrl
    input_audio: AudioData


class RequestMessage(TypedDict, total=False):
    """A message of any role."""

    role: Required[str]
    content: Required[str | list[ContentPiece] | None]
    tool_calls: list[FunctionCall]
    tool_call_id: str


class ChatRequest(RequestBody, frozen=True, kw_only=True):
    model: str
    messages: list[RequestMessage]
    stream: bool
    stream_options: dict[str, bool]
    tools: list[FunctionTool] | None = None
    reasoning_effort: str | None = None
    max_completion_tokens: int | None = None
    max_tokens: int | None = None
    prompt_cache_key: str | None = None


class OpenAIChat:
    lines = False
    models_path = "/models"

    def path(self, model: str) -> str:
        return "/chat/completions"

    def headers(self, endpoint: Endpoint) -> dict[str, str]:
        return bearer_headers(endpoint)

    def body(self, request: ModelRequest, known: ModelEntry, endpoint: Endpoint) -> ChatRequest:
        messages = rendered_messages(request, known, _render_prompt, _render_reply)
        if request.instructions:
            messages.insert(0, {"role": "system", "content": request.instructions})
        return ChatRequest(
            model=request.model,
            messages=messages,
            stream=True,
            stream_options={"include_usage": True},
            tools=[function(tool) for tool in request.tools] or None,
            reasoning_effort=effort_of(request, known),
            # Other servers know only the older name, and refuse unknown keys.
            max_completion_tokens=request.max_output if endpoint.official else None,
            max_tokens=None if endpoint.official else request.max_output,
            prompt_cache_key=request.cache_key if endpoint.official else None,
        )

    def reply(self, request: ModelRequest, endpoint: Endpoint) -> ChatReply:
        return ChatReply(CallIds(request.messages))

    def models(self, document: Any) -> list[ModelInfo]:
        return [model_info(model) for model in msgspec.convert(document, ModelListing).data]


def _render_prompt(pieces: list[Text | Media]) -> RequestMessage:
    texts = [piece.text for piece in pieces if isinstance(piece, Text)]
    if len(texts) == len(pieces):
        # Plain text as a plain string: small servers accept nothing else.
        return {"role": "user", "content": "\n\n".join(texts)}
    return {"role": "user", "content": [_render_piece(piece) for piece in pieces]}


def _render_reply(part: ModelPart, results: list[ResultPieces]) -> list[RequestMessage]:
    message: RequestMessage = {"role": "assistant", "content": part.text or None}
    if part.calls:
        message["tool_calls"] = [function_call(made) for made in part.calls]
    messages = [message]
    for result in results:
        messages.append({"role": "tool", "tool_call_id": result.call_id, "content": result.text})
    # The message of a tool may be text only.
    if trailing := trailing_pieces(results):
        messages.append(_render_prompt(trailing))
    return messages


def _render_piece(piece: Text | Media) -> ContentPiece:
    if isinstance(piece, Text):
        return {"type": "text", "text": piece.text}
    if piece.kind == "image":
        return {"type": "image_url", "image_url": {"url": piece.url}}
    return {
        "type": "input_audio",
        "input_audio": {"data": piece.data, "format": _AUDIO.get(piece.mime_type, "wav")},
    }


class Function(msgspec.Struct):
    name: str | None = None
    arguments: str | JsonObject | None = None


class CallDelta(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: Function | None = None


class Delta(msgspec.Struct):
    content: str | list[JsonObject] | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[CallDelta] | None = None


class Choice(msgspec.Struct):
    delta: Delta | None = None
    finish_reason: str | None = None


class Details(msgspec.Struct):
    cached_tokens: int | None = None


class Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: Details | None = None
    prompt_cache_hit_tokens: int | None = None


class Piece(msgspec.Struct):
    choices: list[Choice] | None = None
    usage: Usage | None = None
    error: Any = None


_DECODER = msgspec.json.Decoder(Piece)


class PartialCall(msgspec.Struct):
    """A tool call whose pieces are still coming in."""

    id: str | None
    name: str = ""
    arguments: Arguments = msgspec.field(default_factory=Arguments)


class ChatReply(ReplyReader):
    """Ends with `[DONE]`; servers that omit it end with their finish reason."""

    def __init__(self, ids: CallIds) -> None:
        super().__init__()
        self._ids = ids
        self._growing: dict[int, PartialCall] = {}
        self._places: dict[int, int] = {}
        self._refused = False
        self._finished = False

    def take(self, event: SseEvent) -> list[ReplyPart]:
        if event.data == b"[DONE]":
            self.ended = True
            return self.note(self._calls())
        piece = _DECODER.decode(event.data)
        if piece.error is not None or event.type == "error":
            raise StreamError(_stream_error(event.data))
        # It comes in a piece of its own, after the finish reason and with no choices.
        if piece.usage:
            self.usage = _usage(piece.usage)
        return self.note([chunk for choice in piece.choices or () for chunk in self._choice(choice)])

    def close(self) -> list[ReplyPart]:
        if self._finished and not self.ended:
            self.ended = True
            return self.note(self._calls())
        return []

    def _choice(self, choice: Choice) -> list[ReplyPart]:
        if choice.finish_reason:
            # Not the end: usage may follow, and calls are complete only with the last piece.
            self._finished = True
            self.stop = "refusal" if self._refused else _STOPS.get(choice.finish_reason, "end_turn")
        delta = choice.delta
        if delta is None:
            return []
        for made in delta.tool_calls or ():
            self._grow(made)
        # The finish reason of a refusal is an ordinary "stop".
        if delta.refusal:
            self._refused, self.stop = True, "refusal"
        thoughts = thought(delta.reasoning_content or delta.reasoning)
        return thoughts + spoken(_text(delta.content)) + spoken(delta.refusal)

    def _grow(self, made: CallDelta) -> None:
        """Pieces of a call share its index; a server without indexes sends each call in one piece."""
        index = made.index if made.index is not None else len(self._growing)
        place = self._places.get(index, index)
        before = self._growing.get(place)
        if before is not None and made.id and before.id and made.id != before.id:
            place = self._places[index] = len(
                self._growing
            )  # some servers give all their calls the first index
        if len(self._growing) > MAX_CALLS:
            raise ReplyTooLarge(f"more than {MAX_CALLS} tool calls in one reply")
        growing = self._growing.setdefault(place, PartialCall(made.id))
        if made.function is None:
            return
        growing.name += made.function.name or ""
        arguments = made.function.arguments
        growing.arguments.add(
            # Some compatible servers send an object where the contract says text.
            msgspec.json.encode(arguments).decode() if isinstance(arguments, dict) else arguments
        )

    def _calls(self) -> list[ReplyPart]:
        grown, self._growing = self._growing, {}
        return [
            call(self._ids.take(each.id), each.name, str(each.arguments)) for _, each in sorted(grown.items())
        ]


def _text(content: str | list[JsonObject] | None) -> str:
    if isinstance(content, list):
        return "".join(text for part in content if isinstance(text := part.get("text"), str))
    return content or ""


def _usage(usage: Usage) -> TokenUsage:
    details = usage.prompt_tokens_details
    cached = details.cached_tokens if details else usage.prompt_cache_hit_tokens
    return TokenUsage(usage.prompt_tokens, usage.completion_tokens, cached)


_STATUS_OF_CODE = {
    "rate_limit": 429,
    "insufficient_quota": 429,
    "overloaded": 503,
    "server_error": 500,
    "server_is_overloaded": 503,
    "internal": 500,
    "authentication": 401,
    "invalid_api_key": 401,
    "permission": 403,
    "not_found": 404,
    "timeout": 504,
    "invalid_request": 400,
    "context_length": 400,
    "invalid_prompt": 400,
    "content_filter": 400,
}


def _stream_error(data: bytes) -> ProviderError:
    document = msgspec.json.decode(data)
    code, message = parse_error_document(document)
    error = document.get("error") if isinstance(document, dict) else None
    number = error.get("code") if isinstance(error, dict) else None
    # OpenRouter and others put an HTTP status where OpenAI has a word.
    if isinstance(number, int) and 400 <= number < 600:
        return ProviderError(number, code, message)
    return ProviderError(status_of(code), code, message)


def status_of(code: str) -> int:
    """Return the HTTP status that an error within a stream corresponds to."""
    return next((status for name, status in _STATUS_OF_CODE.items() if name in code), 500)


class Pricing(msgspec.Struct):
    prompt: str | None = None
    completion: str | None = None
    input_cache_read: str | None = None


class Architecture(msgspec.Struct):
    input_modalities: list[str] | None = None


class TopProvider(msgspec.Struct):
    max_completion_tokens: int | None = None


class ListedModel(msgspec.Struct):
    """A model in the list; only some servers send more than the id (OpenRouter, vLLM, LM Studio)."""

    id: str
    name: str | None = None
    context_length: int | None = None
    max_model_len: int | None = None
    max_context_length: int | None = None
    top_provider: TopProvider | None = None
    architecture: Architecture | None = None
    pricing: Pricing | None = None
    supported_parameters: list[str] | None = None


class ModelListing(msgspec.Struct):
    data: list[ListedModel] = []


def model_info(model: ListedModel) -> ModelInfo:
    takes = model.supported_parameters
    modalities = model.architecture.input_modalities if model.architecture else None
    return ModelInfo(
        model.id,
        model.name,
        model.context_length or model.max_model_len or model.max_context_length,
        model.top_provider.max_completion_tokens if model.top_provider else None,
        tuple(modalities) if modalities else None,
        prices=_prices(model.pricing) if model.pricing else None,
        tools="tools" in takes if takes is not None else None,
        thinks="reasoning" in takes if takes is not None else None,
    )


def _prices(pricing: Pricing) -> dict[str, float] | None:
    """Return the prices per million tokens from OpenRouter's prices per token."""
    named = {"input": pricing.prompt, "output": pricing.completion, "cached": pricing.input_cache_read}
    try:
        return {name: round(float(price) * 1e6, 6) for name, price in named.items() if price} or None
    except ValueError:
        return None
