"""What a model was sent, in the four forms of the APIs, as plain lines that an imported chat can be compared with."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

Line = tuple[str, str]
"""A kind (`user`, `assistant`, `call`, `result`) and its text; of a call the name and its arguments as JSON."""


def lines(request: dict[str, Any]) -> list[Line]:
    """The conversation in a request of any API."""
    body = request.get("json") or {}
    if "contents" in body:
        return list(_gemini(body["contents"]))
    if "input" in body:
        return list(_responses(body["input"]))
    return list(_messages(body.get("messages") or []))


def call(name: str, given: object) -> Line:
    return "call", f"{name} {json.dumps(given, sort_keys=True)}"


def _messages(messages: list[dict[str, Any]]) -> Iterator[Line]:
    """Anthropic's messages, and those of Chat Completions."""
    for message in messages:
        role, content = message.get("role"), message.get("content")
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
        if role == "tool":
            yield "result", "\n".join(part.get("text", "") for part in parts)
            continue
        for part in parts:
            if part.get("type") == "text" and role in ("user", "assistant"):
                yield role, part["text"]
            elif part.get("type") == "tool_use":
                yield call(part["name"], part["input"])
            elif part.get("type") == "tool_result":
                yield "result", _text(part.get("content"))
        for each in message.get("tool_calls") or []:
            yield call(each["function"]["name"], json.loads(each["function"]["arguments"]))


def _responses(items: list[dict[str, Any]]) -> Iterator[Line]:
    for item in items:
        if item.get("type") == "message" and item.get("role") in ("user", "assistant"):
            for part in item.get("content") or []:
                if "text" in part:
                    yield item["role"], part["text"]
        elif item.get("type") == "function_call":
            yield call(item["name"], json.loads(item["arguments"]))
        elif item.get("type") == "function_call_output":
            yield "result", _text(item.get("output"))


def _gemini(contents: list[dict[str, Any]]) -> Iterator[Line]:
    for content in contents:
        for part in content.get("parts") or []:
            if "text" in part and not part.get("thought"):
                yield ("user" if content.get("role") == "user" else "assistant"), part["text"]
            elif "functionCall" in part:
                yield call(part["functionCall"]["name"], part["functionCall"].get("args") or {})
            elif "functionResponse" in part:
                response = part["functionResponse"]["response"]
                yield "result", str(response.get("output", response.get("error", "")))


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content or [])
