"""Chat Completions: OpenAI's older API, which most other servers speak too, each with its own liberties."""

from __future__ import annotations

from typing import Any

import msgspec

from ..base import Chunk, ModelEntry, ModelRequest, StopReason, TokenUsage
from ..connection import Connection
from ..wording import MAX_CALLS, Arguments, CallIds, Media, RanAway, Replied, Said, Text, call, parts, pieces
from .dialect import Reply, Told, Troubled, bearer, effort_of, function, present, spoken, thought
from .faults import Trouble, described
from .sse import SseEvent

_STOPS: dict[str, StopReason] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "content_filter": "refusal",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
}

_AUDIO = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}


class OpenAIChat:
    lines = False
    models_path = "/models"

    def path(self, model: str) -> str:
        return "/chat/completions"

    def headers(self, connection: Connection) -> dict[str, str]:
        return bearer(connection)

    def body(self, request: ModelRequest, known: ModelEntry, connection: Connection) -> dict[str, Any]:
        messages = [message for part in parts(request.messages) for message in _spelled(part, request, known)]
        if request.instructions:
            messages.insert(0, {"role": "system", "content": request.instructions})
        body = {
            "model": request.model,
            "messages": messages,
            "stream": True,
            "stream_options": {"include_usage": True},
            "tools": [function(tool) for tool in request.tools] or None,
            "reasoning_effort": effort_of(request, known),
            # Others than OpenAI know only the older name, and refuse keys that they do not know.
            "max_completion_tokens" if connection.official else "max_tokens": request.max_output,
            "prompt_cache_key": request.cache_key if connection.official else None,
        }
        return present(body)

    def reply(self, request: ModelRequest, connection: Connection) -> ChatReply:
        return ChatReply(CallIds(request.messages))

    def models(self, document: Any) -> list[Told]:
        return [told(model) for model in msgspec.convert(document, Listing).data]


def _spelled(part: Said | Replied, request: ModelRequest, known: ModelEntry) -> list[dict[str, Any]]:
    if isinstance(part, Said):
        found = pieces(part.content, request, known)
        texts = [piece.text for piece in found if isinstance(piece, Text)]
        # Plain text as a plain string: small servers take nothing else.
        content: Any = "\n\n".join(texts) if len(texts) == len(found) else [_piece(piece) for piece in found]
        return [{"role": "user", "content": content}]
    message: dict[str, Any] = {"role": "assistant", "content": part.text or None}
    if part.calls:
        message["tool_calls"] = [
            {
                "id": made.id,
                "type": "function",
                "function": {"name": made.name, "arguments": msgspec.json.encode(made.input).decode()},
            }
            for made in part.calls
        ]
    results = [
        {"role": "tool", "tool_call_id": result.call_id, "content": result.text} for result in part.results
    ]
    return [message, *results]


def _piece(piece: Text | Media) -> dict[str, Any]:
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
    arguments: str | dict[str, Any] | None = None


class CallDelta(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: Function | None = None


class Delta(msgspec.Struct):
    content: str | list[dict[str, Any]] | None = None
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


class Growing(msgspec.Struct):
    """A tool call as its pieces come in."""

    id: str | None
    name: str = ""
    arguments: Arguments = msgspec.field(default_factory=Arguments)


class ChatReply(Reply):
    """Ends with `[DONE]`; servers that leave it out end with their finish reason."""

    def __init__(self, ids: CallIds) -> None:
        super().__init__()
        self._ids = ids
        self._growing: dict[int, Growing] = {}
        self._places: dict[int, int] = {}
        self._refused = False
        self._finished = False

    def take(self, event: SseEvent) -> list[Chunk]:
        if event.data == b"[DONE]":
            self.ended = True
            return self.note(self._calls())
        piece = _DECODER.decode(event.data)
        if piece.error is not None or event.type == "error":
            raise Troubled(_trouble(event.data))
        if piece.usage:
            self.usage = _usage(piece.usage)
        return self.note([chunk for choice in piece.choices or () for chunk in self._choice(choice)])

    def close(self) -> list[Chunk]:
        if self._finished and not self.ended:
            self.ended = True
            return self.note(self._calls())
        return []

    def _choice(self, choice: Choice) -> list[Chunk]:
        if choice.finish_reason:
            self._finished = True
            self.stop = "refusal" if self._refused else _STOPS.get(choice.finish_reason, "end_turn")
        delta = choice.delta
        if delta is None:
            return []
        for made in delta.tool_calls or ():
            self._grow(made)
        if delta.refusal:
            self._refused, self.stop = True, "refusal"
        thoughts = thought(delta.reasoning_content or delta.reasoning)
        return thoughts + spoken(_text(delta.content)) + spoken(delta.refusal)

    def _grow(self, made: CallDelta) -> None:
        """Pieces of a call share its index; a server that sends none gives each call whole."""
        index = made.index if made.index is not None else len(self._growing)
        place = self._places.get(index, index)
        before = self._growing.get(place)
        if before is not None and made.id and before.id and made.id != before.id:
            place = self._places[index] = len(self._growing)  # some count all their calls as the first
        if len(self._growing) > MAX_CALLS:
            raise RanAway(f"more than {MAX_CALLS} tool calls in one reply")
        growing = self._growing.setdefault(place, Growing(made.id))
        if made.function is None:
            return
        growing.name += made.function.name or ""
        arguments = made.function.arguments
        growing.arguments.add(
            msgspec.json.encode(arguments).decode() if isinstance(arguments, dict) else arguments
        )

    def _calls(self) -> list[Chunk]:
        grown, self._growing = self._growing, {}
        return [
            call(self._ids.take(each.id), each.name, str(each.arguments)) for _, each in sorted(grown.items())
        ]


def _text(content: str | list[dict[str, Any]] | None) -> str:
    if isinstance(content, list):
        return "".join(part["text"] for part in content if isinstance(part.get("text"), str))
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


def _trouble(data: bytes) -> Trouble:
    document = msgspec.json.decode(data)
    code, message = described(document)
    error = document.get("error") if isinstance(document, dict) else None
    number = error.get("code") if isinstance(error, dict) else None
    if isinstance(number, int) and 400 <= number < 600:
        return Trouble(number, code, message)
    return Trouble(status_of(code), code, message)


def status_of(code: str) -> int:
    """The HTTP status that an error within a stream amounts to."""
    return next((status for name, status in _STATUS_OF_CODE.items() if name in code), 500)


class Pricing(msgspec.Struct):
    prompt: str | None = None
    completion: str | None = None
    input_cache_read: str | None = None


class Architecture(msgspec.Struct):
    input_modalities: list[str] | None = None


class TopProvider(msgspec.Struct):
    max_completion_tokens: int | None = None


class Listed(msgspec.Struct):
    """A model in the list; all but the id is told by some servers only (OpenRouter, vLLM, LM Studio)."""

    id: str
    name: str | None = None
    context_length: int | None = None
    max_model_len: int | None = None
    max_context_length: int | None = None
    top_provider: TopProvider | None = None
    architecture: Architecture | None = None
    pricing: Pricing | None = None


class Listing(msgspec.Struct):
    data: list[Listed] = []


def told(model: Listed) -> Told:
    modalities = model.architecture.input_modalities if model.architecture else None
    return Told(
        model.id,
        model.name,
        model.context_length or model.max_model_len or model.max_context_length,
        model.top_provider.max_completion_tokens if model.top_provider else None,
        tuple(modalities) if modalities else None,
        prices=_prices(model.pricing) if model.pricing else None,
    )


def _prices(pricing: Pricing) -> dict[str, float] | None:
    """A million tokens' prices from a token's, as OpenRouter tells them."""
    named = {"input": pricing.prompt, "output": pricing.completion, "cached": pricing.input_cache_read}
    try:
        return {name: round(float(price) * 1e6, 6) for name, price in named.items() if price} or None
    except ValueError:
        return None
