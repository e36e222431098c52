"""What was said in turns, as the messages that a provider is sent. Never a tool call without its result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from ..context.assembly import MESSAGE_TOKENS
from ..model.content import Block, Item, Turn
from ..providers.base import AssistantMessage, Message, ToolCall, ToolResult, UserMessage

MASKED_CHARACTERS = 400
"""A shorter output costs less than the words that would stand for it."""


LEFT_OUT = "[the beginning is left out]"
CUT_TOKENS = 24
"""More than what stands around a text that was cut: its message, and the line that says so."""


def messages_of(turns: Iterable[Turn], prompt: list[Block] | None = None) -> list[Message]:
    """The turns' messages, then the new prompt's."""
    messages = [message for turn in turns for message in as_sent(turn, {}, masked=False)]
    if prompt is not None:
        messages.append(UserMessage(prompt))
    return messages


def as_sent(turn: Turn, texts: Mapping[str, str], *, masked: bool) -> list[Message]:
    """A turn that is over: its prompt with the files that entered with it, and a line for all else that was sent.

    `texts` has the blocks that stay, by their blob; `masked` lets references stand for long tool outputs.
    """
    messages: list[Message] = []
    along = prelude(turn, texts)
    for item in turn.items:
        if item.type == "user" and along:
            messages.append(UserMessage([Block(type="text", text=along), *(item.content or [])]))
            along = ""
        elif (
            item.type == "notice"
            and item.kind == "hook"
            and messages
            and isinstance(messages[-1], UserMessage)
        ):
            # What hooks added to a prompt was sent in one message with it.
            messages[-1] = UserMessage([*messages[-1].content, *(item.content or [])])
        else:
            messages += _messages(item, masked)
    return messages


def prelude(turn: Turn, texts: Mapping[str, str]) -> str:
    """What stands before the prompt of a turn that is over."""
    parts = [texts.get(kept.ref or "") or kept.stub or "" for kept in turn.context]
    return "\n\n".join(part for part in parts if part)


def plain(messages: Iterable[Message]) -> str:
    """All text of some messages, for looking things up in it and for counting."""
    return "\n".join(text for message in messages for text in _texts(message))


def attachment_text(block: Block) -> str:
    """The text of an attachment as it is sent, its name with it; "" for media."""
    if block.type in ("image", "audio"):
        return ""
    return "\n".join(part for part in (block.name, block.uri, block.text) if part)


def shortened(
    turn: Turn, room: int, count: Callable[[str], int], cut: Callable[[str, int], str]
) -> Turn | None:
    """The turn's own words within so many tokens: the user's get half and what the model's do not need, the model's the
    rest. Its tools are left out. None when nothing of it would be left.
    """
    said = "\n".join(block.text or "" for item in turn.items for block in item.content or [] if block.text)
    answered = "\n".join(item.text or "" for item in turn.items if item.type == "message")
    items: list[Item] = []
    if said:
        whole = count(answered) + CUT_TOKENS if answered else 0
        text = _cut(said, max(room // 2, room - whole) - CUT_TOKENS, count, cut)
        room -= count(text) + MESSAGE_TOKENS
        items.append(_cut_item(turn, "user", text))
    if answered and room > 2 * CUT_TOKENS:
        items.append(_cut_item(turn, "message", _cut(answered, room - CUT_TOKENS, count, cut)))
    return msgspec.structs.replace(turn, items=items, context=[]) if items else None


def _cut(text: str, room: int, count: Callable[[str], int], cut: Callable[[str, int], str]) -> str:
    return text if count(text) <= room else f"{LEFT_OUT}\n{cut(text, room)}"


def _cut_item(turn: Turn, type: str, text: str) -> Item:
    return Item(
        id=f"cut-{type}-{turn.id}",
        turn_id=turn.id,
        type=type,
        status="completed",
        started_at=turn.started_at,
        text=text,
        content=[Block(type="text", text=text)] if type == "user" else None,
    )


def _texts(message: Message) -> list[str]:
    match message:
        case UserMessage():
            return [text for block in message.content for text in (block.text, block.uri) if text]
        case AssistantMessage(text, calls):
            spelled = [f"{call.name} {msgspec.json.encode(call.input).decode()}" for call in calls]
            return [*([text] if text else []), *spelled]
        case ToolResult(_, text):
            return [text]


def _messages(item: Item, masked: bool) -> list[Message]:
    if item.type == "user" or (item.type == "notice" and item.kind == "hook"):
        return [UserMessage(item.content or [])]
    if item.type == "message":
        return [AssistantMessage(item.text or "")]
    if item.type == "tool":
        given = item.rewritten["input"] if item.rewritten else item.input
        call = ToolCall(item.id, item.name or "", given or {})
        output = (item.output or {}).get("text") or f"The tool call was {item.status}."
        failed, source = item.status != "completed", (item.output or {}).get("source")
        if masked and len(output) > MASKED_CHARACTERS:
            output = mask(item.title or item.name or "tool", output, source)
        return [AssistantMessage("", [call]), ToolResult(item.id, output, failed, source)]
    return []


def mask(title: str, output: str, source: str | None = None) -> str:
    """What stands for a long output that is no longer sent: its first and last words, and where the rest is."""
    first, last = output[:120].strip(), output[-120:].strip()
    hidden = len(output) - len(first) - len(last)
    how = (
        f"search_context or get_output finds them in {source}"
        if source
        else "call the tool again to see them"
    )
    return f"[{title}: {hidden} characters left out; {how}]\n{first}\n…\n{last}"
