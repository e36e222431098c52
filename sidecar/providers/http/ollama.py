"""Ollama's own API: unlike its imitation of OpenAI's it lets us say how large the window must be."""

from __future__ import annotations

from typing import Any

import msgspec

from ..base import Chunk, ModelEntry, ModelRequest, TokenUsage
from ..connection import Connection
from ..wording import CallIds, Media, Replied, Said, Text, call, parts, pieces
from .dialect import Reply, Told, Troubled, bearer, function, nearest, present, spoken, thought
from .faults import Trouble
from .sse import SseEvent

MAX_WINDOW = 16_384
"""Ollama cuts what is over its window in silence, and memory for a window is taken at once: so we ask for one
that a laptop can hold. A larger one is the user's choice (`window` of the model or of the chat)."""


class Ollama:
    lines = True
    models_path = "/api/tags"

    def path(self, model: str) -> str:
        return "/api/chat"

    def headers(self, connection: Connection) -> dict[str, str]:
        return bearer(connection)

    def body(self, request: ModelRequest, known: ModelEntry, connection: Connection) -> dict[str, Any]:
        messages = [message for part in parts(request.messages) for message in _spelled(part, request, known)]
        if request.instructions:
            messages.insert(0, {"role": "system", "content": request.instructions})
        options = {"num_ctx": request.window or known.window, "num_predict": request.max_output}
        body = {
            "model": request.model,
            "messages": messages,
            "stream": True,
            "tools": [function(tool) for tool in request.tools] or None,
            "think": _think(request, known),
            "options": {key: value for key, value in options.items() if value} or None,
        }
        return present(body)

    def reply(self, request: ModelRequest, connection: Connection) -> OllamaReply:
        return OllamaReply(CallIds(request.messages))

    def models(self, document: Any) -> list[Told]:
        return [Told(model.model or model.name) for model in msgspec.convert(document, Listing).models]

    def shown(self, id: str, document: Any) -> Told:
        """What /api/show tells of one model."""
        shown = msgspec.convert(document, Shown)
        lengths = [v for k, v in shown.model_info.items() if k.endswith(".context_length") and type(v) is int]
        window = min(lengths[0], MAX_WINDOW) if lengths else None
        modalities = ("text", "image") if "vision" in shown.capabilities else ("text",)
        efforts = ("low", "medium", "high") if "thinking" in shown.capabilities else ()
        return Told(id, None, window, None, modalities, efforts)


def _think(request: ModelRequest, known: ModelEntry) -> str | bool | None:
    """Off, or how hard, for models that think."""
    if request.effort is None or known.efforts == ():
        return None
    return False if request.effort == "none" else nearest(request.effort, ("low", "medium", "high"))


def _spelled(part: Said | Replied, request: ModelRequest, known: ModelEntry) -> list[dict[str, Any]]:
    if isinstance(part, Said):
        found = pieces(part.content, request, known)
        text = "\n\n".join(piece.text for piece in found if isinstance(piece, Text))
        images = [piece.data for piece in found if isinstance(piece, Media) and piece.kind == "image"]
        return [{"role": "user", "content": text, **({"images": images} if images else {})}]
    message: dict[str, Any] = {"role": "assistant", "content": part.text}
    if part.calls:
        message["tool_calls"] = [
            {"function": {"name": made.name, "arguments": made.input}} for made in part.calls
        ]
    names = {made.id: made.name for made in part.calls}
    results = [
        {"role": "tool", "tool_name": names[result.call_id], "content": result.text}
        for result in part.results
    ]
    return [message, *results]


class Function(msgspec.Struct):
    name: str = ""
    arguments: dict[str, Any] | str | None = None


class Call(msgspec.Struct):
    function: Function
    id: str | None = None


class Message(msgspec.Struct):
    content: str | None = None
    thinking: str | None = None
    tool_calls: list[Call] | None = None


class Line(msgspec.Struct):
    message: Message | None = None
    done: bool = False
    done_reason: str | None = None
    prompt_eval_count: int | None = None
    eval_count: int | None = None
    error: str | None = None


_DECODER = msgspec.json.Decoder(Line)


class OllamaReply(Reply):
    """Ends with the line that says `done`."""

    def __init__(self, ids: CallIds) -> None:
        super().__init__()
        self._ids = ids

    def take(self, event: SseEvent) -> list[Chunk]:
        line = _DECODER.decode(event.data)
        if line.error is not None:
            raise Troubled(Trouble(_status(line.error), "", line.error))
        chunks: list[Chunk] = []
        if message := line.message:
            chunks = thought(message.thinking) + spoken(message.content)
            chunks += [self._call(made) for made in message.tool_calls or ()]
        if line.done:
            self.ended = True
            self.stop = "max_tokens" if line.done_reason == "length" else "end_turn"
            self.usage = TokenUsage(line.prompt_eval_count, line.eval_count, None)
        return self.note(chunks)

    def _call(self, made: Call) -> Chunk:
        arguments = made.function.arguments
        spelled = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments or {}).decode()
        return call(self._ids.take(made.id), made.function.name, spelled)


def _status(error: str) -> int:
    """Ollama's errors within a reply are words alone."""
    if "not found" in error:
        return 404
    return 400 if "context" in error or "does not support" in error else 500


class Tagged(msgspec.Struct):
    name: str
    model: str = ""


class Listing(msgspec.Struct):
    models: list[Tagged] = []


class Shown(msgspec.Struct):
    model_info: dict[str, Any] = {}
    capabilities: list[str] = []
