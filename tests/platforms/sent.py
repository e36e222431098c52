"""What a model was sent, in the four forms of the APIs, as plain lines that an imported chat can be compared with."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

Line = tuple[str, str]
"""A kind (`user`, `assistant`, `call`, `result`) and its text; of a call the name and its arguments as JSON."""

_Sent = tuple[str, str, str]
"""A line and the id of its call, empty where there is none."""


def lines(request: dict[str, Any]) -> list[Line]:
    """The conversation in a request of any API; of calls that were made at once each before its result."""
    body = request.get("json") or {}
    if "contents" in body:
        return list(_paired(_gemini(body["contents"])))
    if "input" in body:
        return list(_paired(_responses(body["input"])))
    return list(_paired(_messages(body.get("messages") or [])))


def _paired(sent: Iterator[_Sent]) -> Iterator[Line]:
    calls: list[_Sent] = []
    results: list[_Sent] = []
    for line in (*sent, ("end", "", "")):
        if line[0] == "call" and not results:
            calls.append(line)
        elif line[0] == "result":
            results.append(line)
        else:
            yield from _exchanges(calls, results)
            calls, results = ([line] if line[0] == "call" else []), []
            if line[0] not in ("call", "end"):
                yield line[:2]


def _exchanges(calls: list[_Sent], results: list[_Sent]) -> Iterator[Line]:
    left = list(results)
    for kind, text, id in calls:
        yield kind, text
        found = next((each for each in left if each[2] == id), None)
        if found:
            left.remove(found)
            yield found[:2]
    yield from (each[:2] for each in left)


def call(name: str, given: object) -> Line:
    return "call", f"{name} {json.dumps(given, sort_keys=True)}"


def _call(name: str, given: object, id: object) -> _Sent:
    return *call(name, given), str(id or "")


def _messages(messages: list[dict[str, Any]]) -> Iterator[_Sent]:
    """Anthropic's messages, and those of Chat Completions."""
    for message in messages:
        role, content = message.get("role"), message.get("content")
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
        if role == "tool":
            yield "result", "\n".join(part.get("text", "") for part in parts), message["tool_call_id"]
            continue
        for part in parts:
            if part.get("type") == "text" and role in ("user", "assistant"):
                yield role, part["text"], ""
            elif part.get("type") == "tool_use":
                yield _call(part["name"], part["input"], part["id"])
            elif part.get("type") == "tool_result":
                yield "result", _text(part.get("content")), part["tool_use_id"]
        for each in message.get("tool_calls") or []:
            yield _call(each["function"]["name"], json.loads(each["function"]["arguments"]), each["id"])


def _responses(items: list[dict[str, Any]]) -> Iterator[_Sent]:
    for item in items:
        if item.get("type") == "message" and item.get("role") in ("user", "assistant"):
            for part in item.get("content") or []:
                if "text" in part:
                    yield item["role"], part["text"], ""
        elif item.get("type") == "function_call":
            yield _call(item["name"], json.loads(item["arguments"]), item["call_id"])
        elif item.get("type") == "function_call_output":
            yield "result", _text(item.get("output")), item["call_id"]


def _gemini(contents: list[dict[str, Any]]) -> Iterator[_Sent]:
    for content in contents:
        for part in content.get("parts") or []:
            if "text" in part and not part.get("thought"):
                yield ("user" if content.get("role") == "user" else "assistant"), part["text"], ""
            elif "functionCall" in part:
                made = part["functionCall"]
                yield _call(made["name"], made.get("args") or {}, made.get("id"))
            elif "functionResponse" in part:
                given = part["functionResponse"]
                response = given["response"]
                yield "result", str(response.get("output", response.get("error", ""))), given.get("id") or ""


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content or [])
