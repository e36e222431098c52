"""A request in the words of llama.cpp's chat API, and its answer back in ours.

Models whose chat template knows tools get them as they are. To the others, tools are explained in the system message
and a call is text, which a grammar holds to the tools' schemas: what begins with a brace must become a call.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ..base import Chunk, ModelEntry, ModelRequest, TextDelta, ThoughtDelta, ToolCall, ToolSpec
from ..wording import CallIds, Replied, Said, Text, call, parts, pieces
from .child import Event
from .files import LocalModel

_TEXT_ONLY = ModelEntry(id="local:", name="", provider="local")

TEMPERATURE = {"smollm2": {"temperature": 0.2, "top_p": 0.9}}
"""What its makers advise; other models bring their own, or get llama.cpp's."""

_HOW_TO_CALL = (
    "You can use the tools below. To use one, answer with nothing but a JSON object of this form:\n"
    '{"tool": NAME, "input": INPUT}\nYou then get the result. Otherwise answer in plain text.'
)


class Spelled(msgspec.Struct, frozen=True):
    """A request for the worker; `calls` is the JSON Schema of a call where the template knows no tools."""

    body: dict[str, Any]
    calls: dict[str, Any] | None = None


def spell(request: ModelRequest, model: LocalModel) -> Spelled:
    """`effort` is left out: no model that runs here thinks more or less when told to. So is `window`: the worker's
    memory for it is taken when the model is loaded, by what the file says."""
    spelling = _native if model.native_tools else _plain
    said = [message for part in parts(request.messages) for message in spelling(part, request)]
    system = [request.instructions or ""]
    if request.tools and not model.native_tools:
        system.append(_explained(request.tools))
    if text := "\n\n".join(filter(None, system)):
        said.insert(0, {"role": "system", "content": text})
    body = {
        "messages": said,
        "stream": True,
        "stream_options": {"include_usage": True},
        # So that the worker hears of a stop, and gives signs of life, while a long prompt is read.
        "return_progress": True,
        "max_tokens": min(request.max_output or model.max_output, model.window),
        **TEMPERATURE.get(model.name, {}),
    }
    if request.tools and model.native_tools:
        return Spelled(body | {"tools": [_tool(tool) for tool in request.tools]})
    return Spelled(body, _schema(request.tools) if request.tools else None)


class Answer:
    """Puts an answer together. `held` is text that may become a call: it is shown only when it turned out not to."""

    def __init__(self, request: ModelRequest, in_text: bool) -> None:
        self.called = False
        self._in_text = in_text
        self._begun = False
        self._held = ""
        self._ids = CallIds(request.messages)
        self._names = {tool.name for tool in request.tools}
        self._calls: dict[int, dict[str, str]] = {}

    def take(self, event: Event) -> list[Chunk]:
        """What can be shown of this piece."""
        for made in event.calls:
            self._gather(made)
        chunks: list[Chunk] = [ThoughtDelta(event.thought)] if event.thought else []
        if event.text and (text := self._free(event.text)):
            chunks.append(TextDelta(text))
        return chunks

    def close(self) -> list[Chunk]:
        """What was held back: calls, or text after all."""
        chunks: list[Chunk] = [
            call(self._ids.take(made["id"]), made["name"], made["arguments"]) for made in self._calls.values()
        ]
        if self._held.strip():
            chunks.append(self._call_in(self._held) or TextDelta(self._held))
        self.called = any(isinstance(chunk, ToolCall) for chunk in chunks)
        return chunks

    def _free(self, text: str) -> str:
        if not self._in_text or self._begun:
            return text
        self._held += text
        if not self._held.strip() or self._held.lstrip().startswith("{"):
            return ""
        self._begun, text, self._held = True, self._held, ""
        return text

    def _call_in(self, text: str) -> ToolCall | None:
        try:
            made = msgspec.json.decode(text.strip())
        except msgspec.DecodeError:
            return None
        if not isinstance(made, dict) or made.get("tool") not in self._names:
            return None
        input = made.get("input")
        return ToolCall(self._ids.take(None), made["tool"], input if isinstance(input, dict) else {})

    def _gather(self, made: dict[str, Any]) -> None:
        kept = self._calls.setdefault(int(made.get("index") or 0), {"id": "", "name": "", "arguments": ""})
        function = made.get("function") or {}
        kept["id"] = made.get("id") or kept["id"]
        kept["name"] += function.get("name") or ""
        kept["arguments"] += function.get("arguments") or ""


def _native(part: Said | Replied, request: ModelRequest) -> list[dict[str, Any]]:
    if isinstance(part, Said):
        return [{"role": "user", "content": _text(part, request)}]
    message: dict[str, Any] = {"role": "assistant", "content": part.text}
    if part.calls:
        message["tool_calls"] = [_made(made) for made in part.calls]
    results = [{"role": "tool", "tool_call_id": each.call_id, "content": each.text} for each in part.results]
    return [message, *results]


def _plain(part: Said | Replied, request: ModelRequest) -> list[dict[str, Any]]:
    if isinstance(part, Said):
        return [{"role": "user", "content": _text(part, request)}]
    calls = [msgspec.json.encode({"tool": made.name, "input": made.input}).decode() for made in part.calls]
    said = [{"role": "assistant", "content": "\n".join(filter(None, [part.text, *calls]))}]
    names = {made.id: made.name for made in part.calls}
    results = [
        f"{'Error' if each.failed else 'Result'} of {names.get(each.call_id, 'the tool')}:\n{each.text}"
        for each in part.results
    ]
    return said + ([{"role": "user", "content": "\n\n".join(results)}] if results else [])


def _text(part: Said, request: ModelRequest) -> str:
    found = pieces(part.content, request, _TEXT_ONLY)
    return "\n\n".join(piece.text for piece in found if isinstance(piece, Text))


def _made(made: ToolCall) -> dict[str, Any]:
    function = {"name": made.name, "arguments": msgspec.json.encode(made.input).decode()}
    return {"id": made.id, "type": "function", "function": function}


def _tool(tool: ToolSpec) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.input_schema}
    return {"type": "function", "function": function}


def _explained(tools: list[ToolSpec]) -> str:
    lines = [
        f"{tool.name}: {tool.description} INPUT is {msgspec.json.encode(tool.input_schema).decode()}"
        for tool in tools
    ]
    return "\n".join([_HOW_TO_CALL, *lines])


def _schema(tools: list[ToolSpec]) -> dict[str, Any]:
    return {"anyOf": [_call_schema(tool) for tool in tools]}


def _call_schema(tool: ToolSpec) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"tool": {"const": tool.name}, "input": tool.input_schema},
        "required": ["tool", "input"],
        "additionalProperties": False,
    }
