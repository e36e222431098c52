"""Convert a request to llama.cpp's chat API, and its answer back.

Models that think and whose chat template supports tools get them directly: llama.cpp constrains their calls. For the
others tools are described in the system message, and a call is text that a grammar constrains to the schemas of the
tools; their own formats are left to the model's will, which small ones do not have.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Required, TypedDict

import msgspec

from ...model import JsonObject
from ...text.control_tokens import break_control_tokens
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
from .worker import TALK_MARK, TOOL_MARK

_TEXT_ONLY = ModelEntry(id="local:", name="", provider="local")


class Sampling(msgspec.Struct, frozen=True, omit_defaults=True):
    """How the next token is chosen, in llama.cpp's words; what is absent is its default, or what the file says."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    repeat_penalty: float | None = None
    dry_multiplier: float | None = None
    dry_allowed_length: int | None = None


class Manner(msgspec.Struct, frozen=True):
    """How models of a size are asked: files of fewer bytes than `below`."""

    below: float
    sampling: Sampling
    max_answer: int | None
    """Tokens of an answer unless `outputReserve` says otherwise: what a CPU writes in a bearable time, if the model
    does not stop."""
    has_tools: bool = True
    has_examples: bool = False


_MANNERS = (
    # Too small for tools: their descriptions take thousands of tokens, and the model then repeats itself. It does so
    # in any long answer, unless repetitions are made unlikely.
    Manner(300_000_000, Sampling(0.2, 0.9, None, 1.1, 0.8, 3), max_answer=256, has_tools=False),
    # These need examples to see whether a tool is meant; their authors advise to be warmer, but not for code.
    Manner(800_000_000, Sampling(0.2, 0.8, 20, 1.05), max_answer=1024, has_examples=True),
    Manner(2_000_000_000, Sampling(0.2, 0.8, 20, 1.05), max_answer=2048, has_examples=True),
    Manner(float("inf"), Sampling(), max_answer=None),
)

_TOOL_INSTRUCTIONS = (
    "You can use these tools:\n{tools}\n\n"
    "Begin every answer with TALK or TOOL. TALK and a text is for greetings, general questions, and code that you"
    ' write. TOOL and a JSON object {{"name": NAME, "arguments": {{...}}}} is for what you must look up in the'
    " user's files, change in them or run; you then get the result."
)


class Example(msgspec.Struct, frozen=True):
    """What a user may say, and how it is answered: with text, or with a call of the tool."""

    prompt: str
    text: str = ""
    tool: str | None = None
    arguments: JsonObject = {}


_EXAMPLES = (
    Example("Say good morning.", "Good morning!"),
    Example("What is in main.py?", tool="read_file", arguments={"path": "main.py"}),
    Example("Which colour is the sky?", "The sky is blue."),
    Example("Where is the class Parser?", tool="grep", arguments={"pattern": "class Parser"}),
    Example("How do I sort a list in Python?", "Use `sorted(items)`."),
    Example("Build it.", tool="run_command", arguments={"command": "make"}),
    Example("Thanks. What is 3 * 7?", "3 * 7 is 21."),
)

_FENCED_CALL = re.compile(r"```(?:json)?\s*(\{.*\})\s*```\s*$", re.DOTALL)
"""A call that the model shows at the end of a text instead of making it."""


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
    manner = manner_of(model)
    tools = request.tools if manner.has_tools else []
    is_marked = bool(tools) and not model.native_tools
    said = [
        message for part in parts(request.messages) for message in _messages(part, request, model, is_marked)
    ]
    system = [request.instructions or ""]
    if is_marked:
        system.append(_describe_tools(tools))
        if manner.has_examples:
            said = [*_examples(tools), *said]
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
        "max_tokens": min(request.max_output or manner.max_answer or model.max_output, model.window),
    }
    body.update(msgspec.to_builtins(manner.sampling))
    if tools and model.native_tools:
        body["tools"] = [function(tool) for tool in tools]
        return WorkerRequest(body)
    return WorkerRequest(body, _schema(tools) if tools else None)


def manner_of(model: LocalModel) -> Manner:
    return next(manner for manner in _MANNERS if model.bytes < manner.below)


class ParsedAnswer:
    """Assembles an answer. `held` is text that may become a call: it is shown only when it does not."""

    def __init__(self, request: ModelRequest, in_text: bool) -> None:
        self.called = False
        self._in_text = in_text
        self._begun = False
        self._held = ""
        self._shown = ""
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
            chunks.append(self._call_in(self._held.removeprefix(TOOL_MARK)) or TextDelta(self._held))
        elif (
            self._in_text
            and (shown := _FENCED_CALL.search(self._shown))
            and (made := self._call_in(shown[1]))
        ):
            chunks.append(made)
        self.called = any(isinstance(chunk, ToolCall) for chunk in chunks)
        return chunks

    def _release_text(self, text: str) -> str:
        if not self._in_text:
            return text
        if not self._begun:
            self._held += text
            if self._held.startswith(TOOL_MARK) or TOOL_MARK.startswith(self._held):
                return ""
            if TALK_MARK.startswith(self._held):
                return ""
            self._begun, text, self._held = True, self._held.removeprefix(TALK_MARK), ""
        self._shown += text
        return text

    def _call_in(self, text: str) -> ToolCall | None:
        try:
            made = msgspec.json.decode(text.strip())
        except msgspec.DecodeError:
            return None
        if not isinstance(made, dict) or made.get("name") not in self._names:
            return None
        input = made.get("arguments")
        return ToolCall(self._ids.take(None), made["name"], input if isinstance(input, dict) else {})

    def _collect_call(self, piece: CallPiece) -> None:
        kept = self._calls.setdefault(piece.index or 0, {"id": "", "name": "", "arguments": ""})
        kept["id"] = piece.id or kept["id"]
        if piece.function:
            kept["name"] += piece.function.name or ""
            kept["arguments"] += piece.function.arguments or ""


def _messages(
    part: UserPart | ModelPart, request: ModelRequest, model: LocalModel, is_marked: bool
) -> list[WorkerMessage]:
    if isinstance(part, UserPart):
        return [{"role": "user", "content": _text(part, request)}]
    if model.native_tools:
        return _native_messages(part, request)
    return _plain_messages(part, request, is_marked)


def _native_messages(part: ModelPart, request: ModelRequest) -> list[WorkerMessage]:
    message: WorkerMessage = {"role": "assistant", "content": part.text}
    if part.calls:
        message["tool_calls"] = [function_call(made) for made in part.calls]
    results: list[WorkerMessage] = [
        {"role": "tool", "tool_call_id": each.call_id, "content": each.text}
        for each in result_pieces(part, request, _TEXT_ONLY)
    ]
    return [message, *results]


def _plain_messages(part: ModelPart, request: ModelRequest, is_marked: bool) -> list[WorkerMessage]:
    """The model's text and calls as it would write them, and the results as what the user says then."""
    calls = [_spelled_call(made.name, made.input) for made in part.calls]
    text = TALK_MARK + part.text if is_marked and part.text and not calls else part.text
    said: list[WorkerMessage] = [{"role": "assistant", "content": "\n".join(filter(None, [text, *calls]))}]
    results = [
        f"{'Error' if each.failed else 'Result'} of {each.name}:\n{each.text}"
        for each in result_pieces(part, request, _TEXT_ONLY)
    ]
    return said + ([{"role": "user", "content": "\n\n".join(results)}] if results else [])


def _spelled_call(name: str, arguments: JsonObject) -> str:
    return TOOL_MARK + msgspec.json.encode({"name": name, "arguments": arguments}).decode()


def _text(part: UserPart, request: ModelRequest) -> str:
    found = content_pieces(part.content, request, _TEXT_ONLY)
    return "\n\n".join(piece.text for piece in found if isinstance(piece, Text))


def _describe_tools(tools: list[ToolSpec]) -> str:
    lines = [f"- {signature(tool.name, tool.input_schema)}: {tool.description}" for tool in tools]
    return _TOOL_INSTRUCTIONS.format(tools="\n".join(lines))


def signature(name: str, schema: Mapping[str, Any]) -> str:
    """A tool as a function: a third of the tokens of its schema, which the grammar enforces anyway."""
    required = schema.get("required", [])
    members = [
        f"{member}{'' if member in required else '?'}: {_type_name(value)}"
        for member, value in schema.get("properties", {}).items()
    ]
    return f"{name}({', '.join(members)})"


def _type_name(schema: Mapping[str, Any]) -> str:
    if choices := schema.get("enum"):
        return "|".join(map(str, choices))
    if schema.get("type") == "array":
        return f"{_type_name(schema.get('items', {}))}[]"
    if members := schema.get("properties"):
        return "{" + ", ".join(f"{name}: {_type_name(value)}" for name, value in members.items()) + "}"
    return str(schema.get("type", "any"))


def _examples(tools: list[ToolSpec]) -> list[WorkerMessage]:
    """A conversation with both kinds of answers, as far as the tools are there."""
    names = {tool.name for tool in tools}
    found: list[WorkerMessage] = []
    for example in _EXAMPLES:
        if example.tool is None or example.tool in names:
            answer = (
                _spelled_call(example.tool, example.arguments) if example.tool else TALK_MARK + example.text
            )
            found += [{"role": "user", "content": example.prompt}, {"role": "assistant", "content": answer}]
    return found


def _schema(tools: list[ToolSpec]) -> JsonObject:
    calls = [
        {
            "type": "object",
            "properties": {
                "name": {"const": tool.name},
                "arguments": {"type": "object", **tool.input_schema},
            },
            "required": ["name", "arguments"],
            "additionalProperties": False,
        }
        for tool in tools
    ]
    return {"anyOf": calls}
