"""Rules that all APIs share: well-formed JSON, names and schemas of tools, images, the size of a prompt.

A rule returns the narrowed value or raises `Rejected`; the caller provides messages that differ per API.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .images import decode, signature
from .values import Json, Rejected

IMAGE_TOKENS = 1_600  # what an image of ordinary size costs with Anthropic; close enough for the others

TOOL_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")


def parse_body(body: bytes) -> Json:
    """Return the JSON object of the request. Invalid UTF-8, NaN and lone surrogates are refused, as by providers."""
    try:
        value = json.loads(body.decode(), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Rejected(
            "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your"
            f" HTTP library correctly: {error})"
        ) from None
    if not isinstance(value, dict):
        raise Rejected("The JSON body of the request must be an object.")
    if b"\\u" in body:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise Rejected(
                "The request body is not valid JSON: no low surrogate in string: a lone surrogate is no character."
            ) from None
    return value


def estimate_tokens(text: str) -> int:
    """Return the usual estimate of tokens: four bytes each."""
    return (len(text.encode()) + 3) // 4


def prompt_tokens(*parts: Any) -> int:
    """Return the tokens of everything that was sent. Base64 counts as an image and not as text."""
    return sum(_tokens(part) for part in parts if part)


def strings(value: Any) -> Iterator[str]:
    """Yield every text in a JSON value, without keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from strings(each)


def image_bytes(data: str, media_type: str) -> bytes:
    """Return the bytes of a base64 image, which must decode and match its type; "" is any type. Raises ValueError
    with the problem.
    """
    try:
        decoded = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("invalid base64 data") from None
    if media_type not in ("", signature(decoded)):
        raise ValueError(f"Image does not match the provided media type {media_type}")
    decode(decoded)
    return decoded


def strict_schema_fault(schema: Any) -> str | None:
    """Return what a schema lacks for OpenAI's `strict`: every object closed, and every property required."""
    if not isinstance(schema, dict):
        return None
    if schema.get("type") == "object":
        if schema.get("additionalProperties") is not False:
            return "'additionalProperties' is required to be supplied and to be false."
        if set(schema.get("required") or ()) != set(schema.get("properties") or ()):
            return (
                "'required' is required to be supplied and to be an array including every key in properties."
            )
    for each in (*(schema.get("properties") or {}).values(), schema.get("items")):
        if fault := strict_schema_fault(each):
            return fault
    return None


def last_prompt(messages: Sequence[Json], has_image: Callable[[Json], bool]) -> int:
    """Return the position of the newest prompt, -1 without one. A user message with images directly after a tool's
    message is none: where tool messages hold text only, it shows what the tool returned.
    """
    for at in range(len(messages) - 1, -1, -1):
        if messages[at]["role"] != "user":
            continue
        if at and messages[at - 1]["role"] == "tool" and has_image(messages[at]):
            continue
        return at
    return -1


def context_rejection(api: str, tokens: int, window: int) -> Rejected:
    """Each provider's message for a prompt that is too long; clients are known to search for them."""
    message = {
        "openai-chat": f"This model's maximum context length is {window} tokens. However, your messages resulted in"
        f" {tokens} tokens. Please reduce the length of the messages.",
        "openai-responses": "Your input exceeds the context window of this model. Please adjust your input and"
        " try again.",
        "anthropic": f"prompt is too long: {tokens} tokens > {window} maximum",
        "gemini": f"The input token count ({tokens}) exceeds the maximum number of tokens allowed ({window}).",
    }.get(api, "the input length exceeds the context length")
    return Rejected(message, reason="context", param="input" if api == "openai-responses" else "messages")


def _tokens(value: Any) -> int:
    if isinstance(value, str):
        return IMAGE_TOKENS if value.startswith("data:image/") else estimate_tokens(value)
    if isinstance(value, dict):
        if value.get("type") == "base64" or "inlineData" in value:
            return IMAGE_TOKENS
        images = len(value["images"]) if isinstance(value.get("images"), list) else 0  # Ollama's bare base64
        rest = ((key, each) for key, each in value.items() if key != "images")
        return sum(estimate_tokens(key) + _tokens(each) for key, each in rest) + images * IMAGE_TOKENS + 1
    if isinstance(value, list):
        return sum(_tokens(each) for each in value) + 1
    return 1


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
