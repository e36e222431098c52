"""OpenAI's Chat Completions: `POST /v1/chat/completions` and the model list. The rules are in `openai_chat_rules`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .base import Api, Vendor, as_list, as_object, cache_scope, new_id
from .openai_chat_rules import check_body
from .openai_common import CREATED, error_fields, list_models, texts
from .rules import context_rejection, last_prompt, prompt_tokens
from .values import Json, ModelCall, PlannedReply, Recorded, Rejected, SentCall, SentEvent, Usage

_PIECE = 12  # characters of a tool call's arguments in one delta
_FINISH = {"end": "stop", "length": "length", "tools": "tool_calls", "refusal": "stop"}


class OpenAIChat(Api):
    name = "openai-chat"

    def serves(self, method: str, path: str, headers: Mapping[str, str]) -> bool:
        return path == "/v1/chat/completions" or (
            method == "GET" and path.split("/")[1:3] == ["v1", "models"]
        )

    def fixed_response(self, request: Recorded, vendor: Vendor) -> Json | None:
        if request.method == "GET" and request.path != "/v1/chat/completions":
            return list_models(request, vendor)
        if request.method != "POST":
            raise Rejected(f"Not allowed to {request.method} on {request.path}", status=405)
        return None

    def check(self, request: Recorded, vendor: Vendor) -> ModelCall:
        body: Json = request.json
        model = check_body(body, vendor)
        known = vendor.model(model)
        assert known is not None
        messages: list[Json] = body["messages"]
        blocks = [body.get("tools") or [], *messages]
        total = prompt_tokens(*blocks)
        if total > known.window:
            raise context_rejection(self.name, total, known.window)
        if not known.images and any(_has_image(message) for message in messages):
            raise Rejected(
                "Invalid content type. image_url is only supported by certain models.", param="messages"
            )
        asked = last_prompt(messages, _has_image)
        rounds = [at for at in range(asked + 1, len(messages)) if messages[at].get("tool_calls")]
        last = rounds[-1] if rounds else len(messages)
        return ModelCall(
            model=model,
            body=body,
            prompt="\n".join(texts(messages[asked].get("content"))) if asked >= 0 else "",
            results=[
                "".join(texts(each.get("content"))) for each in messages[last:] if each["role"] == "tool"
            ],
            rounds=len(rounds),
            stream=bool(body.get("stream")),
            framing="sse" if body.get("stream") else "json",
            thinking=known.thinking,
            parallel=body.get("parallel_tool_calls") is not False,
            tools=[
                as_object(as_object(tool).get("function")).get("name", "")
                for tool in as_list(body.get("tools"))
            ],
            max_output=body.get("max_completion_tokens") or body.get("max_tokens"),
            input_tokens=total,
            cached=vendor.cache.automatic(cache_scope(request, model), blocks, total),
        )

    def events(
        self, model_call: ModelCall, reply: PlannedReply, usage: Usage, vendor: Vendor
    ) -> Iterator[SentEvent]:
        wants_usage = bool(as_object(model_call.body.get("stream_options")).get("include_usage"))
        base: Json = {
            "id": new_id("chatcmpl-"),
            "object": "chat.completion.chunk",
            "created": CREATED,
            "model": model_call.model,
            "service_tier": "default",
            "system_fingerprint": "fp_fake",
        }

        def chunk(delta: Json, finish: str | None = None) -> Json:
            choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
            return {**base, "choices": [choice], **({"usage": None} if wants_usage else {})}

        yield SentEvent(
            chunk({"role": "assistant", "content": "" if reply.text else None, "refusal": None}), "open"
        )
        for delta in _deltas(reply, model_call, vendor):
            yield SentEvent(chunk(delta))
        yield SentEvent(chunk({}, _finish(model_call, reply)), "end")
        if wants_usage:
            yield SentEvent({**base, "choices": [], "usage": _usage(usage)}, "end")
        yield SentEvent("[DONE]", "end")

    def complete_body(self, model_call: ModelCall, reply: PlannedReply, usage: Usage, vendor: Vendor) -> Json:
        text = "".join(reply.text)
        refused = reply.stop == "refusal" and not model_call.details.get("filtered")
        message: Json = {"role": "assistant", "content": None if refused else text or None, "annotations": []}
        message["refusal"] = text if refused else None
        if not text and not reply.calls:
            message["content"] = ""
        if reply.thoughts and (name := _thought_field(vendor)):
            message[name] = "".join(reply.thoughts)
        if reply.calls:
            message["tool_calls"] = [_call(call) for call in reply.calls]
        return {
            "id": new_id("chatcmpl-"),
            "object": "chat.completion",
            "created": CREATED,
            "model": model_call.model,
            "choices": [
                {
                    "index": 0,
                    "message": message,
                    "logprobs": None,
                    "finish_reason": _finish(model_call, reply),
                }
            ],
            "usage": _usage(usage),
            "service_tier": "default",
            "system_fingerprint": "fp_fake",
        }

    def error_body(self, rejected: Rejected) -> Json:
        return {"error": error_fields(rejected)}

    def error_event(self, rejected: Rejected, number: int) -> SentEvent:
        return SentEvent(self.error_body(rejected))

    def noise(self) -> list[SentEvent]:
        # Azure's first chunk has no choices; a client that assumes choices[0] fails there.
        return [
            SentEvent(
                {
                    "id": "",
                    "object": "",
                    "created": 0,
                    "model": "",
                    "choices": [],
                    "prompt_filter_results": [],
                }
            )
        ]


def _deltas(reply: PlannedReply, model_call: ModelCall, vendor: Vendor) -> Iterator[Json]:
    if name := _thought_field(vendor):
        for piece in reply.thoughts:
            yield {name: piece}
    refused = reply.stop == "refusal" and not model_call.details.get("filtered")
    for piece in reply.text:
        yield {"refusal" if refused else "content": piece}
    for index, call in enumerate(reply.calls):
        first: Json = {"index": index, **_call(call, arguments="")}
        yield {"tool_calls": [first]}
        for at in range(0, len(call.arguments), _PIECE):
            piece = call.arguments[at : at + _PIECE]
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _call(call: SentCall, arguments: str | None = None) -> Json:
    function = {"name": call.name, "arguments": call.arguments if arguments is None else arguments}
    id = {} if call.id is None else {"id": call.id or new_id("call_")}
    return {**id, "type": "function", "function": function}


def _thought_field(vendor: Vendor) -> str | None:
    """OpenAI sends no thoughts here; compatible servers do, under different names."""
    return {"openrouter": "reasoning", "vllm": "reasoning_content", "deepseek": "reasoning_content"}.get(
        vendor.style
    )


def _finish(model_call: ModelCall, reply: PlannedReply) -> str:
    return "content_filter" if model_call.details.get("filtered") else _FINISH[reply.stop]


def _usage(usage: Usage) -> Json:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": usage.thoughts,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def _has_image(message: Any) -> bool:
    return any(as_object(part).get("type") == "image_url" for part in as_list(message.get("content")))
