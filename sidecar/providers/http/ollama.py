"""Ollama's own API: unlike its OpenAI-compatible one it has an option for the context window."""

from __future__ import annotations

from typing import Any, Required, TypedDict

import msgspec

from ...model import JsonObject
from ..base import ModelEntry, ModelRequest, ReplyPart, TokenUsage
from ..endpoint import Endpoint
from ..wording import (
    CallIds,
    FunctionTool,
    Media,
    ModelPart,
    ResultPieces,
    Text,
    call,
    function,
    trailing_pieces,
)
from .dialect import (
    ModelInfo,
    ReplyReader,
    RequestBody,
    StreamError,
    bearer_headers,
    nearest_effort,
    rendered_messages,
    spoken,
    thought,
)
from .errors import ProviderError
from .sse import SseEvent

MAX_WINDOW = 16_384
"""Ollama silently truncates what exceeds its window, and allocates memory for a window at once: so this requests one
that a laptop can hold. The user can choose a larger one (`window` of the model or of the chat).
"""


_CAPABILITIES = ("tools", "thinking")


class RequestFunction(TypedDict):
    name: str
    arguments: JsonObject


class RequestCall(TypedDict):
    function: RequestFunction


class RequestMessage(TypedDict, total=False):
    """A message of any role."""

    role: Required[str]
    content: Required[str]
    images: list[str]
    tool_calls: list[RequestCall]
    tool_name: str


class ChatRequest(RequestBody, frozen=True, kw_only=True):
    model: str
    messages: list[RequestMessage]
    stream: bool
    tools: list[FunctionTool] | None = None
    think: str | bool | None = None
    options: dict[str, int] | None = None


class Ollama:
    lines = True
    models_path = "/api/tags"

    def path(self, model: str) -> str:
        return "/api/chat"

    def headers(self, endpoint: Endpoint) -> dict[str, str]:
        return bearer_headers(endpoint)

    def body(self, request: ModelRequest, known: ModelEntry, endpoint: Endpoint) -> ChatRequest:
        messages = rendered_messages(request, known, _render_prompt, _render_reply)
        if request.instructions:
            messages.insert(0, {"role": "system", "content": request.instructions})
        options = {"num_ctx": request.window or known.window, "num_predict": request.max_output}
        return ChatRequest(
            model=request.model,
            messages=messages,
            stream=True,
            tools=[function(tool) for tool in request.tools] or None,
            think=_think(request, known),
            options={key: value for key, value in options.items() if value} or None,
        )

    def reply(self, request: ModelRequest, endpoint: Endpoint) -> OllamaReply:
        return OllamaReply(CallIds(request.messages))

    def models(self, document: Any) -> list[ModelInfo]:
        return [
            ModelInfo(model.model or model.name) for model in msgspec.convert(document, ModelListing).models
        ]

    def model_details(self, id: str, document: Any) -> ModelInfo:
        """Return what /api/show reports about one model."""
        shown = msgspec.convert(document, ModelDetails)
        lengths = [v for k, v in shown.model_info.items() if k.endswith(".context_length") and type(v) is int]
        window = min(lengths[0], MAX_WINDOW) if lengths else None
        modalities = ("text", "image") if "vision" in shown.capabilities else ("text",)
        efforts = ("low", "medium", "high") if "thinking" in shown.capabilities else ()
        # Servers of before mid-2025 report no capabilities.
        able = {name: name in shown.capabilities if shown.capabilities else None for name in _CAPABILITIES}
        return ModelInfo(
            id, None, window, None, modalities, efforts, tools=able["tools"], thinks=able["thinking"]
        )


def _think(request: ModelRequest, known: ModelEntry) -> str | bool | None:
    """Return off, or the level, for models that think."""
    if request.effort is None or known.efforts == ():
        return None
    return False if request.effort == "none" else nearest_effort(request.effort, ("low", "medium", "high"))


def _render_prompt(pieces: list[Text | Media]) -> RequestMessage:
    text = "\n\n".join(piece.text for piece in pieces if isinstance(piece, Text))
    images = [piece.data for piece in pieces if isinstance(piece, Media) and piece.kind == "image"]
    message: RequestMessage = {"role": "user", "content": text}
    if images:
        message["images"] = images
    return message


def _render_reply(part: ModelPart, results: list[ResultPieces]) -> list[RequestMessage]:
    message: RequestMessage = {"role": "assistant", "content": part.text}
    if part.calls:
        message["tool_calls"] = [
            {"function": {"name": made.name, "arguments": made.input}} for made in part.calls
        ]
    messages = [message]
    for result in results:
        messages.append({"role": "tool", "tool_name": result.name, "content": result.text})
    # The templates of most models show images of user messages only.
    if trailing := trailing_pieces(results):
        messages.append(_render_prompt(trailing))
    return messages


class Function(msgspec.Struct):
    name: str = ""
    arguments: JsonObject | str | None = None


class Call(msgspec.Struct):
    function: Function
    id: str | None = None


class Message(msgspec.Struct):
    content: str | None = None
    thinking: str | None = None
    tool_calls: list[Call] | None = None


class ReplyLine(msgspec.Struct):
    message: Message | None = None
    done: bool = False
    done_reason: str | None = None
    prompt_eval_count: int | None = None
    eval_count: int | None = None
    error: str | None = None


_DECODER = msgspec.json.Decoder(ReplyLine)


class OllamaReply(ReplyReader):
    """Ends with the line that says `done`."""

    def __init__(self, ids: CallIds) -> None:
        super().__init__()
        self._ids = ids

    def take(self, event: SseEvent) -> list[ReplyPart]:
        line = _DECODER.decode(event.data)
        if line.error is not None:
            raise StreamError(ProviderError(_status(line.error), "", line.error))
        chunks: list[ReplyPart] = []
        if message := line.message:
            chunks = thought(message.thinking) + spoken(message.content)
            chunks += [self._call(made) for made in message.tool_calls or ()]
        if line.done:
            self.ended = True
            self.stop = "max_tokens" if line.done_reason == "length" else "end_turn"
            self.usage = TokenUsage(line.prompt_eval_count, line.eval_count, None)
        return self.note(chunks)

    def _call(self, made: Call) -> ReplyPart:
        arguments = made.function.arguments
        spelled = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments or {}).decode()
        return call(self._ids.take(made.id), made.function.name, spelled)


def _status(error: str) -> int:
    """Return the status of an error within a reply, which is plain text in Ollama."""
    if "not found" in error:
        return 404
    return 400 if "context" in error or "does not support" in error else 500


class ListedModel(msgspec.Struct):
    name: str
    model: str = ""


class ModelListing(msgspec.Struct):
    models: list[ListedModel] = []


class ModelDetails(msgspec.Struct):
    model_info: JsonObject = {}
    capabilities: list[str] = []
