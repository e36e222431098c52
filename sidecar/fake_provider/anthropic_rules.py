"""The rules of Anthropic's Messages, with its error messages: parameters, roles, blocks, thinking, cache breakpoints.

`anthropic_tools` checks which tool results belong to which tool uses.
"""

from __future__ import annotations

from typing import Any

from .anthropic_tools import check_pairing, check_tool_use_id
from .base import Vendor, as_list, as_object
from .names import names
from .rules import TOOL_NAME, image_bytes
from .signing import unseal
from .values import Json, Model, Rejected

PARAMETERS = names(
    "max_tokens messages model cache_control container diagnostics inference_geo metadata output_config service_tier",
    "speed stop_sequences stream system thinking tool_choice tools",
)
SAMPLING = frozenset({"temperature", "top_p", "top_k"})
"""Parameters that API version 2026-10-21 removed; 2023-06-01 still has them."""
COUNT_PARAMETERS = names(
    "messages model cache_control output_config speed system thinking tool_choice tools",
)
BETA_PARAMETERS = frozenset({"context_management", "mcp_servers", "compaction", "fallbacks", "thread"})
MAX_IMAGE = 5 * 1024 * 1024
MAX_BREAKPOINTS = 4

_MEMBERS = {
    "text": {"type", "text", "cache_control", "citations"},
    "image": {"type", "source", "cache_control", "transformations"},
    "document": {"type", "source", "cache_control", "citations", "context", "title"},
    "tool_use": {"type", "id", "name", "input", "cache_control", "caller", "toolset_name"},
    "tool_result": {"type", "tool_use_id", "content", "is_error", "cache_control", "toolset_name"},
    "thinking": {"type", "thinking", "signature"},
    "redacted_thinking": {"type", "data"},
}
_BY_ROLE = {
    "user": ("text", "image", "document", "tool_result"),
    "assistant": ("text", "tool_use", "thinking", "redacted_thinking"),
    "system": ("text",),
}
_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")


def check_body(body: Json, vendor: Vendor, allowed: frozenset[str]) -> Model:
    """Check everything but the size. Returns the model."""
    for name in body:
        if name not in allowed:
            raise Rejected(f"{name}: Extra inputs are not permitted")
    model = _check_model(body, vendor)
    if "max_tokens" in allowed:
        _check_max_tokens(body, model)
    _check_thinking(body, model)
    _check_system(body)
    _check_tools(body)
    messages = _check_messages(body, model)
    check_pairing(messages)
    _check_thinking_first(body, messages)
    _check_breakpoints(body)
    return model


def check_new_version(body: Json) -> None:
    """Check what API version 2026-10-21 refuses besides the removed parameters."""
    for at, message in enumerate(body["messages"]):
        for index, block in enumerate(as_list(message["content"])):
            if message["role"] == "user" and block.get("citations") and block["type"] == "text":
                raise Rejected(
                    f"messages.{at}.content.{index}.text.citations: Extra inputs are not permitted"
                )


def merged(messages: list[Json]) -> list[Json]:
    """Merge consecutive messages of one role, and convert text to a block."""
    result: list[Json] = []
    for message in messages:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if result and result[-1]["role"] == message["role"]:
            result[-1]["content"] += blocks
        else:
            result.append({"role": message["role"], "content": [*blocks]})
    return result


def _check_model(body: Json, vendor: Vendor) -> Model:
    name = body.get("model")
    if not isinstance(name, str) or not name:
        raise Rejected("model: Field required" if name is None else "model: Input should be a valid string")
    model = vendor.model(name)
    if model is None:
        raise Rejected(f"model: {name}", status=404, reason="model")
    return model


def _check_max_tokens(body: Json, model: Model) -> None:
    limit = body.get("max_tokens")
    if limit is None:
        raise Rejected("max_tokens: Field required")
    if isinstance(limit, bool) or not isinstance(limit, int):
        raise Rejected("max_tokens: Input should be a valid integer")
    if limit < 1:
        raise Rejected("max_tokens: Input should be greater than or equal to 1")
    if limit > model.output:
        raise Rejected(
            f"max_tokens: {limit} > {model.output}, which is the maximum allowed number of output tokens for {model.id}"
        )


def _check_thinking(body: Json, model: Model) -> None:
    thinking = body.get("thinking")
    if thinking is None:
        return
    kind = as_object(thinking).get("type")
    if kind not in ("enabled", "disabled", "adaptive", "between_tools"):
        raise Rejected(
            f"thinking: Input tag '{kind}' found using 'type' does not match any of the expected tags:"
            " 'adaptive', 'between_tools', 'disabled', 'enabled'"
        )
    if kind in ("disabled", "between_tools"):
        return
    if body.get("temperature") not in (None, 1, 1.0):
        raise Rejected("`temperature` may only be set to 1 when thinking is enabled.")
    if kind != "enabled":
        return
    if model.modern:
        raise Rejected(
            '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and'
            ' "output_config.effort" to control thinking behavior.'
        )
    budget = thinking.get("budget_tokens")
    if budget is None:
        raise Rejected("thinking.enabled.budget_tokens: Field required")
    if not isinstance(budget, int) or budget < 1024:
        raise Rejected("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
    if budget >= body.get("max_tokens", budget + 1):
        raise Rejected("`max_tokens` must be greater than `thinking.budget_tokens`.")
    if as_object(body.get("tool_choice")).get("type") in ("any", "tool"):
        raise Rejected("Thinking may not be enabled when tool_choice forces tool use.")


def _check_system(body: Json) -> None:
    system = body.get("system")
    if system is None or isinstance(system, str):
        return
    if not isinstance(system, list):
        raise Rejected("system: Input should be a valid string or list")
    for at, block in enumerate(system):
        if as_object(block).get("type") != "text":
            raise Rejected(f"system.{at}.type: Input should be 'text'")
        _check_block(block, f"system.{at}", ("text",))


def _check_tools(body: Json) -> None:
    names: set[str] = set()
    for at, tool in enumerate(as_list(body.get("tools"))):
        if as_object(tool).get("type", "custom") not in ("custom", None):
            continue  # a server tool: the fake has none, and no rules for them
        name, schema = as_object(tool).get("name"), as_object(tool).get("input_schema")
        if not isinstance(name, str) or not TOOL_NAME.match(name):
            raise Rejected(f"tools.{at}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'")
        if schema is None:
            raise Rejected(f"tools.{at}.custom.input_schema: Field required")
        if not isinstance(schema, dict):
            raise Rejected(f"tools.{at}.custom.input_schema: Input should be a valid dictionary")
        if schema.get("type") != "object":
            said = "Field required" if "type" not in schema else "Input should be 'object'"
            raise Rejected(f"tools.{at}.custom.input_schema.type: {said}")
        if name in names:
            raise Rejected("tools: Tool names must be unique.")
        names.add(name)
    choice = body.get("tool_choice")
    if choice is None:
        return
    if not isinstance(choice, dict) or choice.get("type") not in ("auto", "any", "tool", "none"):
        raise Rejected(
            "tool_choice: Input should be a valid dictionary with a type of 'auto', 'any', 'tool' or 'none'"
        )
    if not names:
        raise Rejected("tool_choice: tool_choice may only be specified while providing tools.")
    if choice["type"] == "tool" and choice.get("name") not in names:
        raise Rejected(f"tool_choice: Tool '{choice.get('name')}' not found in provided tools")


def _check_messages(body: Json, model: Model) -> list[Json]:
    messages = body.get("messages")
    if messages is None:
        raise Rejected("messages: Field required")
    if not isinstance(messages, list):
        raise Rejected("messages: Input should be a valid list")
    if not messages:
        raise Rejected("messages: at least one message is required")
    for at, message in enumerate(messages):
        _check_message(message, at, model, last=at == len(messages) - 1)
    if messages[0]["role"] != "user":
        raise Rejected('messages: first message must use the "user" role')
    together = merged(messages)
    final = together[-1]
    if final["role"] == "assistant" and model.modern:
        raise Rejected(
            "This model does not support assistant message prefill. The conversation must end with a user message."
        )
    if final["role"] == "assistant" and final["content"]:
        text = final["content"][-1].get("text", "")
        if text != text.rstrip():
            raise Rejected("messages: final assistant content cannot end with trailing whitespace")
        if as_object(body.get("thinking")).get("type") == "enabled":
            raise Rejected(
                'messages: Expected the final message to use the "user" role: prefill is not supported with thinking.'
            )
    if not model.images and any(_has_image(block) for each in together for block in each["content"]):
        raise Rejected(f"{model.id} does not support image input")
    return together


def _has_image(block: Json) -> bool:
    return block["type"] == "image" or any(
        as_object(part).get("type") == "image" for part in as_list(block.get("content"))
    )


def _check_message(message: Any, at: int, model: Model, *, last: bool) -> None:
    if not isinstance(message, dict):
        raise Rejected(f"messages.{at}: Input should be a valid dictionary")
    role = message.get("role")
    if role == "system" and not model.modern:
        raise Rejected(
            'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, not "system"'
            " as an input message role."
        )
    if role not in _BY_ROLE:
        raise Rejected(f'messages: Unexpected role "{role}". Allowed roles are "user" or "assistant"')
    for name in message:
        if name not in ("role", "content"):
            raise Rejected(f"messages.{at}.{name}: Extra inputs are not permitted")
    content = message.get("content")
    if content is None:
        raise Rejected(f"messages.{at}.content: Field required")
    if not isinstance(content, (str, list)):
        raise Rejected(f"messages.{at}.content: Input should be a valid list")
    if not content and not (last and role == "assistant"):
        raise Rejected(
            f"messages.{at}: all messages must have non-empty content except for the optional final assistant message"
        )
    if isinstance(content, str):
        if content and not content.strip():
            raise Rejected("messages: text content blocks must contain non-whitespace text")
        return
    for index, block in enumerate(content):
        _check_block(block, f"messages.{at}.content.{index}", _BY_ROLE[role])


def _check_block(block: Any, where: str, allowed: tuple[str, ...]) -> None:
    kind = as_object(block).get("type")
    if kind not in allowed:
        names = ", ".join(f"'{name}'" for name in allowed)
        raise Rejected(
            f"{where}: Input tag '{kind}' found using 'type' does not match any of the expected tags: {names}"
        )
    for name in block:
        if name not in _MEMBERS[kind]:
            raise Rejected(f"{where}.{kind}.{name}: Extra inputs are not permitted")
    if kind == "text":
        _check_text(block, where)
    elif kind == "image":
        _check_image(block.get("source"), f"{where}.image.source")
    elif kind == "tool_use":
        _check_tool_use(block, f"{where}.tool_use")
    elif kind == "tool_result":
        check_tool_use_id(block.get("tool_use_id"), f"{where}.tool_result.tool_use_id")
        for index, part in enumerate(as_list(block.get("content"))):
            _check_block(part, f"{where}.tool_result.content.{index}", ("text", "image", "document"))
            if block.get("is_error") and part["type"] != "text":
                raise Rejected(f'{where}.tool_result: all content must be type "text" if "is_error" is true')
    elif kind == "thinking":
        _check_thought(block, where)


def _check_text(block: Json, where: str) -> None:
    text = block.get("text")
    if not isinstance(text, str):
        raise Rejected(
            f"{where}.text.text: {'Field required' if text is None else 'Input should be a valid string'}"
        )
    if not text:
        if block.get("cache_control"):
            raise Rejected(f"{where}.text: cache_control cannot be set for empty text blocks")
        raise Rejected("messages: text content blocks must be non-empty")
    if not text.strip():
        raise Rejected("messages: text content blocks must contain non-whitespace text")


def _check_image(source: Any, where: str) -> None:
    kind = as_object(source).get("type")
    if kind in ("url", "file"):
        return
    if kind != "base64":
        raise Rejected(
            f"{where}: Input tag '{kind}' does not match any of the expected tags: 'base64', 'file', 'url'"
        )
    media, data = source.get("media_type"), source.get("data")
    if media not in _IMAGES:
        raise Rejected(
            f"{where}.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'"
        )
    if not isinstance(data, str) or not data:
        raise Rejected(f"{where}.base64.data: Field required")
    if len(data) > MAX_IMAGE:
        raise Rejected(f"{where}.base64: image exceeds 5 MB maximum: {len(data)} bytes > {MAX_IMAGE} bytes")
    try:
        image_bytes(data, media)
    except ValueError as error:
        raise Rejected(f"{where}.base64.data: {error}") from None


def _check_tool_use(block: Json, where: str) -> None:
    check_tool_use_id(block.get("id"), f"{where}.id")
    name = block.get("name")
    if not isinstance(name, str) or not name:
        raise Rejected(f"{where}.name: String should have at least 1 character")
    if not isinstance(block.get("input"), dict):
        raise Rejected(f"{where}.input: Input should be a valid dictionary")


def _check_thought(block: Json, where: str) -> None:
    signature, thinking = block.get("signature"), block.get("thinking")
    if not isinstance(thinking, str):
        raise Rejected(f"{where}.thinking.thinking: Field required")
    if not isinstance(signature, str):
        raise Rejected(f"{where}.thinking.signature: Field required")
    signed = unseal(signature)
    if signed is None or thinking not in ("", signed):
        raise Rejected(f"{where}: Invalid `signature` in `thinking` block")


def _check_thinking_first(body: Json, messages: list[Json]) -> None:
    """During a tool loop with thinking on, the message with the call must begin with its thinking."""
    if as_object(body.get("thinking")).get("type") != "enabled" or len(messages) < 2:
        return
    results = [block for block in messages[-1]["content"] if block["type"] == "tool_result"]
    if not results or messages[-2]["role"] != "assistant":
        return
    first = messages[-2]["content"][0]["type"]
    if first not in ("thinking", "redacted_thinking"):
        raise Rejected(
            f"messages.{len(messages) - 2}.content.0.type: Expected `thinking` or `redacted_thinking`, but found"
            f" `{first}`. When `thinking` is enabled, a final `assistant` message must start with a thinking block"
            " (preceeding the lastmost set of `tool_use` and `tool_result` blocks)."
        )


def _check_breakpoints(body: Json) -> None:
    places = [*as_list(body.get("tools")), *as_list(body.get("system"))]
    for message in body["messages"]:
        for block in as_list(message["content"]):
            places += [block, *as_list(block.get("content"))]
    marks = [block["cache_control"] for block in places if block.get("cache_control")]
    marks += [body["cache_control"]] if body.get("cache_control") else []
    for mark in marks:
        if as_object(mark).get("type") != "ephemeral" or mark.get("ttl", "5m") not in ("5m", "1h"):
            raise Rejected("cache_control: Input should be {'type': 'ephemeral', 'ttl': '5m' | '1h'}")
    if len(marks) > MAX_BREAKPOINTS:
        raise Rejected(f"A maximum of 4 blocks with cache_control may be provided. Found {len(marks)}.")
