"""OpenAI's Responses: `POST /v1/responses`, with items, their events, and stored responses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .base import Api, Vendor, as_list, as_object, cache_scope, new_id
from .openai_common import CREATED, error_fields, texts
from .openai_responses_rules import check_body
from .rules import context_rejection, prompt_tokens
from .signing import seal
from .values import EventKind, Json, ModelCall, PlannedReply, Recorded, Rejected, SentEvent, Usage

_PIECE = 12  # characters of a call's arguments in one delta
_ECHOED = (
    "instructions",
    "max_output_tokens",
    "metadata",
    "previous_response_id",
    "reasoning",
    "temperature",
    "text",
    "top_p",
    "user",
    "prompt_cache_key",
)


class OpenAIResponses(Api):
    name = "openai-responses"

    def serves(self, method: str, path: str, headers: Mapping[str, str]) -> bool:
        return path == "/v1/responses"

    def fixed_response(self, request: Recorded, vendor: Vendor) -> Json | None:
        if request.method != "POST":
            raise Rejected(f"Not allowed to {request.method} on {request.path}", status=405)
        return None

    def check(self, request: Recorded, vendor: Vendor) -> ModelCall:
        body: Json = request.json
        model, items = check_body(body, vendor)
        known = vendor.model(model)
        assert known is not None
        blocks = [body.get("instructions") or "", body.get("tools") or [], *items]
        total = prompt_tokens(*blocks)
        if total > known.window:
            raise context_rejection(self.name, total, known.window)
        if not known.images and any(_has_image(item) for item in items):
            raise Rejected(
                "Invalid content type. input_image is only supported by certain models.", param="input"
            )
        asked = max((at for at, each in enumerate(items) if each.get("role") == "user"), default=-1)
        after = items[asked + 1 :]
        rounds = _rounds(after)
        return ModelCall(
            model=model,
            body=body,
            prompt="\n".join(texts(items[asked].get("content"))) if asked >= 0 else "",
            results=rounds[-1] if rounds else [],
            rounds=len(rounds),
            stream=bool(body.get("stream")),
            framing="sse" if body.get("stream") else "json",
            thinking=known.thinking,
            parallel=body.get("parallel_tool_calls") is not False,
            tools=list(_tool_names(body)),
            max_output=body.get("max_output_tokens"),
            input_tokens=total,
            cached=vendor.cache.automatic(cache_scope(request, model), blocks, total),
            details={"items": items},
        )

    def events(
        self, model_call: ModelCall, reply: PlannedReply, usage: Usage, vendor: Vendor
    ) -> Iterator[SentEvent]:
        numbers = iter(range(10**9))

        def event(type: str, kind: EventKind = "delta", **data: Any) -> SentEvent:
            return SentEvent({"type": type, "sequence_number": next(numbers), **data}, kind, type)

        response = _response(model_call, [], "in_progress", None)
        yield event("response.created", "open", response=response)
        yield event("response.in_progress", "open", response=response)
        items = _items(model_call, reply)
        for index, item in enumerate(items):
            started = {**item, **_started(item)}
            yield event("response.output_item.added", "open", output_index=index, item=started)
            for type, kind, data in _inside(item, reply):
                yield event(type, kind, item_id=item.get("id"), output_index=index, **data)
            last: EventKind = "close" if index == len(items) - 1 else "open"
            yield event("response.output_item.done", last, output_index=index, item=item)
        done = _finished(model_call, reply, usage, items, response["id"])
        _remember(model_call, done, vendor)
        yield event(f"response.{done['status']}", "end", response=done)

    def complete_body(self, model_call: ModelCall, reply: PlannedReply, usage: Usage, vendor: Vendor) -> Json:
        done = _finished(model_call, reply, usage, _items(model_call, reply), new_id("resp_"))
        _remember(model_call, done, vendor)
        return done

    def error_body(self, rejected: Rejected) -> Json:
        return {"error": error_fields(rejected)}

    def error_event(self, rejected: Rejected, number: int) -> SentEvent:
        """Return `error` for an immediate failure, `response.failed` for a later one or one of size."""
        fields = error_fields(rejected)
        code = fields["code"] or "server_error"
        if number == 0 and rejected.reason != "context":
            data = {"code": code, "message": rejected.message, "param": fields["param"]}
            return SentEvent({"type": "error", "sequence_number": number, **data}, "delta", "error")
        failed = _response(ModelCall("fake-1", {}, ""), [], "failed", None)
        failed["error"] = {"code": code, "message": rejected.message}
        return SentEvent(
            {"type": "response.failed", "sequence_number": number, "response": failed},
            "delta",
            "response.failed",
        )

    def noise(self) -> list[SentEvent]:
        data = {"type": "response.never_heard_of", "sequence_number": 0, "what": "a newer server"}
        return [SentEvent(data, "open", "response.never_heard_of")]


def _items(model_call: ModelCall, reply: PlannedReply) -> list[Json]:
    """Return the complete output."""
    items: list[Json] = []
    if reply.thoughts:
        text = "".join(reply.thoughts)
        wanted = as_object(model_call.body.get("reasoning")).get("summary")
        item: Json = {"type": "reasoning", "id": new_id("rs_")}
        item["summary"] = [{"type": "summary_text", "text": text}] if wanted else []
        if "reasoning.encrypted_content" in as_list(model_call.body.get("include")):
            item["encrypted_content"] = seal(text)
        items.append(item)
    if reply.text:
        message: Json = {"type": "message", "id": new_id("msg_"), "role": "assistant", "status": "completed"}
        items.append(message | {"content": [_part(model_call, reply, "".join(reply.text))]})
    for call in reply.calls:
        name = _tool_names(model_call.body).get(call.name, {"name": call.name})
        item = {"type": "function_call", "id": new_id("fc_"), "status": "completed", **name}
        item |= {} if call.id is None else {"call_id": call.id or new_id("call_")}
        items.append(item | {"arguments": call.arguments})
    return items


def _tool_names(body: Json) -> dict[str, Json]:
    """The tools by the names that markers use, and how a call names each: a tool in a namespace has both names."""
    found: dict[str, Json] = {}
    for tool in map(as_object, as_list(body.get("tools"))):
        name = tool.get("name", "")
        if tool.get("type") != "namespace":
            found[name] = {"name": name}
            continue
        for inner in map(as_object, as_list(tool.get("tools"))):
            found[f"{name}__{inner.get('name', '')}"] = {"name": inner.get("name", ""), "namespace": name}
    return found


def _part(model_call: ModelCall, reply: PlannedReply, text: str) -> Json:
    if reply.stop == "refusal" and not model_call.details.get("filtered"):
        return {"type": "refusal", "refusal": text}
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _started(item: Json) -> Json:
    """Return an item as it is announced, without its content."""
    match item["type"]:
        case "reasoning":
            return {"summary": []}
        case "message":
            return {"content": [], "status": "in_progress"}
        case _:
            return {"arguments": "", "status": "in_progress"}


def _inside(item: Json, reply: PlannedReply) -> Iterator[tuple[str, EventKind, Json]]:
    """Return the events between the start and the end of an item."""
    if item["type"] == "reasoning" and item["summary"]:
        at, part = {"summary_index": 0}, item["summary"][0]
        yield "response.reasoning_summary_part.added", "open", {**at, "part": {**part, "text": ""}}
        for piece in reply.thoughts:
            yield "response.reasoning_summary_text.delta", "delta", {**at, "delta": piece}
        yield "response.reasoning_summary_text.done", "close", {**at, "text": part["text"]}
        yield "response.reasoning_summary_part.done", "close", {**at, "part": part}
    elif item["type"] == "message":
        yield from _inside_message(item["content"][0], reply)
    elif item["type"] == "function_call":
        arguments = item["arguments"]
        for start in range(0, len(arguments), _PIECE):
            piece = arguments[start : start + _PIECE]
            yield "response.function_call_arguments.delta", "delta", {"delta": piece}
        done = {"arguments": arguments, "name": item["name"]}
        yield "response.function_call_arguments.done", "close", done


def _inside_message(part: Json, reply: PlannedReply) -> Iterator[tuple[str, EventKind, Json]]:
    member = "refusal" if part["type"] == "refusal" else "text"
    stem = "response.refusal" if part["type"] == "refusal" else "response.output_text"
    at: Json = {"content_index": 0}
    logprobs: Json = {} if member == "refusal" else {"logprobs": []}
    yield "response.content_part.added", "open", {**at, "part": {**part, member: ""}}
    for piece in reply.text:
        yield f"{stem}.delta", "delta", {**at, "delta": piece, **logprobs}
    yield f"{stem}.done", "close", {**at, member: part[member], **logprobs}
    yield "response.content_part.done", "close", {**at, "part": part}


def _finished(model_call: ModelCall, reply: PlannedReply, usage: Usage, items: list[Json], id: str) -> Json:
    reason = "content_filter" if model_call.details.get("filtered") else None
    reason = "max_output_tokens" if reply.stop == "length" else reason
    if reason is not None and items and "status" in items[-1]:
        items[-1] = {**items[-1], "status": "incomplete"}
    response = _response(model_call, items, "incomplete" if reason else "completed", _usage(usage))
    response["id"] = id
    response["incomplete_details"] = {"reason": reason} if reason else None
    return response


def _response(model_call: ModelCall, output: list[Json], status: str, usage: Json | None) -> Json:
    body = model_call.body
    tools = [
        {"strict": True, "parameters": {}, "description": None, **tool} for tool in as_list(body.get("tools"))
    ]
    return {
        "id": new_id("resp_"),
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "background": False,
        "error": None,
        "incomplete_details": None,
        "model": model_call.model,
        "output": output,
        "parallel_tool_calls": model_call.parallel,
        "service_tier": "default",
        "store": body.get("store") is not False,
        "tool_choice": body.get("tool_choice") or "auto",
        "tools": tools,
        "truncation": "disabled",
        "usage": usage,
        **{name: body.get(name) for name in _ECHOED},
    }


def _usage(usage: Usage) -> Json:
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": 0},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.thoughts},
        "total_tokens": usage.input + usage.output,
    }


def _remember(model_call: ModelCall, response: Json, vendor: Vendor) -> None:
    """Remember which items belong to which reasoning; and all of it, when it is to be stored."""
    output = response["output"]
    if output and output[0]["type"] == "reasoning":
        reasoning = output[0]["id"]
        vendor.reasons.update({item["id"]: reasoning for item in output[1:2]})
        if response["store"]:
            vendor.stored_reasoning.add(reasoning)
    if response["store"]:
        vendor.remember(response["id"], [*model_call.details.get("items", []), *output])


def _rounds(items: list[Json]) -> list[list[str]]:
    """Return the outputs of each run of calls since the prompt."""
    rounds: list[list[str]] = []
    before = None
    for item in items:
        if item["type"] == "function_call_output":
            if before != "function_call_output":
                rounds.append([])
            rounds[-1].append("".join(texts(item["output"])))
        before = item["type"]
    return rounds


def _has_image(item: Json) -> bool:
    parts = [*as_list(item.get("content")), *as_list(item.get("output"))]
    return any(as_object(part).get("type") == "input_image" for part in parts)
