"""OpenAI's Responses API. Nothing is stored at OpenAI (`store` is false), so thoughts are sent encrypted."""

from __future__ import annotations

from typing import Any, Literal, Required, TypedDict

import msgspec

from ...model import JsonObject
from ..base import ModelEntry, ModelRequest, ReplyPart, TokenUsage, ToolSpec, Verbatim
from ..endpoint import Endpoint
from ..wording import CallIds, Media, ModelPart, ResultPieces, Text, call, own_spelling
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
from .errors import ProviderError
from .openai_chat import AudioData, ModelListing, model_info, status_of
from .sse import SseEvent


class ContentPiece(TypedDict, total=False):
    """A piece of a prompt, of any type."""

    type: Required[str]
    text: str
    image_url: str
    detail: str
    input_audio: AudioData


class InputItem(TypedDict, total=False):
    """A message, a call or its output."""

    type: str
    role: str
    content: str | list[ContentPiece]
    call_id: str
    name: str
    arguments: str
    output: str | list[ContentPiece]


class RequestTool(TypedDict):
    type: Literal["function"]
    name: str
    description: str
    parameters: JsonObject
    strict: bool


class ResponsesRequest(RequestBody, frozen=True, kw_only=True):
    model: str
    input: list[InputItem]
    instructions: str | None = None
    stream: bool
    store: bool
    tools: list[RequestTool] | None = None
    reasoning: dict[str, str] | None = None
    include: list[str] | None = None
    max_output_tokens: int | None = None
    prompt_cache_key: str | None = None


class OpenAIResponses:
    lines = False
    models_path = "/models"

    def path(self, model: str) -> str:
        return "/responses"

    def headers(self, endpoint: Endpoint) -> dict[str, str]:
        return bearer_headers(endpoint)

    def body(self, request: ModelRequest, known: ModelEntry, endpoint: Endpoint) -> ResponsesRequest:
        items = rendered_messages(
            request,
            known,
            _render_prompt,
            lambda part, results: _render_reply(
                part, own_spelling(part, endpoint.name, request.model), results
            ),
        )
        effort = effort_of(request, known)
        reasons = known.reasoning or bool(effort)
        return ResponsesRequest(
            model=request.model,
            input=items,
            instructions=request.instructions,
            stream=True,
            store=False,
            tools=[_tool(tool) for tool in request.tools] or None,
            reasoning=_reasoning(effort) if reasons else None,
            include=["reasoning.encrypted_content"] if reasons else None,
            max_output_tokens=request.max_output,
            prompt_cache_key=request.cache_key,
        )

    def reply(self, request: ModelRequest, endpoint: Endpoint) -> ResponsesReply:
        return ResponsesReply(CallIds(request.messages), endpoint.name, request.model)

    def models(self, document: Any) -> list[ModelInfo]:
        return [model_info(model) for model in msgspec.convert(document, ModelListing).data]


def _reasoning(effort: str | None) -> dict[str, str]:
    return {"summary": "auto", **({"effort": effort} if effort else {})}


def _tool(tool: ToolSpec) -> RequestTool:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.input_schema,
        "strict": False,
    }


def _render_prompt(pieces: list[Text | Media]) -> InputItem:
    return {"role": "user", "content": [_render_piece(piece) for piece in pieces]}


def _render_reply(
    part: ModelPart, items: list[InputItem] | None, results: list[ResultPieces]
) -> list[InputItem]:
    """Return a reply and the results of its calls; `items` is the reply as the API wrote it, if it did."""
    if items is None:
        items = [{"role": "assistant", "content": part.text}] if part.text.strip() else []
        items += [_call(made.id, made.name, msgspec.json.encode(made.input).decode()) for made in part.calls]
    return [*items, *map(_render_result, results)]


def _render_result(result: ResultPieces) -> InputItem:
    output: str | list[ContentPiece] = result.text
    if result.media:
        output = [_render_piece(Text(result.text)), *map(_render_piece, result.media)]
    return {"type": "function_call_output", "call_id": result.call_id, "output": output}


def _call(id: str, name: str, arguments: str) -> InputItem:
    return {"type": "function_call", "call_id": id, "name": name, "arguments": arguments}


def _render_piece(piece: Text | Media) -> ContentPiece:
    if isinstance(piece, Text):
        return {"type": "input_text", "text": piece.text}
    if piece.kind == "image":
        return {"type": "input_image", "image_url": piece.url, "detail": "auto"}
    kind = "mp3" if piece.mime_type in ("audio/mpeg", "audio/mp3") else "wav"
    return {"type": "input_audio", "input_audio": {"data": piece.data, "format": kind}}


class Cached(msgspec.Struct):
    cached_tokens: int | None = None


class Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: Cached | None = None


class Error(msgspec.Struct):
    code: str | None = None
    message: str | None = None


class Incomplete(msgspec.Struct):
    reason: str | None = None


class Response(msgspec.Struct):
    usage: Usage | None = None
    error: Error | None = None
    incomplete_details: Incomplete | None = None


class FunctionCallItem(msgspec.Struct):
    """The members of an item that is a call of a function."""

    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None


class Event(msgspec.Struct):
    type: str
    delta: str | None = None
    item: JsonObject | None = None
    response: Response | None = None
    code: str | None = None
    message: str | None = None
    error: Error | None = None


_DECODER = msgspec.json.Decoder(Event)


class ResponsesReply(ReplyReader):
    """Ends with `response.completed`, `response.incomplete` or an error."""

    def __init__(self, ids: CallIds, provider: str, model: str) -> None:
        super().__init__()
        self._ids = ids
        self._source = (provider, model)
        self._items: list[JsonObject] = []

    def take(self, event: SseEvent) -> list[ReplyPart]:
        # Some compatible servers add it from the older API.
        if event.data == b"[DONE]":
            return []
        update = _DECODER.decode(event.data)
        match update.type:
            case "response.output_text.delta":
                return self.note(spoken(update.delta))
            case "response.refusal.delta":
                self.stop = "refusal"
                return self.note(spoken(update.delta))
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                return self.note(thought(update.delta))
            case "response.output_item.done" if update.item:
                return self.note(self._item(update.item))
            case "response.completed" | "response.incomplete" if update.response:
                self._end(update.response)
            case "response.failed":
                raise StreamError(_stream_error((update.response and update.response.error) or Error()))
            case "error":
                raise StreamError(_stream_error(update.error or Error(update.code, update.message)))
        return []

    def verbatim(self) -> Verbatim | None:
        """Only thoughts must be sent back unaltered, and only until their calls are answered."""
        signed = any(item.get("encrypted_content") for item in self._items)
        return Verbatim(*self._source, self._items) if signed and self.calls else None

    def _item(self, item: JsonObject) -> list[ReplyPart]:
        self._items.append(item)
        if item.get("type") != "function_call":
            return []
        function = msgspec.convert(item, FunctionCallItem)
        made = call(self._ids.take(function.call_id), function.name or "", function.arguments or "")
        arguments = msgspec.json.encode(made.input).decode()
        # What is sent back must be valid, also where the model's own call was not: a missing id, arguments
        # that are no JSON.
        item.update(call_id=made.id, name=made.name, arguments=arguments)
        return [made]

    def _end(self, response: Response) -> None:
        self.ended = True
        if response.incomplete_details:
            filtered = response.incomplete_details.reason == "content_filter"
            self.stop = "refusal" if filtered else "max_tokens"
        if usage := response.usage:
            cached = usage.input_tokens_details.cached_tokens if usage.input_tokens_details else None
            self.usage = TokenUsage(usage.input_tokens, usage.output_tokens, cached)


def _stream_error(error: Error) -> ProviderError:
    code = error.code or ""
    return ProviderError(status_of(code), code, error.message or "")
