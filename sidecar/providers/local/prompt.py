"""Convert a request to llama.cpp's chat API, and its answer back.

Models whose chat template supports tools get them directly. For the others, tools are described in the system message
and a call is text, which a grammar constrains to the schemas of the tools: what begins with a brace must become a
call.
"""

from __future__ import annotations

import re
from typing import Required, TypedDict

import msgspec

from ...model import JsonObject
from ..base import ModelEntry, ModelRequest, ReplyPart, TextDelta, ThoughtDelta, ToolCall, ToolSpec
from ..wording import (
    CallIds,
    FunctionCall,
    FunctionTool,
    ModelPart,
    Text,
    UserPart,
    call,
    content_pieces,
    function,
    function_call,
    parts,
    result_pieces,
)
from .child import CallPiece, WorkerEvent
from .files import LocalModel

_TEXT_ONLY = ModelEntry(id="local:", name="", provider="local")


class Sampling(msgspec.Struct, frozen=True):
    temperature: float
    top_p: float


TEMPERATURE: dict[str, Sampling] = {"smollm2": Sampling(temperature=0.2, top_p=0.9)}
"""What its authors recommend; other models bring their own, or get llama.cpp's default."""

WITHOUT_TOOLS = frozenset({"smollm2"})
"""Models too small to use tools: the descriptions take thousands of tokens, and the model then repeats itself up to
its limit.
"""

MAX_ANSWER = {"smollm2": 256}
"""Tokens of an answer unless `outputReserve` says otherwise: seconds on a CPU, if the model does not stop."""

_CONTROL_TOKEN = re.compile(
    r"<(?=[|\uff5c][^<>\s]{1,64}[|\uff5c]>)"
    r"|<(?=/?(?:s|bos|eos|pad|unk|start_of_turn|end_of_turn|start_of_image|end_of_utterance)>)"
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\])"
    r"|<(?=</?SYS>>)"
)
"""The first character of what models take for the end of a message or the start of a role."""

_TOOL_INSTRUCTIONS = (
    "You can use the tools below. To use one, answer with nothing but a JSON object of this form:\n"
    '{"tool": NAME, "input": INPUT}\nYou then get the result. Otherwise answer in plain text.'
)


class WorkerMessage(TypedDict, total=False):
    """A message of any role."""

    role: Required[str]
    content: Required[str]
    tool_calls: list[FunctionCall]
    tool_call_id: str


class WorkerBody(TypedDict, total=False):
    """A request in the format of llama.cpp's chat API."""

    messages: Required[list[WorkerMessage]]
    stream: bool
    stream_options: dict[str, bool]
    return_progress: bool
    max_tokens: int
    temperature: float
    top_p: float
    tools: list[FunctionTool]


class WorkerRequest(msgspec.Struct, frozen=True):
    """A request for the worker; `calls` is the JSON Schema of a call when the template does not support tools."""

    body: WorkerBody
    calls: JsonObject | None = None


def worker_request(request: ModelRequest, model: LocalModel) -> WorkerRequest:
    """Convert a request. `effort` is ignored: no model that runs here has levels. So is `window`: the worker
    allocates its memory when the model is loaded, by the value in the file.
    """
    tools = [] if model.name in WITHOUT_TOOLS else request.tools
    spelling = _native_messages if model.native_tools else _plain_messages
    said = [message for part in parts(request.messages) for message in spelling(part, request)]
    system = [request.instructions or ""]
    if tools and not model.native_tools:
        system.append(_describe_tools(tools))
    if text := "\n\n".join(filter(None, system)):
        said.insert(0, {"role": "system", "content": text})
    for message in said:
        message["content"] = break_control_tokens(message["content"])
    body: WorkerBody = {
        "messages": said,
        "stream": True,
        "stream_options": {"include_usage": True},
        # So that the worker reads a stop, and reports progress, while it processes a long prompt.
        "return_progress": True,
        "max_tokens": min(request.max_output or MAX_ANSWER.get(model.name, model.max_output), model.window),
    }
    if sampling := TEMPERATURE.get(model.name):
        body["temperature"], body["top_p"] = sampling.temperature, sampling.top_p
    if tools and model.native_tools:
        body["tools"] = [function(tool) for tool in tools]
        return WorkerRequest(body)
    return WorkerRequest(body, _schema(tools) if tools else None)


def break_control_tokens(text: str) -> str:
    """Return the text with an invisible character in each control token: llama.cpp would parse one in a file or a
    tool's output, and what follows would be a message with a role of the file's choice.
    """
    return _CONTROL_TOKEN.sub(lambda found: f"{found[0]}\u200b", text)


class ParsedAnswer:
    """Assembles an answer. `held` is text that may become a call: it is shown only when it does not."""

    def __init__(self, request: ModelRequest, in_text: bool) -> None:
        self.called = False
        self._in_text = in_text
        self._begun = False
        self._held = ""
        self._ids = CallIds(request.messages)
        self._names = {tool.name for tool in request.tools}
        self._calls: dict[int, dict[str, str]] = {}

    def take(self, event: WorkerEvent) -> list[ReplyPart]:
        """Return what can be shown of this piece."""
        for piece in event.calls:
            self._collect_call(piece)
        chunks: list[ReplyPart] = [ThoughtDelta(event.thought)] if event.thought else []
        if event.text and (text := self._release_text(event.text)):
            chunks.append(TextDelta(text))
        return chunks

    def close(self) -> list[ReplyPart]:
        """Return what was buffered: calls, or text after all."""
        chunks: list[ReplyPart] = [
            call(self._ids.take(made["id"]), made["name"], made["arguments"]) for made in self._calls.values()
        ]
        if self._held.strip():
            chunks.append(self._call_in(self._held) or TextDelta(self._held))
        self.called = any(isinstance(chunk, ToolCall) for chunk in chunks)
        return chunks

    def _release_text(self, text: str) -> str:
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

    def _collect_call(self, piece: CallPiece) -> None:
        kept = self._calls.setdefault(piece.index or 0, {"id": "", "name": "", "arguments": ""})
        kept["id"] = piece.id or kept["id"]
        if piece.function:
            kept["name"] += piece.function.name or ""
            kept["arguments"] += piece.function.arguments or ""


def _native_messages(part: UserPart | ModelPart, request: ModelRequest) -> list[WorkerMessage]:
    if isinstance(part, UserPart):
        return [{"role": "user", "content": _text(part, request)}]
    message: WorkerMessage = {"role": "assistant", "content": part.text}
    if part.calls:
        message["tool_calls"] = [function_call(made) for made in part.calls]
    results: list[WorkerMessage] = [
        {"role": "tool", "tool_call_id": each.call_id, "content": each.text}
        for each in result_pieces(part, request, _TEXT_ONLY)
    ]
    return [message, *results]


def _plain_messages(part: UserPart | ModelPart, request: ModelRequest) -> list[WorkerMessage]:
    if isinstance(part, UserPart):
        return [{"role": "user", "content": _text(part, request)}]
    calls = [msgspec.json.encode({"tool": made.name, "input": made.input}).decode() for made in part.calls]
    said: list[WorkerMessage] = [
        {"role": "assistant", "content": "\n".join(filter(None, [part.text, *calls]))}
    ]
    results = [
        f"{'Error' if each.failed else 'Result'} of {each.name}:\n{each.text}"
        for each in result_pieces(part, request, _TEXT_ONLY)
    ]
    return said + ([{"role": "user", "content": "\n\n".join(results)}] if results else [])


def _text(part: UserPart, request: ModelRequest) -> str:
    found = content_pieces(part.content, request, _TEXT_ONLY)
    return "\n\n".join(piece.text for piece in found if isinstance(piece, Text))


def _describe_tools(tools: list[ToolSpec]) -> str:
    lines = [
        f"{tool.name}: {tool.description} INPUT is {msgspec.json.encode(tool.input_schema).decode()}"
        for tool in tools
    ]
    return "\n".join([_TOOL_INSTRUCTIONS, *lines])


def _schema(tools: list[ToolSpec]) -> JsonObject:
    calls = [
        {
            "type": "object",
            "properties": {"tool": {"const": tool.name}, "input": tool.input_schema},
            "required": ["tool", "input"],
            "additionalProperties": False,
        }
        for tool in tools
    ]
    return {"anyOf": calls}
