"""Google's Gemini API."""

from __future__ import annotations

import re
from functools import partial
from typing import Any, Literal, NotRequired, TypedDict
from urllib.parse import quote

import msgspec

from ...model import JsonObject
from ..base import ModelEntry, ModelRequest, ReplyPart, StopReason, TokenUsage, ToolSpec, Verbatim
from ..endpoint import Endpoint
from ..wording import CallIds, Media, ModelPart, ResultPieces, Text, call, own_spelling
from .dialect import (
    MalformedReply,
    ModelInfo,
    ReplyReader,
    RequestBody,
    StreamError,
    nearest_effort,
    rendered_messages,
    spoken,
    thought,
)
from .errors import ProviderError
from .sse import SseEvent

THINKING_BUDGETS = {"none": 0, "minimal": 512, "low": 2048, "medium": 8192, "high": 24_576}
"""Thinking tokens for the models before Gemini 3, which need a number."""

_MEDIA_IN_RESULTS = re.compile(r"gemini-(?:[3-9]|\d\d)")
"""Models whose function responses may hold images; for the others, images follow the response."""

_STOPS: dict[str, StopReason] = {"STOP": "end_turn", "MAX_TOKENS": "max_tokens"}
_REFUSALS = {"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "LANGUAGE"}

UNSIGNED_THOUGHT = "skip_thought_signature_validator"
"""What the API accepts in place of a signature, for calls that another model or an earlier process made."""


class InlineData(TypedDict):
    mimeType: str
    data: str


class RequestCall(TypedDict):
    name: str
    args: JsonObject


class RequestResult(TypedDict):
    name: str
    response: dict[str, str]
    parts: NotRequired[list[RequestPart]]


class RequestPart(TypedDict, total=False):
    """A part of a message, of any kind."""

    text: str
    inlineData: InlineData
    functionCall: RequestCall
    functionResponse: RequestResult
    thoughtSignature: str


class Instruction(TypedDict):
    parts: list[RequestPart]


class RequestContent(Instruction):
    role: Literal["user", "model"]


class FunctionDeclaration(TypedDict):
    name: str
    description: str
    parametersJsonSchema: JsonObject


class Tools(TypedDict):
    functionDeclarations: list[FunctionDeclaration]


class ThinkingConfig(RequestBody, frozen=True, kw_only=True, rename="camel"):
    include_thoughts: bool
    thinking_budget: int | None = None
    thinking_level: str | None = None


class GenerationConfig(RequestBody, frozen=True, kw_only=True, rename="camel"):
    max_output_tokens: int | None = None
    thinking_config: ThinkingConfig | None = None


class GenerateRequest(RequestBody, frozen=True, kw_only=True, rename="camel"):
    contents: list[RequestContent]
    system_instruction: Instruction | None = None
    tools: list[Tools] | None = None
    generation_config: GenerationConfig | None = None


class Gemini:
    lines = False
    models_path = "/v1beta/models?pageSize=1000"

    def path(self, model: str) -> str:
        return f"/v1beta/models/{quote(model, safe='')}:streamGenerateContent?alt=sse"

    def headers(self, endpoint: Endpoint) -> dict[str, str]:
        return {"x-goog-api-key": endpoint.key} if endpoint.key else {}

    def body(self, request: ModelRequest, known: ModelEntry, endpoint: Endpoint) -> GenerateRequest:
        render_results = partial(_render_results, inside=_MEDIA_IN_RESULTS.match(request.model) is not None)
        contents = rendered_messages(
            request,
            known,
            _render_prompt,
            lambda part, results: _render_reply(
                part, own_spelling(part, endpoint.name, request.model), render_results(results)
            ),
        )
        instructions = request.instructions
        return GenerateRequest(
            contents=_merge_same_role(contents),
            system_instruction={"parts": [{"text": instructions}]} if instructions else None,
            tools=[{"functionDeclarations": [_tool(t) for t in request.tools]}] if request.tools else None,
            generation_config=_generation(request),
        )

    def reply(self, request: ModelRequest, endpoint: Endpoint) -> GeminiReply:
        return GeminiReply(CallIds(request.messages), endpoint.name, request.model)

    def models(self, document: Any) -> list[ModelInfo]:
        listed = msgspec.convert(document, ModelListing).models
        return [_model_info(model) for model in listed if "generateContent" in model.supported]


def _merge_same_role(contents: list[RequestContent]) -> list[RequestContent]:
    """Merge prompts without a reply with the next one: roles must alternate."""
    joined: list[RequestContent] = []
    for content in contents:
        if joined and joined[-1]["role"] == content["role"]:
            joined[-1]["parts"] += content["parts"]
        else:
            joined.append(content)
    return joined


def _generation(request: ModelRequest) -> GenerationConfig | None:
    thinks = request.effort and not request.model.startswith(("gemini-1", "gemini-2.0"))
    thinking = _thinking(request.effort, request.model) if request.effort and thinks else None
    if not request.max_output and thinking is None:
        return None
    return GenerationConfig(max_output_tokens=request.max_output or None, thinking_config=thinking)


def _thinking(effort: str, model: str) -> ThinkingConfig:
    """Return a number of tokens for the models before Gemini 3, a level for the others."""
    if model.startswith("gemini-2"):
        asked = nearest_effort(effort, tuple(THINKING_BUDGETS))
        return ThinkingConfig(include_thoughts=True, thinking_budget=THINKING_BUDGETS.get(asked or ""))
    return ThinkingConfig(
        include_thoughts=True, thinking_level=nearest_effort(effort, ("low", "medium", "high"))
    )


def _tool(tool: ToolSpec) -> FunctionDeclaration:
    return {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.input_schema}


def _render_prompt(pieces: list[Text | Media]) -> RequestContent:
    return {"role": "user", "parts": [_render_piece(piece) for piece in pieces]}


def _render_reply(
    part: ModelPart, spelled: list[RequestPart] | None, results: list[RequestPart]
) -> list[RequestContent]:
    """Return a reply and the results of its calls; `spelled` is the reply as the API wrote it, if it did."""
    if spelled is None:
        spelled = [{"text": part.text}] if part.text.strip() else []
        spelled += [{"functionCall": {"name": made.name, "args": made.input}} for made in part.calls]
        if part.calls:
            # Only the first call of a reply: the API checks no other.
            spelled[-len(part.calls)]["thoughtSignature"] = UNSIGNED_THOUGHT
    contents: list[RequestContent] = [{"role": "model", "parts": spelled}]
    if results:
        contents.append({"role": "user", "parts": results})
    return contents


def _render_results(results: list[ResultPieces], *, inside: bool) -> list[RequestPart]:
    """Return the results, with their images `inside` where the model takes them there; other media follow."""
    rendered: list[RequestPart] = []
    for result in results:
        images = [medium for medium in result.media if inside and medium.kind == "image"]
        function: RequestResult = {
            "name": result.name,
            "response": {"error" if result.failed else "result": result.text},
        }
        if images:
            function["parts"] = [_render_piece(image) for image in images]
        rendered.append({"functionResponse": function})
        rendered += [_render_piece(medium) for medium in result.media if medium not in images]
    return rendered


def _render_piece(piece: Text | Media) -> RequestPart:
    if isinstance(piece, Text):
        return {"text": piece.text}
    return {"inlineData": {"mimeType": piece.mime_type, "data": piece.data}}


class FunctionCall(msgspec.Struct, omit_defaults=True):
    name: str = ""
    args: JsonObject | None = None
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


class GeminiReply(ReplyReader):
    """Has no last event: it ends with the stream, after a finish reason. Some servers send one with each piece."""

    def __init__(self, ids: CallIds, provider: str, model: str) -> None:
        super().__init__()
        self._ids = ids
        self._source = (provider, model)
        self._parts: list[Part] = []
        self._finished = False

    def take(self, event: SseEvent) -> list[ReplyPart]:
        piece = _DECODER.decode(event.data)
        if error := piece.error:
            raise StreamError(ProviderError(error.code, error.status, error.message))
        if piece.prompt_feedback and (blocked := piece.prompt_feedback.block_reason):
            raise StreamError(ProviderError(400, "content_filter", f"The prompt was blocked: {blocked}"))
        if piece.usage_metadata:
            self.usage = _usage(piece.usage_metadata)
        chunks: list[ReplyPart] = []
        # One answer was asked for; texts of two would be mixed.
        for candidate in (piece.candidates or [])[:1]:
            for part in (candidate.content and candidate.content.parts) or ():
                chunks += self._part(part)
            if candidate.finish_reason:
                self._finish(candidate.finish_reason)
        return self.note(chunks)

    def verbatim(self) -> Verbatim | None:
        if not self.calls or not any(part.thought_signature for part in self._parts):
            return None
        return Verbatim(*self._source, [msgspec.to_builtins(part) for part in _join_parts(self._parts)])

    def close(self) -> list[ReplyPart]:
        # The end of the stream alone may be a cut.
        self.ended = self._finished
        return []

    def _part(self, part: Part) -> list[ReplyPart]:
        if part.thought:
            return thought(part.text)  # thoughts are not sent back
        self._parts.append(part)
        if made := part.function_call:
            arguments = msgspec.json.encode(made.args or {}).decode()
            asked = call(self._ids.take(made.id), made.name, arguments)
            made.name = asked.name  # a call without a name must not be sent back
            return [*spoken(part.text), asked]
        return spoken(part.text)

    def _finish(self, reason: str) -> None:
        if reason in ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"):
            raise MalformedReply(f"the model's tool call was not valid ({reason})")
        self._finished = True
        self.stop = "refusal" if reason in _REFUSALS else _STOPS.get(reason, "end_turn")


def _join_parts(parts: list[Part]) -> list[Part]:
    """Return the parts to send back: adjacent plain text is joined."""
    joined: list[Part] = []
    texts: list[str] = []
    # The empty part at the end flushes the last texts.
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
        # Thoughts are counted apart from the answer, and paid like it.
        output = (output or 0) + usage.thoughts_token_count
    return TokenUsage(usage.prompt_token_count, output, usage.cached_content_token_count or 0)


class ListedModel(msgspec.Struct, rename="camel"):
    name: str
    display_name: str | None = None
    input_token_limit: int | None = None
    output_token_limit: int | None = None
    thinking: bool | None = None
    supported: list[str] = msgspec.field(default_factory=list, name="supportedGenerationMethods")


class ModelListing(msgspec.Struct):
    models: list[ListedModel] = []


def _model_info(model: ListedModel) -> ModelInfo:
    id = model.name.removeprefix("models/")
    return ModelInfo(
        id,
        model.display_name,
        model.input_token_limit,
        model.output_token_limit,
        thinks=model.thinking,
    )
