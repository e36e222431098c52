"""What was said in turns, as the messages that a provider is sent. Never a tool call without its result."""

from __future__ import annotations

from collections.abc import Iterable

from ..model.content import Block, Item, Turn
from ..providers.base import AssistantMessage, Message, ToolCall, ToolResult, UserMessage


def messages_of(turns: Iterable[Turn], prompt: list[Block] | None = None) -> list[Message]:
    """The turns' messages, then the new prompt's."""
    messages = [message for turn in turns for item in turn.items for message in _messages(item)]
    if prompt is not None:
        messages.append(UserMessage(prompt))
    return messages


def _messages(item: Item) -> list[Message]:
    if item.type == "user":
        return [UserMessage(item.content or [])]
    if item.type == "message":
        return [AssistantMessage(item.text or "")]
    if item.type == "tool":
        call = ToolCall(item.id, item.name or "", item.input or {})
        output = (item.output or {}).get("text") or f"The tool call was {item.status}."
        return [AssistantMessage("", [call]), ToolResult(item.id, output, failed=item.status != "completed")]
    return []
