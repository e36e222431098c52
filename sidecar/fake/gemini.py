"""Gemini: `generateContent`, `streamGenerateContent`, `countTokens` and the model list, as the Developer API has them.

Field names are taken in camelCase only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from urllib.parse import parse_qs

from .base import Api, House, a_list, an_object, new_id, scope
from .gemini_rules import check_body
from .rules import context_rejection, prompt_tokens
from .signing import seal
from .values import Event, Framing, Json, Model, Recorded, Rejected, Reply, Turn, Usage

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

    def authorize(self, request: Recorded, house: House) -> None:
        key = request.headers.get("x-goog-api-key") or parse_qs(request.query).get("key", [""])[0]
        if house.key is None or key == house.key:
            return
        if not key:
            message = "Method doesn't allow unregistered callers (callers without established identity)."
            raise Rejected(message, status=403, reason="permission")
        raise Rejected("API key not valid. Please pass a valid API key.", reason="auth")

    def plain(self, request: Recorded, house: House) -> Json | None:
        if listed := _LIST.match(request.path):
            return _models(listed[1], house)
        found = _ASK.match(request.path)
        assert found is not None
        if request.method != "POST":
            raise Rejected(f"Request method {request.method} is not allowed", status=404, reason="not_found")
        if found[2] == "countTokens":
            body = request.json.get("generateContentRequest") or request.json
            check_body(body, found[1], house)
            return {"totalTokens": prompt_tokens(*_blocks(body))}
        return None

    def check(self, request: Recorded, house: House) -> Turn:
        found = _ASK.match(request.path)
        assert found is not None
        body: Json = request.json
        model = check_body(body, found[1], house)
        blocks = _blocks(body)
        total = prompt_tokens(*blocks)
        if total > model.window:
            raise context_rejection(self.name, total, model.window)
        contents = body["contents"]
        asked = max((at for at, each in enumerate(contents) if _texts(each)), default=0)
        rounds = [each for each in contents[asked + 1 :] if each["role"] == "user"]
        config = an_object(body.get("generationConfig"))
        stream = found[2] == "streamGenerateContent"
        sse = parse_qs(request.query).get("alt") == ["sse"]
        framing: Framing = ("sse" if sse else "array") if stream else "json"
        return Turn(
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
            cached=house.cache.automatic(scope(request, model.id), blocks, total),
            details={"shows": an_object(config.get("thinkingConfig")).get("includeThoughts") is True},
        )

    def events(self, turn: Turn, reply: Reply, usage: Usage, house: House) -> Iterator[Event]:
        id = new_id("")
        if turn.details.get("blocked"):
            yield Event(_blocked(turn, usage, id), "end")
            return
        for part in _parts(turn, reply, whole=False):
            yield Event(_chunk(turn, [part], None, usage, id))
        yield Event(_chunk(turn, [{"text": ""}], _finish(turn, reply), usage, id), "end")

    def whole(self, turn: Turn, reply: Reply, usage: Usage, house: House) -> Json:
        if turn.details.get("blocked"):
            return _blocked(turn, usage, new_id(""))
        parts = list(_parts(turn, reply, whole=True))
        return _chunk(turn, parts, _finish(turn, reply), usage, new_id(""))

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

    def error_event(self, rejected: Rejected, number: int) -> Event:
        return Event(self.error_body(rejected))

    def noise(self) -> list[Event]:
        return [Event({"usageMetadata": {"promptTokenCount": 1}, "neverHeardOf": {"a": 1}})]


def _parts(turn: Turn, reply: Reply, *, whole: bool) -> Iterator[Json]:
    thoughts = reply.thoughts if turn.details.get("shows") else ()
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


def _finish(turn: Turn, reply: Reply) -> str:
    return str(turn.details.get("finish") or _FINISH[reply.stop])


def _chunk(turn: Turn, parts: list[Json], finish: str | None, usage: Usage, id: str) -> Json:
    candidate: Json = {"index": 0}
    if parts:
        candidate = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    return {
        "candidates": [candidate],
        "usageMetadata": _usage(usage),
        "modelVersion": turn.model,
        "responseId": id,
    }


def _blocked(turn: Turn, usage: Usage, id: str) -> Json:
    counted = {"promptTokenCount": usage.input, "totalTokenCount": usage.input}
    feedback = {"blockReason": "PROHIBITED_CONTENT"}
    return {
        "promptFeedback": feedback,
        "usageMetadata": counted,
        "modelVersion": turn.model,
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
    return [body.get("systemInstruction") or {}, body.get("tools") or [], *a_list(body.get("contents"))]


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
        for tool in a_list(body.get("tools"))
        for function in a_list(an_object(tool).get("functionDeclarations"))
    ]


def _models(name: str | None, house: House) -> Json:
    if name is None:
        return {"models": [_model_info(model) for model in house.models]}
    model = house.model(name)
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
