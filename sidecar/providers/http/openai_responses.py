"""OpenAI's Responses API. Nothing is kept at OpenAI (`store` is false), so thoughts travel encrypted."""

from __future__ import annotations

from typing import Any

import msgspec

from ..base import Chunk, ModelEntry, ModelRequest, TokenUsage, ToolSpec, Verbatim
from ..connection import Connection
from ..wording import CallIds, Media, Replied, Said, Text, call, own, parts, pieces
from .dialect import Reply, Told, Troubled, bearer, effort_of, present, spoken, thought
from .faults import Trouble
from .openai_chat import Listing, status_of, told
from .sse import SseEvent


class OpenAIResponses:
    lines = False
    models_path = "/models"

    def path(self, model: str) -> str:
        return "/responses"

    def headers(self, connection: Connection) -> dict[str, str]:
        return bearer(connection)

    def body(self, request: ModelRequest, known: ModelEntry, connection: Connection) -> dict[str, Any]:
        said = parts(request.messages)
        effort = effort_of(request, known)
        reasons = known.reasoning or bool(effort)
        body = {
            "model": request.model,
            "input": [item for part in said for item in _spelled(part, request, known, connection)],
            "instructions": request.instructions,
            "stream": True,
            "store": False,
            "tools": [_tool(tool) for tool in request.tools] or None,
            "reasoning": _reasoning(effort) if reasons else None,
            "include": ["reasoning.encrypted_content"] if reasons else None,
            "max_output_tokens": request.max_output,
            "prompt_cache_key": request.cache_key,
        }
        return present(body)

    def reply(self, request: ModelRequest, connection: Connection) -> ResponsesReply:
        return ResponsesReply(CallIds(request.messages), connection.name, request.model)

    def models(self, document: Any) -> list[Told]:
        return [told(model) for model in msgspec.convert(document, Listing).data]


def _reasoning(effort: str | None) -> dict[str, str]:
    return {"summary": "auto", **({"effort": effort} if effort else {})}


def _tool(tool: ToolSpec) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.input_schema,
        "strict": False,
    }


def _spelled(
    part: Said | Replied, request: ModelRequest, known: ModelEntry, connection: Connection
) -> list[dict[str, Any]]:
    if isinstance(part, Said):
        return [
            {"role": "user", "content": [_piece(piece) for piece in pieces(part.content, request, known)]}
        ]
    items: list[dict[str, Any]] | None = own(part, connection.name, request.model)
    if items is None:
        items = [{"role": "assistant", "content": part.text}] if part.text.strip() else []
        items += [_call(made.id, made.name, msgspec.json.encode(made.input).decode()) for made in part.calls]
    results = [
        {"type": "function_call_output", "call_id": result.call_id, "output": result.text}
        for result in part.results
    ]
    return [*items, *results]


def _call(id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"type": "function_call", "call_id": id, "name": name, "arguments": arguments}


def _piece(piece: Text | Media) -> dict[str, Any]:
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


class Event(msgspec.Struct):
    type: str
    delta: str | None = None
    item: dict[str, Any] | None = None
    response: Response | None = None
    code: str | None = None
    message: str | None = None
    error: Error | None = None


_DECODER = msgspec.json.Decoder(Event)


class ResponsesReply(Reply):
    """Ends with `response.completed`, `response.incomplete` or an error."""

    def __init__(self, ids: CallIds, provider: str, model: str) -> None:
        super().__init__()
        self._ids = ids
        self._source = (provider, model)
        self._items: list[dict[str, Any]] = []

    def take(self, event: SseEvent) -> list[Chunk]:
        if event.data == b"[DONE]":
            return []
        told = _DECODER.decode(event.data)
        match told.type:
            case "response.output_text.delta":
                return self.note(spoken(told.delta))
            case "response.refusal.delta":
                self.stop = "refusal"
                return self.note(spoken(told.delta))
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                return self.note(thought(told.delta))
            case "response.output_item.done" if told.item:
                return self.note(self._item(told.item))
            case "response.completed" | "response.incomplete" if told.response:
                self._end(told.response)
            case "response.failed":
                raise Troubled(_trouble((told.response and told.response.error) or Error()))
            case "error":
                raise Troubled(_trouble(told.error or Error(told.code, told.message)))
        return []

    def verbatim(self) -> Verbatim | None:
        """Only thoughts must go back unaltered, and only while their calls are being answered."""
        signed = any(item.get("encrypted_content") for item in self._items)
        return Verbatim(*self._source, self._items) if signed and self.calls else None

    def _item(self, item: dict[str, Any]) -> list[Chunk]:
        self._items.append(item)
        if item.get("type") != "function_call":
            return []
        made = call(self._ids.take(item.get("call_id")), item.get("name") or "", item.get("arguments") or "")
        arguments = msgspec.json.encode(made.input).decode()
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


def _trouble(error: Error) -> Trouble:
    code = error.code or ""
    return Trouble(status_of(code), code, error.message or "")
