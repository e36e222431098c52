"""Gemini: `generateContent`, `streamGenerateContent`, `countTokens` and the model list, as in the Developer API.

Field names are accepted in camelCase only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from urllib.parse import parse_qs

from .base import Api, Vendor, as_list, as_object, cache_scope, new_id
from .gemini_rules import check_body
from .rules import context_rejection, prompt_tokens
from .signing import seal
from .values import Framing, Json, Model, ModelCall, PlannedReply, Recorded, Rejected, SentEvent, Usage

_ASK = re.compile(r"^/v1(?:beta|alpha)?/models/([^/:]+):(generateContent|streamGenerateContent|countTokens)$")
_LIST = re.compile(r"^/v1(?:beta|alpha)/models(?:/([^/:]+))?$")
_FINISH = {"end": "STOP", "length": "MAX_TOKENS", "tools": "STOP", "refusal": "SAFETY"}
_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    402: "FAILED_PRECONDITION",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    408: "DEADLINE_EXCEEDED",
    413: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    529: "UNAVAILABLE",
}


class Gemini(Api):
    name = "gemini"

    def serves(self, method: str, path: str, headers: Mapping[str, str]) -> bool:
        return bool(_ASK.match(path) or _LIST.match(path))

    def headers(self) -> dict[str, str]:
        return {"vary": "Origin", "x-content-type-options": "nosniff"}

    def authorize(self, request: Recorded, vendor: Vendor) -> None:
        key = request.headers.get("x-goog-api-key") or parse_qs(request.query).get("key", [""])[0]
        if vendor.key is None or key == vendor.key:
            return
        if not key:
            message = "Method doesn't allow unregistered callers (callers without established identity)."
            raise Rejected(message, status=403, reason="permission")
        raise Rejected("API key not valid. Please pass a valid API key.", reason="auth")

    def fixed_response(self, request: Recorded, vendor: Vendor) -> Json | None:
        if listed := _LIST.match(request.path):
            return _models(listed[1], vendor)
        found = _ASK.match(request.path)
        assert found is not None
        if request.method != "POST":
            raise Rejected(f"Request method {request.method} is not allowed", status=404, reason="not_found")
        if found[2] == "countTokens":
            body = request.json.get("generateContentRequest") or request.json
            check_body(body, found[1], vendor)
            return {"totalTokens": prompt_tokens(*_blocks(body))}
        return None

    def check(self, request: Recorded, vendor: Vendor) -> ModelCall:
        found = _ASK.match(request.path)
        assert found is not None
        body: Json = request.json
        model = check_body(body, found[1], vendor)
        blocks = _blocks(body)
        total = prompt_tokens(*blocks)
        if total > model.window:
            raise context_rejection(self.name, total, model.window)
        contents = body["contents"]
        if not model.images and any(_has_image(part) for each in contents for part in each["parts"]):
            raise Rejected(f"Image input modality is not enabled for models/{model.id}")
        asked = max((at for at, each in enumerate(contents) if _texts(each)), default=0)
        rounds = [each for each in contents[asked + 1 :] if each["role"] == "user"]
        config = as_object(body.get("generationConfig"))
        stream = found[2] == "streamGenerateContent"
        sse = parse_qs(request.query).get("alt") == ["sse"]
        framing: Framing = ("sse" if sse else "array") if stream else "json"
        return ModelCall(
            model=found[1],
            body=body,
            prompt="".join(_texts(contents[asked])[-1:]),
            results=_results(rounds[-1]) if rounds else [],
            rounds=len(rounds),
            stream=stream,
            framing=framing,
            thinking=model.thinking,
            tools=_tool_names(body),
            max_output=config.get("maxOutputTokens"),
            input_tokens=total,
            cached=vendor.cache.automatic(cache_scope(request, model.id), blocks, total),
            details={"shows": as_object(config.get("thinkingConfig")).get("includeThoughts") is True},
        )

    def events(
        self, model_call: ModelCall, reply: PlannedReply, usage: Usage, vendor: Vendor
    ) -> Iterator[SentEvent]:
        id = new_id("")
        if model_call.details.get("blocked"):
            yield SentEvent(_blocked(model_call, usage, id), "end")
            return
        for part in _parts(model_call, reply, whole=False):
            yield SentEvent(_chunk(model_call, [part], None, usage, id))
        yield SentEvent(_chunk(model_call, [{"text": ""}], _finish(model_call, reply), usage, id), "end")

    def complete_body(self, model_call: ModelCall, reply: PlannedReply, usage: Usage, vendor: Vendor) -> Json:
        if model_call.details.get("blocked"):
            return _blocked(model_call, usage, new_id(""))
        parts = list(_parts(model_call, reply, whole=True))
        return _chunk(model_call, parts, _finish(model_call, reply), usage, new_id(""))

    def error_body(self, rejected: Rejected) -> Json:
        code = 503 if rejected.status == 529 else rejected.status
        error: Json = {
            "code": code,
            "message": rejected.message,
            "status": _STATUS.get(rejected.status, "UNKNOWN"),
        }
        if details := _error_details(rejected):
            error["details"] = details
        return {"error": error}

    def error_event(self, rejected: Rejected, number: int) -> SentEvent:
        return SentEvent(self.error_body(rejected))

    def noise(self) -> list[SentEvent]:
        return [SentEvent({"usageMetadata": {"promptTokenCount": 1}, "neverHeardOf": {"a": 1}})]


def _parts(model_call: ModelCall, reply: PlannedReply, *, whole: bool) -> Iterator[Json]:
    thoughts = reply.thoughts if model_call.details.get("shows") else ()
    for piece in ("".join(thoughts),) if whole and thoughts else thoughts:
        yield {"text": piece, "thought": True}
    for piece in ("".join(reply.text),) if whole and reply.text else reply.text:
        yield {"text": piece}
    for index, call in enumerate(reply.calls):
        part: Json = {"functionCall": {"name": call.name, "args": call.input}}
        if call.id is not None:
            part["functionCall"]["id"] = call.id or new_id("")
        if index == 0:
            part["thoughtSignature"] = seal(call.name)
        yield part


def _finish(model_call: ModelCall, reply: PlannedReply) -> str:
    return str(model_call.details.get("finish") or _FINISH[reply.stop])


def _chunk(model_call: ModelCall, parts: list[Json], finish: str | None, usage: Usage, id: str) -> Json:
    candidate: Json = {"index": 0}
    if parts:
        candidate = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    return {
        "candidates": [candidate],
        "usageMetadata": _usage(usage),
        "modelVersion": model_call.model,
        "responseId": id,
    }


def _blocked(model_call: ModelCall, usage: Usage, id: str) -> Json:
    counted = {"promptTokenCount": usage.input, "totalTokenCount": usage.input}
    feedback = {"blockReason": "PROHIBITED_CONTENT"}
    return {
        "promptFeedback": feedback,
        "usageMetadata": counted,
        "modelVersion": model_call.model,
        "responseId": id,
    }


def _usage(usage: Usage) -> Json:
    counted: Json = {
        "promptTokenCount": usage.input,
        "candidatesTokenCount": usage.output - usage.thoughts,
        "totalTokenCount": usage.input + usage.output,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": usage.input}],
    }
    if usage.cached:
        counted["cachedContentTokenCount"] = usage.cached
    if usage.thoughts:
        counted["thoughtsTokenCount"] = usage.thoughts
    return counted


def _error_details(rejected: Rejected) -> list[Json]:
    prefix = "type.googleapis.com/google.rpc."
    if rejected.reason == "auth":
        reason = "API_KEY_INVALID" if rejected.status == 400 else "ACCESS_TOKEN_TYPE_UNSUPPORTED"
        return [{"@type": f"{prefix}ErrorInfo", "reason": reason, "domain": "googleapis.com"}]
    if rejected.reason == "rate_limit":
        seconds = rejected.headers.get("retry-after", "1")
        quota = {"quotaId": "GenerateRequestsPerMinutePerProjectPerModel"}
        return [
            {"@type": f"{prefix}QuotaFailure", "violations": [quota]},
            {"@type": f"{prefix}RetryInfo", "retryDelay": f"{seconds if seconds.isdigit() else 1}s"},
        ]
    if rejected.reason == "quota":
        quota = {"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier", "quotaValue": "50"}
        return [{"@type": f"{prefix}QuotaFailure", "violations": [quota]}]
    return []


def _blocks(body: Json) -> list[object]:
    return [body.get("systemInstruction") or {}, body.get("tools") or [], *as_list(body.get("contents"))]


def _has_image(part: Json) -> bool:
    return "inlineData" in part or bool(as_object(part.get("functionResponse")).get("parts"))


def _texts(content: Json) -> list[str]:
    return (
        [part["text"] for part in content["parts"] if part.get("text")] if content["role"] == "user" else []
    )


def _results(content: Json) -> list[str]:
    results = []
    for part in content["parts"]:
        if given := part.get("functionResponse"):
            values = given["response"].values()
            results.append(" ".join(value if isinstance(value, str) else str(value) for value in values))
    return results


def _tool_names(body: Json) -> list[str]:
    return [
        function["name"]
        for tool in as_list(body.get("tools"))
        for function in as_list(as_object(tool).get("functionDeclarations"))
    ]


def _models(name: str | None, vendor: Vendor) -> Json:
    if name is None:
        return {"models": [_model_info(model) for model in vendor.models]}
    model = vendor.model(name)
    if model is None:
        raise Rejected(f"models/{name} is not found for API version v1beta.", status=404, reason="model")
    return _model_info(model)


def _model_info(model: Model) -> Json:
    return {
        "name": f"models/{model.id}",
        "version": "001",
        "displayName": f"Fake {model.id}",
        "description": "A model that is none.",
        "inputTokenLimit": model.window,
        "outputTokenLimit": model.output,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
        "temperature": 1,
        "topP": 0.95,
        "topK": 64,
        "maxTemperature": 2,
        "thinking": model.thinking,
    }
