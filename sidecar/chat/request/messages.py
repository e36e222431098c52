"""Converts turns to the messages that a provider gets. Never sends a tool call without its result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from ...context.assembly import MESSAGE_TOKENS
from ...engines.results import fence_output, tool_result
from ...model.content import Block, Item, Turn, output_media
from ...providers.base import AssistantMessage, Message, ToolCall, ToolResult, UserMessage
from ...providers.wording import omission_line

MASKED_CHARACTERS = 400
"""A shorter output costs fewer tokens than a reference to it."""


LEFT_OUT = "[the beginning is left out]"
CUT_TOKENS = 24
"""More than what surrounds a text that was cut: its message, and the line that says so."""


def messages_of(turns: Iterable[Turn], secret: str) -> list[Message]:
    """The messages of some turns."""
    return [message for turn in turns for message in turn_messages(turn, {}, secret, masked=False)]


def turn_messages(turn: Turn, texts: Mapping[str, str], secret: str, *, masked: bool) -> list[Message]:
    """The messages of a finished turn: its prompt with the files that came with it, and a line for everything else.

    `texts` has the stored blocks by their blob; `masked` replaces long tool outputs by references; `secret` is the
    chat's, for the fences around them.
    """
    messages: list[Message] = []
    along = prelude(turn, texts)
    for item in turn.items:
        # Before the first message only, and with the same bytes as when it was sent: a prompt cache compares
        # them.
        if item.type == "user" and along:
            messages.append(UserMessage([Block(type="text", text=along), *(item.content or [])]))
            along = ""
        elif (
            item.type == "notice"
            and item.kind == "hook"
            and messages
            and isinstance(messages[-1], UserMessage)
        ):
            # The text that hooks added to a prompt was sent in the prompt's message.
            messages[-1] = UserMessage([*messages[-1].content, *(item.content or [])])
        else:
            messages += _item_messages(item, secret, masked)
    return messages


def prelude(turn: Turn, texts: Mapping[str, str]) -> str:
    """The text before the prompt of a finished turn."""
    parts = [texts.get(kept.ref or "") or kept.stub or "" for kept in turn.context]
    return "\n\n".join(part for part in parts if part)


def plain_text(messages: Iterable[Message]) -> str:
    """All text of some messages, for searching and counting."""
    return "\n".join(text for message in messages for text in _texts(message))


def attachment_text(block: Block) -> str:
    """The text of an attachment as it is sent, with its name; "" for media that the model gets."""
    if block.type in ("image", "audio"):
        return block.text or ""
    return "\n".join(part for part in (block.name, block.uri, block.text) if part)


def shortened_turn(
    turn: Turn, space: int, count: Callable[[str], int], cut: Callable[[str, int], str]
) -> Turn | None:
    """The text of the turn within `space` tokens, without its tool calls. The user's text gets half and what the
    model's text does not need; the model's text gets the rest. None when nothing would remain.
    """
    said = "\n".join(block.text or "" for item in turn.items for block in item.content or [] if block.text)
    answered = "\n".join(item.text or "" for item in turn.items if item.type == "message")
    items: list[Item] = []
    if said:
        whole = count(answered) + CUT_TOKENS if answered else 0
        text = _cut(said, max(space // 2, space - whole) - CUT_TOKENS, count, cut)
        space -= count(text) + MESSAGE_TOKENS
        items.append(_cut_item(turn, "user", text))
    if answered and space > 2 * CUT_TOKENS:
        items.append(_cut_item(turn, "message", _cut(answered, space - CUT_TOKENS, count, cut)))
    return msgspec.structs.replace(turn, items=items, context=[]) if items else None


def _cut(text: str, space: int, count: Callable[[str], int], cut: Callable[[str, int], str]) -> str:
    return text if count(text) <= space else f"{LEFT_OUT}\n{cut(text, space)}"


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
            return [text, *(block.text for block in message.content if block.text)]


def _item_messages(item: Item, secret: str, masked: bool) -> list[Message]:
    if item.type == "user" or (item.type == "notice" and item.kind == "hook"):
        return [UserMessage(item.content or [])]
    if item.type == "message":
        return [AssistantMessage(item.text or "")]
    if item.type == "tool":
        given = item.rewritten.input if item.rewritten else item.input
        call = ToolCall(item.id, item.name or "", given or {})
        return [AssistantMessage("", [call]), _tool_result(item, secret, masked)]
    return []


def _tool_result(item: Item, secret: str, masked: bool) -> ToolResult:
    failed, source, output = item.status != "completed", item.output_source, item.output_text
    if not output:
        return ToolResult(item.id, f"The tool call was {item.status}.", failed, source)
    media = output_media(item)
    if masked and (media or len(output) > MASKED_CHARACTERS):
        output = _masked_output(item.title or item.name or "tool", output, source, media)
        media = []
    denied = item.status == "denied"
    return tool_result(
        secret,
        item.id,
        item.name or "",
        output,
        failed=failed,
        denied=denied,
        source=source,
        content=media,
    )


def mask_result(secret: str, result: ToolResult) -> ToolResult:
    """Replace a result's output by a reference, fenced again when the output was fenced."""
    said = result.said if result.said is not None else result.text
    short = _masked_output("output", said, result.source, result.content)
    if result.said is None:
        return msgspec.structs.replace(result, text=short, content=[])
    return msgspec.structs.replace(result, text=fence_output(secret, short), said=short, content=[])


def _masked_output(title: str, output: str, source: str | None, media: Sequence[Block]) -> str:
    """A reference to a long output, and a line for each of its media."""
    lines = [omission_line(block, "size") for block in media]
    short = masked_text(title, output, source) if len(output) > MASKED_CHARACTERS else output
    return "\n".join([short, *lines])


def masked_text(title: str, output: str, source: str | None = None) -> str:
    """The replacement for a long output that is no longer sent: its first and last words, and where the rest is."""
    first, last = output[:120].strip(), output[-120:].strip()
    hidden = len(output) - len(first) - len(last)
    how = (
        f"search_context or get_output finds them in {source}"
        if source
        else "call the tool again to see them"
    )
    return f"[{title}: {hidden} characters left out; {how}]\n{first}\n…\n{last}"
