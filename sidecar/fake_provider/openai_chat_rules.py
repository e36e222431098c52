"""The rules of OpenAI's Chat Completions: parameters, roles and their order, tool calls and their answers."""

from __future__ import annotations

import json
from typing import Any

from .base import Style, Vendor, as_list, as_object
from .names import names
from .openai_common import (
    check_function,
    check_image_url,
    check_model,
    check_modern,
    check_number,
    check_unknown,
)
from .values import Json, Rejected

PARAMETERS = names(
    "messages model audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens",
    "max_tokens metadata modalities moderation n parallel_tool_calls prediction presence_penalty prompt_cache_key",
    "prompt_cache_options prompt_cache_retention reasoning_effort response_format safety_identifier seed",
    "service_tier stop store stream stream_options temperature tool_choice tools top_logprobs top_p user verbosity",
    "web_search_options",
)
_DIALECTS: dict[Style, frozenset[str]] = {
    "openai": frozenset(),
    "openrouter": names(
        "reasoning include_reasoning provider models transforms route usage plugins top_k min_p top_a",
        "repetition_penalty session_id cache_control",
    ),
    "vllm": names(
        "top_k min_p repetition_penalty chat_template_kwargs guided_json include_reasoning ignore_eos",
    ),
    "deepseek": frozenset({"thinking"}),
}
_MEMBERS = {
    "system": frozenset({"role", "content", "name"}),
    "developer": frozenset({"role", "content", "name"}),
    "user": frozenset({"role", "content", "name"}),
    "assistant": frozenset(
        {"role", "content", "name", "tool_calls", "refusal", "audio", "function_call", "annotations"}
    ),
    "tool": frozenset({"role", "content", "tool_call_id"}),
}
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


def check_body(body: Json, vendor: Vendor) -> str:
    """Check everything but the size. Returns the name of the model."""
    check_unknown(body, PARAMETERS | _DIALECTS[vendor.style])
    model = check_model(body, vendor)
    _check_options(body)
    check_modern(body, vendor)
    _check_tools(body)
    _check_messages(body, vendor)
    return model


def _check_options(body: Json) -> None:
    check_number(body, "temperature", 0, 2)
    check_number(body, "top_p", 0, 1)
    check_number(body, "max_tokens", 1)
    check_number(body, "max_completion_tokens", 1)
    if body.get("stream_options") is not None and not body.get("stream"):
        raise Rejected(
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.", param="stream_options"
        )
    if body.get("max_tokens") is not None and body.get("max_completion_tokens") is not None:
        raise Rejected("Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
    effort = body.get("reasoning_effort")
    if effort is not None and effort not in _EFFORTS:
        raise _bad_value("reasoning_effort", effort, _EFFORTS)


def _check_tools(body: Json) -> None:
    tools = body.get("tools")
    if tools is None:
        for name in ("tool_choice", "parallel_tool_calls"):
            if body.get(name) is not None:
                raise Rejected(
                    f"Invalid value for '{name}': '{name}' is only allowed when 'tools' are specified."
                )
        return
    if not isinstance(tools, list) or not tools:
        raise Rejected(
            "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.",
            reason="value",
            param="tools",
        )
    names = set()
    for at, tool in enumerate(tools):
        if as_object(tool).get("type") not in ("function", "custom"):
            raise _bad_value(f"tools[{at}].type", as_object(tool).get("type"), ("function", "custom"))
        if tool["type"] == "function":
            names.add(check_function(tool.get("function"), f"tools[{at}].function"))
    choice = body.get("tool_choice")
    wanted = as_object(as_object(choice).get("function")).get("name")
    if wanted is not None and wanted not in names:
        raise Rejected(f"Tool choice '{wanted}' not found in 'tools' parameter.", param="tool_choice")
    if choice is not None and not isinstance(choice, dict) and choice not in ("none", "auto", "required"):
        raise _bad_value("tool_choice", choice, ("none", "auto", "required"))


def _check_messages(body: Json, vendor: Vendor) -> None:
    messages = body.get("messages")
    if messages is None:
        raise Rejected("Missing required parameter: 'messages'.", reason="missing", param="messages")
    if not isinstance(messages, list) or not messages:
        raise Rejected(
            "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
            reason="value",
            param="messages",
        )
    open_calls: list[str] = []
    opener, seen = -1, set[str]()
    for at, message in enumerate(messages):
        role = _check_message(message, at, vendor)
        if role == "tool":
            _answer_call(message, at, open_calls, opener, messages)
            continue
        _require_answered(open_calls, opener)
        open_calls = _calls_of(message, at, seen)
        opener = at
    _require_answered(open_calls, opener)


def _check_message(message: Any, at: int, vendor: Vendor) -> str:
    where = f"messages[{at}]"
    if not isinstance(message, dict):
        raise Rejected(f"Invalid type for '{where}': expected an object.", reason="type", param=where)
    role = message.get("role")
    if role not in _MEMBERS:
        raise _bad_value(f"{where}.role", role, (*_MEMBERS,))
    if vendor.style == "openai":
        for name in message.keys() - _MEMBERS[role]:
            raise Rejected(f"Unknown parameter: '{where}.{name}'.", reason="unknown", param=f"{where}.{name}")
    content = message.get("content")
    if content is None:
        if role != "assistant" or not (message.get("tool_calls") or message.get("refusal")):
            raise Rejected(
                f"Invalid value for 'content': expected a string, got null. ({where}.content)",
                reason="type",
                param=f"{where}.content",
            )
    elif isinstance(content, list):
        _check_parts(content, f"{where}.content", role, vendor)
    elif not isinstance(content, str):
        raise Rejected(
            f"Invalid type for '{where}.content': expected one of a string or array of objects.",
            reason="type",
            param=f"{where}.content",
        )
    return str(role)


def _check_parts(parts: list[Any], where: str, role: str, vendor: Vendor) -> None:
    if not parts:
        raise Rejected(
            f"Invalid '{where}': empty array. Expected an array with minimum length 1, but got an empty array instead.",
            reason="value",
            param=where,
        )
    allowed: tuple[str, ...] = ("text", "image_url", "input_audio", "file") if role == "user" else ("text",)
    allowed += ("refusal",) if role == "assistant" else ()
    for index, part in enumerate(parts):
        kind = as_object(part).get("type")
        if kind not in allowed:
            raise _bad_value(f"{where}[{index}].type", kind, allowed)
        if kind == "text" and not isinstance(part.get("text"), str):
            raise Rejected(
                f"Missing required parameter: '{where}[{index}].text'.",
                reason="missing",
                param=f"{where}[{index}].text",
            )
        if kind == "image_url":
            check_image_url(as_object(part.get("image_url")).get("url"), f"{where}[{index}].image_url.url")


def _calls_of(message: Json, at: int, seen: set[str]) -> list[str]:
    """Return the ids of the calls in a message, each of which must be answered next."""
    where, ids = f"messages[{at}].tool_calls", []
    if message.get("tool_calls") is not None and not as_list(message["tool_calls"]):
        raise Rejected(
            f"Invalid '{where}': empty array. Expected an array with minimum length 1, but got an empty array instead.",
            reason="value",
            param=where,
        )
    for index, call in enumerate(as_list(message.get("tool_calls"))):
        function, id = as_object(as_object(call).get("function")), as_object(call).get("id")
        if call.get("type") != "function":
            raise _bad_value(f"{where}[{index}].type", call.get("type"), ("function", "custom"))
        if not isinstance(id, str) or not id:
            raise Rejected(
                f"Missing required parameter: '{where}[{index}].id'.", reason="missing", param=where
            )
        if id in seen:
            raise Rejected(
                f"Duplicate value for 'tool_call_id' of '{id}' in '{where}[{index}]'.", param=where
            )
        if not isinstance(function.get("name"), str) or not function["name"]:
            raise Rejected(
                f"Invalid '{where}[{index}].function.name': empty string.", reason="value", param=where
            )
        _check_arguments(function.get("arguments"), f"{where}[{index}].function.arguments")
        seen.add(id)
        ids.append(id)
    return ids


def _check_arguments(arguments: Any, where: str) -> None:
    if not isinstance(arguments, str):
        raise Rejected(
            f"Invalid type for '{where}': expected a string, but got an object instead.",
            reason="type",
            param=where,
        )
    try:
        json.loads(arguments)
    except ValueError:
        raise Rejected(f"Invalid '{where}': expected a JSON string.", reason="value", param=where) from None


def _answer_call(message: Json, at: int, open_calls: list[str], opener: int, messages: list[Any]) -> None:
    id = message.get("tool_call_id")
    if not isinstance(id, str):
        raise Rejected(
            f"Missing required parameter: 'messages[{at}].tool_call_id'.",
            reason="missing",
            param=f"messages[{at}]",
        )
    if opener < 0 or not messages[opener].get("tool_calls"):
        raise Rejected(
            "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with"
            " 'tool_calls'.",
            param=f"messages.[{at}].role",
        )
    if id not in open_calls:
        raise Rejected(
            f"Invalid parameter: 'tool_call_id' of '{id}' not found in 'tool_calls' of previous message.",
            param=f"messages.[{at}].tool_call_id",
        )
    open_calls.remove(id)


def _require_answered(open_calls: list[str], opener: int) -> None:
    if open_calls:
        raise Rejected(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each"
            f" 'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(open_calls)}",
            param=f"messages.[{opener + 1}].role",
        )


def _bad_value(where: str, value: Any, allowed: tuple[str, ...]) -> Rejected:
    names = ", ".join(f"'{name}'" for name in allowed)
    return Rejected(
        f"Invalid value: '{value}'. Supported values are: {names}. ({where})", reason="value", param=where
    )
