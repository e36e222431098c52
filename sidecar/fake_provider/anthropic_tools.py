"""Anthropic's rule of tool uses: each is answered once, in the very next message, before anything else in it."""

from __future__ import annotations

import re
from typing import Any

from .values import Json, Rejected

_ID = re.compile(r"^[a-zA-Z0-9_-]+$")


def check_tool_use_id(id: Any, where: str) -> None:
    if not isinstance(id, str):
        raise Rejected(f"{where}: Field required")
    if not _ID.match(id):
        raise Rejected(f"{where}: String should match pattern '^[a-zA-Z0-9_-]+$'")


def check_pairing(messages: list[Json]) -> None:
    """Check the rule in messages of alternating roles whose contents are blocks."""
    used: set[str] = set()
    for at, message in enumerate(messages):
        before = _ids(messages[at - 1], "tool_use", "id") if at and message["role"] == "user" else []
        results = _ids(message, "tool_result", "tool_use_id")
        for index, id in enumerate(results):
            if id not in before:
                raise Rejected(
                    f"messages.{at}.content.{index}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each"
                    " `tool_result` block must have a corresponding `tool_use` block in the previous message."
                )
            if id in results[:index]:
                raise Rejected(
                    f"messages.{at}.content.{index}: each tool_use must have a single result. Found multiple"
                    f" `tool_result` blocks with id: {id}"
                )
        uses = _ids(message, "tool_use", "id")
        for id in uses:
            if id in used or uses.count(id) > 1:
                raise Rejected(f"messages.{at}.content: `tool_use` ids must be unique")
            used.add(id)
        _check_answered(uses, messages[at + 1] if at + 1 < len(messages) else None, at)


def _check_answered(uses: list[str], following: Json | None, at: int) -> None:
    """Only results before any other block count: that is what `immediately after` means."""
    leading: list[str] = []
    for block in following["content"] if following else []:
        if block["type"] != "tool_result":
            break
        leading.append(block["tool_use_id"])
    missing = [id for id in uses if id not in leading]
    if missing:
        raise Rejected(
            f"messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after:"
            f" {', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the next"
            " message."
        )


def _ids(message: Json, kind: str, member: str) -> list[str]:
    return [block[member] for block in message["content"] if block["type"] == kind]
