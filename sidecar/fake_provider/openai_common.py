"""What Chat Completions and Responses share: errors, the model list, tools, unknown parameters, images."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from .base import Vendor, as_list, as_object
from .rules import TOOL_NAME, image_bytes, strict_schema_fault
from .values import Json, Recorded, Rejected

IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
CREATED = 1_700_000_000  # fixed, so that two lists are equal

_DATA_URL = re.compile(r"^data:([^;,]+);base64,(.*)$", re.DOTALL)
_ERRORS: dict[str, tuple[str, str | None]] = {
    "invalid": ("invalid_request_error", None),
    "value": ("invalid_request_error", "invalid_value"),
    "type": ("invalid_request_error", "invalid_type"),
    "missing": ("invalid_request_error", "missing_required_parameter"),
    "unknown": ("invalid_request_error", "unknown_parameter"),
    "unsupported": ("invalid_request_error", "unsupported_parameter"),
    "unsupported_value": ("invalid_request_error", "unsupported_value"),
    "schema": ("invalid_request_error", "invalid_function_parameters"),
    "image": ("invalid_request_error", "invalid_image_format"),
    "auth": ("invalid_request_error", "invalid_api_key"),
    "billing": ("insufficient_quota", "insufficient_quota"),
    "permission": ("request_forbidden", "unsupported_country_region_territory"),
    "model": ("invalid_request_error", "model_not_found"),
    "not_found": ("invalid_request_error", "not_found"),
    "previous": ("invalid_request_error", "previous_response_not_found"),
    "encrypted": ("invalid_request_error", "invalid_encrypted_content"),
    "timeout": ("timeout", "timeout"),
    "too_large": ("invalid_request_error", "request_too_large"),
    "rate_limit": ("requests", "rate_limit_exceeded"),
    "quota": ("insufficient_quota", "insufficient_quota"),
    "server": ("server_error", None),
    "unavailable": ("server_error", "service_unavailable"),
    "overloaded": ("server_error", "server_is_overloaded"),
    "context": ("invalid_request_error", "context_length_exceeded"),
    "blocked": ("invalid_request_error", "content_policy_violation"),
}


def error_fields(rejected: Rejected) -> Json:
    kind, code = _ERRORS[rejected.reason]
    param = "model" if rejected.reason == "model" else rejected.param
    return {"message": rejected.message, "type": kind, "param": param, "code": code}


def check_unknown(body: Mapping[str, Any], allowed: Iterable[str]) -> None:
    for name in body:
        if name not in allowed:
            raise Rejected(f"Unknown parameter: '{name}'.", reason="unknown", param=name)


def check_model(body: Json, vendor: Vendor) -> str:
    name = body.get("model")
    if not isinstance(name, str) or not name:
        raise Rejected("you must provide a model parameter", reason="missing", param="model")
    if vendor.model(name) is None:
        message = f"The model `{name}` does not exist or you do not have access to it."
        raise Rejected(message, status=404, reason="model", param="model")
    return name


def check_modern(body: Json, vendor: Vendor) -> None:
    """Reasoning models accept one output limit, and only the default temperature."""
    model = vendor.model(body["model"])
    if model is None or not model.modern or vendor.style != "openai":
        return
    if body.get("max_tokens") is not None:
        raise Rejected(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'"
            " instead.",
            reason="unsupported",
            param="max_tokens",
        )
    for name in ("temperature", "top_p"):
        if body.get(name) not in (None, 1, 1.0):
            raise Rejected(
                f"Unsupported value: '{name}' does not support {body[name]} with this model. Only the default (1) value"
                " is supported.",
                reason="unsupported_value",
                param=name,
            )


def check_number(body: Json, name: str, low: float, high: float | None = None) -> None:
    value = body.get(name)
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Rejected(
            f"Invalid type for '{name}': expected a number, but got {_kind(value)} instead.",
            reason="type",
            param=name,
        )
    if value < low or (high is not None and value > high):
        side = f"minimum value {low}" if value < low else f"maximum value {high}"
        raise Rejected(
            f"Invalid value for '{name}': expected a value of {side}, but got {value}.",
            reason="value",
            param=name,
        )


def check_function(function: Any, at: str) -> str:
    """Check the declaration of a function: its name, and a schema that describes an object. Returns the name."""
    function = as_object(function)
    name = function.get("name")
    if name is None:
        raise Rejected(f"Missing required parameter: '{at}.name'.", reason="missing", param=f"{at}.name")
    if not isinstance(name, str) or not TOOL_NAME.match(name):
        raise Rejected(
            f"Invalid '{at}.name': string does not match pattern. Expected a string that matches the pattern"
            " '^[a-zA-Z0-9_-]+$'.",
            reason="value",
            param=f"{at}.name",
        )
    schema = function.get("parameters")
    if schema is not None and (not isinstance(schema, dict) or (schema and schema.get("type") != "object")):
        kind = schema.get("type") if isinstance(schema, dict) else _kind(schema)
        raise Rejected(
            f"Invalid schema for function '{name}': schema must be a JSON Schema of 'type: \"object\"', got 'type:"
            f' "{kind}"\'.',
            reason="schema",
            param=f"{at}.parameters",
        )
    if function.get("strict") is True and (fault := strict_schema_fault(schema)):
        raise Rejected(
            f"Invalid schema for function '{name}': In context=(), {fault}",
            reason="schema",
            param=f"{at}.parameters",
        )
    return name


def check_image_url(url: Any, at: str) -> None:
    """A data URL must contain the image that it declares; other URLs are not checked."""
    if not isinstance(url, str) or not url:
        raise Rejected(f"Missing required parameter: '{at}'.", reason="missing", param=at)
    if not url.startswith("data:"):
        if not url.startswith(("https://", "http://")):
            raise Rejected(
                f"Invalid '{at}'. Expected a valid URL, but got a value with an invalid format.", param=at
            )
        return
    found = _DATA_URL.match(url)
    if found is None or found[1] not in IMAGE_TYPES:
        raise Rejected(
            "You uploaded an unsupported image. Please make sure your image has of one the following formats:"
            " ['png', 'jpeg', 'gif', 'webp'].",
            reason="image",
            param=at,
        )
    try:
        image_bytes(found[2], found[1])
    except ValueError as error:
        raise Rejected(f"Invalid base64 image_url: {error}.", reason="image", param=at) from None


def list_models(request: Recorded, vendor: Vendor) -> Json:
    """Return `GET /v1/models` and `GET /v1/models/{id}`."""
    name = request.path.removeprefix("/v1/models").strip("/")
    if not name:
        return {"object": "list", "data": [_model(each.id, vendor) for each in vendor.models]}
    if vendor.model(name) is None:
        raise Rejected(f"The model '{name}' does not exist", status=404, reason="model", param="model")
    return _model(name, vendor)


def texts(content: Any) -> list[str]:
    """Return the texts of the content of a message, which is text or a list of parts."""
    if isinstance(content, str):
        return [content]
    return [part["text"] for part in as_list(content) if isinstance(as_object(part).get("text"), str)]


def _model(name: str, vendor: Vendor) -> Json:
    model = vendor.model(name)
    assert model is not None, "listed models are known"
    entry: Json = {"id": name, "object": "model", "created": CREATED, "owned_by": "fake"}
    if vendor.style == "vllm":
        entry |= {"root": name, "parent": None, "max_model_len": model.window, "permission": []}
    if vendor.style == "openrouter":
        entry |= {
            "name": f"Fake: {name}",
            "context_length": model.window,
            "architecture": {"input_modalities": ["text", "image"] if model.images else ["text"]},
            "top_provider": {"context_length": model.window, "max_completion_tokens": model.output},
            "supported_parameters": [
                *(["tools", "tool_choice"] if model.tools else []),
                "max_tokens",
                "reasoning",
            ],
            "pricing": {"prompt": "0.000001", "completion": "0.000002"},
        }
    return entry


def _kind(value: Any) -> str:
    return {str: "a string", dict: "an object", list: "an array", bool: "a boolean", type(None): "null"}.get(
        type(value), "a number"
    )
