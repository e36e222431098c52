"""Ollama: `/api/chat`, `/api/tags`, `/api/show`, `/api/ps` and `/api/version`, with its few rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .base import Api, Vendor, as_list, as_object, new_id
from .rules import image_bytes, last_prompt, prompt_tokens
from .values import Json, Model, ModelCall, PlannedReply, Recorded, Rejected, SentEvent, Usage

VERSION = "0.13.0"
_TIME = "2026-01-01T00:00:00.000000Z"
_ROLES = ("system", "user", "assistant", "tool")
_PATHS = ("/api/chat", "/api/tags", "/api/show", "/api/version", "/api/ps")


class Ollama(Api):
    name = "ollama"

    def serves(self, method: str, path: str, headers: Mapping[str, str]) -> bool:
        return path in _PATHS

    def headers(self) -> dict[str, str]:
        return {}

    def fixed_response(self, request: Recorded, vendor: Vendor) -> Json | None:
        match request.method, request.path:
            case "GET", "/api/tags":
                return {"models": [_listed(model) for model in vendor.models]}
            case "GET", "/api/ps":
                return {"models": []}
            case "GET", "/api/version":
                return {"version": VERSION}
            case "POST", "/api/show":
                return _show(_check_model(request.json, vendor))
            case "POST", "/api/chat":
                return None
        raise Rejected("405 method not allowed", status=405)

    def check(self, request: Recorded, vendor: Vendor) -> ModelCall:
        body: Json = request.json
        model = _check_model(body, vendor)
        messages = _check_messages(body, model)
        if as_list(body.get("tools")):
            _check_tools(body, model)
        if body.get("think") and not model.thinking:
            raise Rejected(f'"{body["model"]}" does not support thinking')
        options = as_object(body.get("options"))
        window = options.get("num_ctx") or model.window
        asked = last_prompt(messages, lambda message: bool(message.get("images")))
        rounds = [at for at in range(asked + 1, len(messages)) if messages[at].get("tool_calls")]
        last = rounds[-1] if rounds else len(messages)
        total = prompt_tokens(as_list(body.get("tools")), *messages)
        stream = body.get("stream") is not False
        limit = options.get("num_predict")
        return ModelCall(
            model=body["model"],
            body=body,
            prompt=messages[asked].get("content", "") if asked >= 0 else "",
            results=[each["content"] for each in messages[last:] if each["role"] == "tool"],
            rounds=len(rounds),
            stream=stream,
            framing="lines" if stream else "json",
            thinking=bool(body.get("think")),
            tools=[as_object(tool.get("function")).get("name", "") for tool in as_list(body.get("tools"))],
            max_output=limit if isinstance(limit, int) and limit > 0 else None,
            # Ollama silently drops the oldest messages when the window is too small.
            input_tokens=min(total, window),
        )

    def events(
        self, model_call: ModelCall, reply: PlannedReply, usage: Usage, vendor: Vendor
    ) -> Iterator[SentEvent]:
        for piece in reply.thoughts:
            yield SentEvent(_line(model_call, {"content": "", "thinking": piece}))
        for piece in reply.text:
            yield SentEvent(_line(model_call, {"content": piece}))
        for index, call in enumerate(_calls(reply)):
            yield SentEvent(_line(model_call, {"content": "", "tool_calls": [_indexed(call, index)]}))
        yield SentEvent(_line(model_call, {"content": ""}) | _done(reply, usage), "end")

    def complete_body(self, model_call: ModelCall, reply: PlannedReply, usage: Usage, vendor: Vendor) -> Json:
        message: Json = {"content": "".join(reply.text)}
        if reply.thoughts:
            message["thinking"] = "".join(reply.thoughts)
        if reply.calls:
            message["tool_calls"] = [_indexed(call, index) for index, call in enumerate(_calls(reply))]
        return _line(model_call, message) | _done(reply, usage)

    def error_body(self, rejected: Rejected) -> Json:
        if rejected.reason == "model" and rejected.param:
            return {"error": f"model '{rejected.param}' not found"}
        return {"error": rejected.message}

    def error_event(self, rejected: Rejected, number: int) -> SentEvent:
        return SentEvent(self.error_body(rejected))

    def noise(self) -> list[SentEvent]:
        return []


def _check_model(body: Json, vendor: Vendor) -> Model:
    name = body.get("model") or body.get("name")
    if not isinstance(name, str) or not name:
        raise Rejected("model is required")
    model = vendor.model(name)
    if model is None:
        raise Rejected(f"model '{name}' not found", status=404, reason="model", param=name)
    return model


def _check_messages(body: Json, model: Model) -> list[Json]:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise Rejected("messages must be a list of at least one message")
    for at, message in enumerate(messages):
        role = as_object(message).get("role")
        if role not in _ROLES:
            raise Rejected(f'invalid role: "{role}", role must be one of [{", ".join(_ROLES)}]')
        if not isinstance(message.get("content", ""), str):
            raise Rejected(
                "json: cannot unmarshal array into Go struct field ChatRequest.messages.content of type string"
            )
        if role == "tool":
            before = messages[at - 1] if at else {}
            if not (before.get("tool_calls") or before.get("role") == "tool"):
                raise Rejected("a message with role tool must follow the tool calls that it answers")
            if not isinstance(message.get("content"), str):
                raise Rejected("a message with role tool must have content")
        for call in as_list(message.get("tool_calls")):
            _check_call(call)
        for image in as_list(message.get("images")):
            _check_image(image, model)
    return messages


def _check_image(image: Any, model: Model) -> None:
    if not model.images:
        raise Rejected("this model is missing data required for image input", status=500)
    try:
        image_bytes(image if isinstance(image, str) else "-", "")
    except ValueError as error:
        if "base64" in str(error):
            raise Rejected("illegal base64 data at input byte 0") from None
        raise Rejected("Failed to load image or audio file", status=500) from None


def _check_call(call: Any) -> None:
    function = as_object(as_object(call).get("function"))
    if not isinstance(function.get("name"), str) or not function["name"]:
        raise Rejected("a tool call must name its function")
    if not isinstance(function.get("arguments", {}), dict):
        raise Rejected(
            "json: cannot unmarshal string into Go struct field"
            " ToolCallFunction.messages.tool_calls.function.arguments of type api.ToolCallFunctionArguments"
        )


def _check_tools(body: Json, model: Model) -> None:
    if not model.tools:
        raise Rejected(f"registry.ollama.ai/library/{body['model']} does not support tools")
    for tool in body["tools"]:
        function = as_object(as_object(tool).get("function"))
        schema = function.get("parameters")
        if as_object(tool).get("type") != "function" or not function.get("name"):
            raise Rejected("a tool must be a function with a name")
        if schema is not None and as_object(schema).get("type") != "object":
            raise Rejected(
                "json: cannot unmarshal Go struct field ToolFunction.tools.function.parameters: not an object"
            )


def _line(model_call: ModelCall, message: Json) -> Json:
    return {
        "model": model_call.model,
        "created_at": _TIME,
        "message": {"role": "assistant", **message},
        "done": False,
    }


def _done(reply: PlannedReply, usage: Usage) -> Json:
    return {
        "done": True,
        "done_reason": "length" if reply.stop == "length" else "stop",
        "total_duration": 1_000_000_000,
        "load_duration": 1_000_000,
        "prompt_eval_count": usage.input,
        "prompt_eval_duration": 100_000_000,
        "eval_count": usage.output,
        "eval_duration": 800_000_000,
    }


def _calls(reply: PlannedReply) -> list[Json]:
    return [
        {"id": call.id or new_id("call_"), "function": {"name": call.name, "arguments": call.input}}
        for call in reply.calls
    ]


def _indexed(call: Json, index: int) -> Json:
    return {**call, "function": {"index": index, **call["function"]}}


def _details(model: Model) -> Json:
    return {
        "parent_model": "",
        "format": "gguf",
        "family": "fake",
        "families": ["fake"],
        "parameter_size": "1B",
        "quantization_level": "Q4_0",
    }


def _listed(model: Model) -> Json:
    name = f"{model.id}:latest"
    entry = {"name": name, "model": name, "modified_at": _TIME, "size": 1_000_000_000, "digest": "0" * 64}
    return entry | {"details": _details(model)}


def _show(model: Model) -> Json:
    can = {"tools": model.tools, "vision": model.images, "thinking": model.thinking}
    return {
        "modelfile": "FROM fake\n",
        "parameters": "",
        "template": "{{ .Prompt }}",
        "details": _details(model),
        "model_info": {
            "general.architecture": "fake",
            "general.parameter_count": 1_000_000_000,
            "fake.context_length": model.window,
            "fake.embedding_length": 2048,
        },
        "capabilities": ["completion", *(name for name, has in can.items() if has)],
        "modified_at": _TIME,
    }
