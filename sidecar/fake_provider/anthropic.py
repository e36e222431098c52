"""Anthropic's Messages: `POST /v1/messages`, `POST /v1/messages/count_tokens` and the model list."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qs

from .anthropic_rules import (
    BETA_PARAMETERS,
    COUNT_PARAMETERS,
    PARAMETERS,
    SAMPLING,
    check_body,
    check_new_version,
    merged,
)
from .base import Api, Vendor, as_list, as_object, cache_scope, new_id
from .cache import without_cache_marks
from .rules import context_rejection, prompt_tokens
from .signing import seal
from .values import (
    EventKind,
    Json,
    Model,
    ModelCall,
    PlannedReply,
    Recorded,
    Rejected,
    SentCall,
    SentEvent,
    Usage,
)

VERSIONS = ("2023-01-01", "2023-06-01", "2026-10-21")
_PIECE = 12  # characters of a tool's input in one delta
_THINKING = ("adaptive", "between_tools", "disabled", "enabled")
_STOP = {"end": "end_turn", "length": "max_tokens", "tools": "tool_use", "refusal": "refusal"}
_ERRORS = {
    "auth": "authentication_error",
    "billing": "billing_error",
    "permission": "permission_error",
    "model": "not_found_error",
    "not_found": "not_found_error",
    "too_large": "request_too_large",
    "rate_limit": "rate_limit_error",
    "quota": "rate_limit_error",
    "server": "api_error",
    "unavailable": "api_error",
    "timeout": "timeout_error",
    "overloaded": "overloaded_error",
}


class AnthropicMessages(Api):
    name = "anthropic"

    def serves(self, method: str, path: str, headers: Mapping[str, str]) -> bool:
        if path in ("/v1/messages", "/v1/messages/count_tokens"):
            return True
        ours = "anthropic-version" in headers or "x-api-key" in headers
        return method == "GET" and path.split("/")[1:3] == ["v1", "models"] and ours

    def headers(self) -> dict[str, str]:
        return {"request-id": f"req_{uuid.uuid4().hex[:24]}", "anthropic-organization-id": "fake"}

    def authorize(self, request: Recorded, vendor: Vendor) -> None:
        given = request.headers
        key = given.get("x-api-key") or given.get("authorization", "").removeprefix("Bearer ")
        if vendor.key is not None and key != vendor.key:
            message = "invalid x-api-key" if key else "x-api-key header is required"
            raise Rejected(message, status=401, reason="auth")
        if "anthropic-version" not in given:
            raise Rejected("anthropic-version: header is required")
        if given["anthropic-version"] not in VERSIONS:
            raise Rejected(f'anthropic-version: "{given["anthropic-version"]}" is not a valid version')

    def fixed_response(self, request: Recorded, vendor: Vendor) -> Json | None:
        if request.path.startswith("/v1/models"):
            return _models(request, vendor)
        if request.method != "POST":
            raise Rejected("Method Not Allowed", status=405)
        if request.path.endswith("/count_tokens"):
            check_body(request.json, vendor, COUNT_PARAMETERS)
            return {"input_tokens": _total(request.json)}
        return None

    def check(self, request: Recorded, vendor: Vendor) -> ModelCall:
        body: Json = request.json
        more = BETA_PARAMETERS if "anthropic-beta" in request.headers else frozenset[str]()
        new = request.headers["anthropic-version"] == VERSIONS[-1]
        model = check_body(body, vendor, PARAMETERS | more if new else PARAMETERS | more | SAMPLING)
        if new:
            check_new_version(body)
        total = _total(body)
        if total > model.window:
            raise context_rejection(self.name, total, model.window)
        messages = merged(body["messages"])
        asked = max((at for at, each in enumerate(messages) if _texts(each)), default=0)
        rounds = [each for each in messages[asked:] if each["role"] == "assistant" and _uses(each)]
        read, written = vendor.cache.marked(cache_scope(request, model.id), _blocks(body))
        thinking = as_object(body.get("thinking"))
        return ModelCall(
            model=body["model"],
            body=body,
            prompt="".join(_texts(messages[asked])[-1:]),
            results=_results(messages[-1]) if rounds else [],
            rounds=len(rounds),
            stream=bool(body.get("stream")),
            framing="sse" if body.get("stream") else "json",
            thinking=thinking.get("type") in ("enabled", "adaptive"),
            parallel=not as_object(body.get("tool_choice")).get("disable_parallel_tool_use"),
            tools=[as_object(tool).get("name", "") for tool in as_list(body.get("tools"))],
            max_output=body["max_tokens"],
            input_tokens=total,
            cached=read,
            written=written,
            details={"thinks_always": thinking.get("type") == "enabled", "display": thinking.get("display")},
        )

    def events(
        self, model_call: ModelCall, reply: PlannedReply, usage: Usage, vendor: Vendor
    ) -> Iterator[SentEvent]:
        start = _message(model_call, [], None, _usage(usage, output=1))
        yield _event({"type": "message_start", "message": start}, "open")
        blocks = list(_streamed(model_call, reply))
        for index, (block, deltas) in enumerate(blocks):
            yield _event({"type": "content_block_start", "index": index, "content_block": block}, "open")
            if index == 0:
                yield _event({"type": "ping"}, "open")
            for delta in deltas:
                yield _event({"type": "content_block_delta", "index": index, "delta": delta})
            last: EventKind = "close" if index == len(blocks) - 1 else "open"
            yield _event({"type": "content_block_stop", "index": index}, last)
        final: Json = {"stop_reason": _STOP[reply.stop], "stop_sequence": None, **_details(reply)}
        yield _event({"type": "message_delta", "delta": final, "usage": _final_usage(usage)}, "end")
        yield _event({"type": "message_stop"}, "end")

    def complete_body(self, model_call: ModelCall, reply: PlannedReply, usage: Usage, vendor: Vendor) -> Json:
        message = _message(
            model_call, _content(model_call, reply), _STOP[reply.stop], _usage(usage, usage.output)
        )
        return message | _details(reply)

    def error_body(self, rejected: Rejected) -> Json:
        error = {"type": _ERRORS.get(rejected.reason, "invalid_request_error"), "message": rejected.message}
        return {"type": "error", "error": error, "request_id": f"req_{uuid.uuid4().hex[:24]}"}

    def error_event(self, rejected: Rejected, number: int) -> SentEvent:
        return _event(self.error_body(rejected), "delta")

    def noise(self) -> list[SentEvent]:
        return [
            _event({"type": "ping"}, "open"),
            _event({"type": "never_heard_of", "what": "a newer server"}, "open"),
        ]


def _event(data: Json, kind: EventKind = "delta") -> SentEvent:
    return SentEvent(data, kind, data["type"])


def _streamed(model_call: ModelCall, reply: PlannedReply) -> Iterator[tuple[Json, list[Json]]]:
    """Return each block as it starts, and its deltas."""
    thoughts = _thoughts(model_call, reply)
    if thoughts:
        shown: list[Json] = [{"type": "thinking_delta", "thinking": piece} for piece in thoughts]
        if model_call.details.get("display") == "omitted":
            shown = []
        signature = {"type": "signature_delta", "signature": seal("".join(thoughts))}
        yield {"type": "thinking", "thinking": "", "signature": ""}, [*shown, signature]
    if reply.text:
        yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in reply.text]
    for call in reply.calls:
        pieces = ["", *(call.arguments[at : at + _PIECE] for at in range(0, len(call.arguments), _PIECE))]
        deltas: list[Json] = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
        yield {**_call(call), "input": {}}, deltas


def _content(model_call: ModelCall, reply: PlannedReply) -> list[Json]:
    content: list[Json] = []
    if thoughts := _thoughts(model_call, reply):
        text = "".join(thoughts)
        shown = "" if model_call.details.get("display") == "omitted" else text
        content.append({"type": "thinking", "thinking": shown, "signature": seal(text)})
    if reply.text:
        content.append({"type": "text", "text": "".join(reply.text)})
    return [*content, *(_call(call) for call in reply.calls)]


def _thoughts(model_call: ModelCall, reply: PlannedReply) -> tuple[str, ...]:
    """With a budget the model always thinks; enough to make a client send it back."""
    if reply.thoughts or not model_call.details.get("thinks_always"):
        return reply.thoughts
    return ("Let", " me", " think.") if reply.text or reply.calls else ()


def _call(call: SentCall) -> Json:
    id = {} if call.id is None else {"id": call.id or new_id("toolu_")}
    return {"type": "tool_use", **id, "name": call.name, "input": call.input}


def _message(model_call: ModelCall, content: list[Json], stop: str | None, usage: Json) -> Json:
    return {
        "id": new_id("msg_"),
        "type": "message",
        "role": "assistant",
        "model": model_call.model,
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": usage,
    }


def _details(reply: PlannedReply) -> Json:
    if reply.stop != "refusal":
        return {}
    return {"stop_details": {"type": "refusal", "category": None, "explanation": None}}


def _usage(usage: Usage, output: int) -> Json:
    """`input_tokens` is what was neither read from the cache nor written to it."""
    return {
        "input_tokens": max(0, usage.input - usage.cached - usage.written),
        "cache_creation_input_tokens": usage.written,
        "cache_read_input_tokens": usage.cached,
        "cache_creation": {"ephemeral_5m_input_tokens": usage.written, "ephemeral_1h_input_tokens": 0},
        "output_tokens": output,
        "service_tier": "standard",
    }


def _final_usage(usage: Usage) -> Json:
    full = _usage(usage, usage.output)
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    return {name: full[name] for name in names}


def _total(body: Json) -> int:
    return sum(prompt_tokens(without_cache_marks(block)) for block, _ in _blocks(body))


def _blocks(body: Json) -> list[tuple[Any, bool]]:
    """Return everything that is cached, in order: tools, system, messages; and the positions of the marks."""
    system = body.get("system")
    blocks = [*as_list(body.get("tools")), *([system] if isinstance(system, str) else as_list(system))]
    for message in body["messages"]:
        content = message["content"]
        blocks += [[message["role"], block] for block in ([content] if isinstance(content, str) else content)]
    marked = [(block, _is_marked(block)) for block in blocks]
    if body.get("cache_control") and marked:
        marked[-1] = (marked[-1][0], True)
    return marked


def _is_marked(block: Any) -> bool:
    inner = as_object(block[1] if isinstance(block, list) else block)
    return any(as_object(each).get("cache_control") for each in (inner, *as_list(inner.get("content"))))


def _texts(message: Json) -> list[str]:
    if message["role"] != "user":
        return []
    return [block["text"] for block in message["content"] if block["type"] == "text"]


def _uses(message: Json) -> bool:
    return any(block["type"] == "tool_use" for block in message["content"])


def _results(message: Json) -> list[str]:
    results = []
    for block in message["content"]:
        if block["type"] == "tool_result":
            content = block.get("content") or ""
            parts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
            results.append("".join(parts))
    return results


def _models(request: Recorded, vendor: Vendor) -> Json:
    name = request.path.removeprefix("/v1/models").strip("/")
    if name:
        model = vendor.model(name)
        if model is None:
            raise Rejected(f"model: {name}", status=404, reason="model")
        return _model_info(model)
    query = parse_qs(request.query)
    limit, after = int(query.get("limit", ["20"])[0]), query.get("after_id", [""])[0]
    ids = [model.id for model in vendor.models]
    start = ids.index(after) + 1 if after in ids else 0
    page = [_model_info(model) for model in vendor.models[start : start + limit]]
    return {
        "data": page,
        "has_more": start + limit < len(ids),
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
    }


def _model_info(model: Model) -> Json:
    yes, no = {"supported": True}, {"supported": False}
    thinking = yes if model.thinking else no
    efforts = dict.fromkeys(("low", "medium", "high", "xhigh", "max"), thinking)
    return {
        "type": "model",
        "id": model.id,
        "display_name": f"Fake {model.id}",
        "created_at": "2025-01-01T00:00:00Z",
        "lifecycle": "active",
        "line": None,
        "deprecated_at": None,
        "retires_at": None,
        "max_input_tokens": model.window,
        "max_tokens": model.output,
        "capabilities": {
            "batch": no,
            "citations": no,
            "code_execution": no,
            "context_management": no,
            "effort": thinking | efforts,
            "image_input": yes if model.images else no,
            "pdf_input": no,
            "server_tools": no | {"code_execution": no, "web_search": no},
            "structured_outputs": no,
            "thinking": thinking | {"types": dict.fromkeys(_THINKING, thinking)},
        },
    }
