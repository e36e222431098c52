"""Google's Gemini API."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import msgspec

from ..base import Chunk, ModelEntry, ModelRequest, StopReason, TokenUsage, ToolSpec, Verbatim
from ..connection import Connection
from ..wording import CallIds, Media, Replied, Said, Text, call, own, parts, pieces
from .dialect import Malformed, Reply, Told, Troubled, nearest, present, spoken, thought
from .faults import Trouble
from .sse import SseEvent

BUDGETS = {"none": 0, "minimal": 512, "low": 2048, "medium": 8192, "high": 24_576}
"""Tokens of thought for the models before Gemini 3, which want a number."""

_STOPS: dict[str, StopReason] = {"STOP": "end_turn", "MAX_TOKENS": "max_tokens"}
_REFUSALS = {"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "LANGUAGE"}

UNSIGNED = "skip_thought_signature_validator"
"""What the API takes in place of a signature, for calls that another model or an earlier process made."""


class Gemini:
    lines = False
    models_path = "/v1beta/models?pageSize=1000"

    def path(self, model: str) -> str:
        return f"/v1beta/models/{quote(model, safe='')}:streamGenerateContent?alt=sse"

    def headers(self, connection: Connection) -> dict[str, str]:
        return {"x-goog-api-key": connection.key} if connection.key else {}

    def body(self, request: ModelRequest, known: ModelEntry, connection: Connection) -> dict[str, Any]:
        said = parts(request.messages)
        instructions = request.instructions
        body = {
            "contents": _alternating(
                [content for part in said for content in _spelled(part, request, known, connection)]
            ),
            "systemInstruction": {"parts": [{"text": instructions}]} if instructions else None,
            "tools": [{"functionDeclarations": [_tool(t) for t in request.tools]}] if request.tools else None,
            "generationConfig": _generation(request) or None,
        }
        return present(body)

    def reply(self, request: ModelRequest, connection: Connection) -> GeminiReply:
        return GeminiReply(CallIds(request.messages), connection.name, request.model)

    def models(self, document: Any) -> list[Told]:
        listed = msgspec.convert(document, Listing).models
        return [_told(model) for model in listed if "generateContent" in model.supported]


def _alternating(contents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Prompts that had no reply stand in one content with the next: roles must take turns."""
    joined: list[dict[str, Any]] = []
    for content in contents:
        if joined and joined[-1]["role"] == content["role"]:
            joined[-1]["parts"] += content["parts"]
        else:
            joined.append(content)
    return joined


def _generation(request: ModelRequest) -> dict[str, Any]:
    config: dict[str, Any] = {}
    if request.max_output:
        config["maxOutputTokens"] = request.max_output
    if request.effort and not request.model.startswith(("gemini-1", "gemini-2.0")):
        config["thinkingConfig"] = {"includeThoughts": True, **_thinking(request.effort, request.model)}
    return config


def _thinking(effort: str, model: str) -> dict[str, Any]:
    """A number of tokens for the models before Gemini 3, a word for the others."""
    if model.startswith("gemini-2"):
        asked = nearest(effort, tuple(BUDGETS))
        return {"thinkingBudget": BUDGETS[asked]} if asked in BUDGETS else {}
    return {"thinkingLevel": nearest(effort, ("low", "medium", "high"))}


def _tool(tool: ToolSpec) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.input_schema}


def _spelled(
    part: Said | Replied, request: ModelRequest, known: ModelEntry, connection: Connection
) -> list[dict[str, Any]]:
    if isinstance(part, Said):
        return [{"role": "user", "parts": [_piece(piece) for piece in pieces(part.content, request, known)]}]
    spelled: list[dict[str, Any]] | None = own(part, connection.name, request.model)
    if spelled is None:
        spelled = [{"text": part.text}] if part.text.strip() else []
        spelled += [{"functionCall": {"name": made.name, "args": made.input}} for made in part.calls]
        if part.calls:
            spelled[-len(part.calls)]["thoughtSignature"] = UNSIGNED
    contents: list[dict[str, Any]] = [{"role": "model", "parts": spelled}]
    if part.results:
        names = {made.id: made.name for made in part.calls}
        results = [
            {
                "functionResponse": {
                    "name": names[result.call_id],
                    "response": {"error" if result.failed else "result": result.text},
                }
            }
            for result in part.results
        ]
        contents.append({"role": "user", "parts": results})
    return contents


def _piece(piece: Text | Media) -> dict[str, Any]:
    if isinstance(piece, Text):
        return {"text": piece.text}
    return {"inlineData": {"mimeType": piece.mime_type, "data": piece.data}}


class FunctionCall(msgspec.Struct, omit_defaults=True):
    name: str = ""
    args: dict[str, Any] | None = None
    id: str | None = None


class Part(msgspec.Struct, rename="camel", omit_defaults=True):
    text: str | None = None
    thought: bool = False
    function_call: FunctionCall | None = None
    thought_signature: str | None = None


class Content(msgspec.Struct):
    parts: list[Part] | None = None


class Candidate(msgspec.Struct, rename="camel"):
    content: Content | None = None
    finish_reason: str | None = None


class Usage(msgspec.Struct, rename="camel"):
    prompt_token_count: int | None = None
    candidates_token_count: int | None = None
    thoughts_token_count: int | None = None
    cached_content_token_count: int | None = None


class Feedback(msgspec.Struct, rename="camel"):
    block_reason: str | None = None


class Error(msgspec.Struct):
    code: int = 500
    status: str = ""
    message: str = ""


class Piece(msgspec.Struct, rename="camel"):
    candidates: list[Candidate] | None = None
    usage_metadata: Usage | None = None
    prompt_feedback: Feedback | None = None
    error: Error | None = None


_DECODER = msgspec.json.Decoder(Piece)


class GeminiReply(Reply):
    """Has no last event: it ends with the stream, when a finish reason has come. Some send one with each piece."""

    def __init__(self, ids: CallIds, provider: str, model: str) -> None:
        super().__init__()
        self._ids = ids
        self._source = (provider, model)
        self._parts: list[Part] = []
        self._finished = False

    def take(self, event: SseEvent) -> list[Chunk]:
        piece = _DECODER.decode(event.data)
        if error := piece.error:
            raise Troubled(Trouble(error.code, error.status, error.message))
        if piece.prompt_feedback and (blocked := piece.prompt_feedback.block_reason):
            raise Troubled(Trouble(400, "content_filter", f"The prompt was blocked: {blocked}"))
        if piece.usage_metadata:
            self.usage = _usage(piece.usage_metadata)
        chunks: list[Chunk] = []
        for candidate in (piece.candidates or [])[:1]:
            for part in (candidate.content and candidate.content.parts) or ():
                chunks += self._part(part)
            if candidate.finish_reason:
                self._finish(candidate.finish_reason)
        return self.note(chunks)

    def verbatim(self) -> Verbatim | None:
        if not self.calls or not any(part.thought_signature for part in self._parts):
            return None
        return Verbatim(*self._source, [msgspec.to_builtins(part) for part in _joined(self._parts)])

    def close(self) -> list[Chunk]:
        self.ended = self._finished
        return []

    def _part(self, part: Part) -> list[Chunk]:
        if part.thought:
            return thought(part.text)  # thoughts do not go back
        self._parts.append(part)
        if made := part.function_call:
            arguments = msgspec.json.encode(made.args or {}).decode()
            asked = call(self._ids.take(made.id), made.name, arguments)
            made.name = asked.name  # a call without a name must not go back like that
            return [*spoken(part.text), asked]
        return spoken(part.text)

    def _finish(self, reason: str) -> None:
        if reason in ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"):
            raise Malformed(f"the model's tool call was not valid ({reason})")
        self._finished = True
        self.stop = "refusal" if reason in _REFUSALS else _STOPS.get(reason, "end_turn")


def _joined(parts: list[Part]) -> list[Part]:
    """The parts as they go back: neighbouring plain text is one."""
    joined: list[Part] = []
    texts: list[str] = []
    for part in [*parts, Part()]:
        if part.text and not part.function_call and not part.thought_signature:
            texts.append(part.text)
            continue
        if texts:
            joined.append(Part(text="".join(texts)))
            texts = []
        if part.function_call or part.thought_signature:
            joined.append(part)
    return joined


def _usage(usage: Usage) -> TokenUsage:
    output = usage.candidates_token_count
    if usage.thoughts_token_count:
        output = (output or 0) + usage.thoughts_token_count
    return TokenUsage(usage.prompt_token_count, output, usage.cached_content_token_count or 0)


class Listed(msgspec.Struct, rename="camel"):
    name: str
    display_name: str | None = None
    input_token_limit: int | None = None
    output_token_limit: int | None = None
    supported: list[str] = msgspec.field(default_factory=list, name="supportedGenerationMethods")


class Listing(msgspec.Struct):
    models: list[Listed] = []


def _told(model: Listed) -> Told:
    id = model.name.removeprefix("models/")
    return Told(id, model.display_name, model.input_token_limit, model.output_token_limit)
