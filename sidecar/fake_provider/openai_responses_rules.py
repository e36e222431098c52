"""The rules of OpenAI's Responses: parameters, input items, calls and their outputs, reasoning and its item."""

from __future__ import annotations

from typing import Any

from .base import Vendor, as_list, as_object
from .names import names
from .openai_common import (
    check_function,
    check_image_url,
    check_model,
    check_modern,
    check_number,
    check_unknown,
)
from .signing import unseal
from .values import Json, Rejected

PARAMETERS = names(
    "access_programs background client_metadata context_management conversation image include input instructions",
    "max_output_tokens max_tool_calls metadata model moderation parallel_tool_calls previous_response_id prompt",
    "prompt_cache_key prompt_cache_options prompt_cache_retention reasoning safety_identifier service_tier store",
    "stream stream_options temperature text tool_choice tools top_logprobs top_p truncation user",
)
INCLUDABLE = (
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
    "reasoning.encrypted_content",
    "message.output_text.logprobs",
)
_ITEMS = ("message", "function_call", "function_call_output", "reasoning", "item_reference")
_PARTS = {"assistant": ("output_text", "refusal"), "user": ("input_text", "input_image", "input_file")}
_ROLES = ("assistant", "system", "developer", "user")
_LEAST_OUTPUT = 16


def check_body(body: Json, vendor: Vendor) -> tuple[str, list[Json]]:
    """Check everything but the size. Returns the name of the model and all input items, those of earlier responses
    first.
    """
    check_unknown(body, PARAMETERS)
    model = check_model(body, vendor)
    _check_options(body)
    check_modern(body, vendor)
    for at, tool in enumerate(as_list(body.get("tools"))):
        if as_object(tool).get("type") == "function":
            check_function(tool, f"tools[{at}]")
        elif as_object(tool).get("type") == "namespace":
            for inner, each in enumerate(as_list(tool.get("tools"))):
                check_function(each, f"tools[{at}].tools[{inner}]")
        elif not isinstance(as_object(tool).get("type"), str):
            raise Rejected(
                f"Missing required parameter: 'tools[{at}].type'.",
                reason="missing",
                param=f"tools[{at}].type",
            )
    given = _check_input(body.get("input"))
    items = [*_earlier(body, vendor), *given]
    _check_pairing(items)
    _check_reasoning(items, vendor)
    return model, items


def _check_options(body: Json) -> None:
    check_number(body, "temperature", 0, 2)
    check_number(body, "top_p", 0, 1)
    limit = body.get("max_output_tokens")
    if limit is not None and (not isinstance(limit, int) or limit < _LEAST_OUTPUT):
        raise Rejected(
            "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got"
            f" {limit} instead.",
            reason="value",
            param="max_output_tokens",
        )
    for name in as_list(body.get("include")):
        if name not in INCLUDABLE:
            names = ", ".join(f"'{each}'" for each in INCLUDABLE)
            raise Rejected(
                f"Invalid value: '{name}'. Supported values are: {names}.", reason="value", param="include"
            )
    if body.get("stream_options") is not None and not body.get("stream"):
        raise Rejected(
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.", param="stream_options"
        )


def _earlier(body: Json, vendor: Vendor) -> list[Json]:
    previous = body.get("previous_response_id")
    if previous is None:
        return []
    items = vendor.responses.get(previous)
    if items is None:
        raise Rejected(
            f"Previous response with id '{previous}' not found.",
            reason="previous",
            param="previous_response_id",
        )
    return items


def _check_input(given: Any) -> list[Json]:
    if given is None:
        raise Rejected("Missing required parameter: 'input'.", reason="missing", param="input")
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    if not isinstance(given, list):
        raise Rejected(
            "Invalid type for 'input': expected one of a string or array.", reason="type", param="input"
        )
    return [_check_item(item, f"input[{at}]") for at, item in enumerate(given)]


def _check_item(item: Any, where: str) -> Json:
    if not isinstance(item, dict):
        raise Rejected(f"Invalid type for '{where}': expected an object.", reason="type", param=where)
    kind = item.get("type", "message" if "role" in item else None)
    if kind not in _ITEMS:
        names = ", ".join(f"'{name}'" for name in _ITEMS)
        raise Rejected(
            f"Invalid value: '{kind}'. Supported values are: {names}.", reason="value", param=where
        )
    if kind == "message":
        _check_message(item, where)
    elif kind == "function_call":
        for name in ("call_id", "name", "arguments"):
            _require_text(item, name, where, empty=name == "arguments")
        if item.get("id") is not None and not str(item["id"]).startswith("fc"):
            raise Rejected(
                f"Invalid '{where}.id': '{item['id']}'. Expected an ID that begins with 'fc'.",
                reason="value",
                param=f"{where}.id",
            )
    elif kind == "function_call_output":
        _require_text(item, "call_id", where)
        if not isinstance(item.get("output"), (str, list)):
            raise Rejected(
                f"Missing required parameter: '{where}.output'.", reason="missing", param=f"{where}.output"
            )
        _check_parts(as_list(item["output"]), f"{where}.output", _PARTS["user"])
    elif kind == "reasoning":
        _require_text(item, "id", where)
        if not isinstance(item.get("summary"), list):
            raise Rejected(
                f"Missing required parameter: '{where}.summary'.", reason="missing", param=f"{where}.summary"
            )
    return {**item, "type": kind}


def _check_message(item: Json, where: str) -> None:
    role, content = item.get("role"), item.get("content")
    if role not in _ROLES:
        names = ", ".join(f"'{name}'" for name in _ROLES)
        raise Rejected(
            f"Invalid value: '{role}'. Supported values are: {names}.", reason="value", param=f"{where}.role"
        )
    if isinstance(content, str):
        return
    if not isinstance(content, list) or not content:
        raise Rejected(
            f"Invalid '{where}.content': expected a string or an array with minimum length 1.",
            reason="value",
            param=f"{where}.content",
        )
    _check_parts(content, f"{where}.content", _PARTS["assistant" if role == "assistant" else "user"])


def _check_parts(parts: list[Any], where: str, allowed: tuple[str, ...]) -> None:
    for at, part in enumerate(parts):
        kind = as_object(part).get("type")
        if kind not in allowed:
            names = ", ".join(f"'{name}'" for name in allowed)
            raise Rejected(
                f"Invalid value: '{kind}'. Supported values are: {names}.",
                reason="value",
                param=f"{where}[{at}]",
            )
        if kind == "input_image" and part.get("file_id") is None:
            check_image_url(part.get("image_url"), f"{where}[{at}].image_url")
        if kind in ("input_text", "output_text"):
            _require_text(part, "text", f"{where}[{at}]", empty=True)


def _require_text(item: Json, name: str, where: str, *, empty: bool = False) -> None:
    value = item.get(name)
    if value is None:
        raise Rejected(
            f"Missing required parameter: '{where}.{name}'.", reason="missing", param=f"{where}.{name}"
        )
    if not isinstance(value, str):
        raise Rejected(
            f"Invalid type for '{where}.{name}': expected a string.", reason="type", param=f"{where}.{name}"
        )
    if not value and not empty:
        raise Rejected(f"Invalid '{where}.{name}': empty string.", reason="value", param=f"{where}.{name}")


def _check_pairing(items: list[Json]) -> None:
    """Every call has one output, somewhere after it; every output has its call."""
    calls: dict[str, bool] = {}
    for item in items:
        id = item.get("call_id", "")
        if item["type"] == "function_call":
            if id in calls:
                raise Rejected(f"Duplicate function call with call_id {id}.", param="input")
            calls[id] = False
        elif item["type"] == "function_call_output":
            if id not in calls:
                raise Rejected(
                    f"No tool call found for function call output with call_id {id}.", param="input"
                )
            if calls[id]:
                raise Rejected(f"Duplicate tool output found for function call {id}.", param="input")
            calls[id] = True
    for id, answered in calls.items():
        if not answered:
            raise Rejected(f"No tool output found for function call {id}.", param="input")


def _check_reasoning(items: list[Json], vendor: Vendor) -> None:
    """Reasoning is sent back complete, and right before what it led to."""
    for at, item in enumerate(items):
        if item["type"] == "reasoning":
            _check_sealed(item, vendor)
            following = items[at + 1] if at + 1 < len(items) else {"type": None}
            is_output = (
                following["type"] in ("function_call", "reasoning") or following.get("role") == "assistant"
            )
            if not is_output:
                raise Rejected(
                    f"Item '{item['id']}' of type 'reasoning' was provided without its required following item.",
                    param="input",
                )
        needed = vendor.reasons.get(item.get("id") or "")
        if needed is not None and needed not in [each.get("id") for each in items[:at]]:
            raise Rejected(
                f"Item '{item['id']}' of type '{item['type']}' was provided without its required 'reasoning' item:"
                f" '{needed}'.",
                param="input",
            )


def _check_sealed(item: Json, vendor: Vendor) -> None:
    sealed = item.get("encrypted_content")
    if sealed is None:
        if item["id"] not in vendor.stored_reasoning:
            raise Rejected(
                f"Item with id '{item['id']}' not found. Items are not persisted when `store` is set to false. Try"
                " again with `store` set to true, or remove this item from your input.",
                status=404,
                param="input",
            )
    elif not isinstance(sealed, str) or unseal(sealed) is None:
        raise Rejected(
            f"The encrypted content {str(sealed)[:4]}... could not be verified. Reason: Encrypted content could not be"
            " decrypted or parsed.",
            reason="encrypted",
        )
