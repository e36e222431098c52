"""Claude on the web: the export that its users can download, a zip with `conversations.json`."""

from __future__ import annotations

from collections.abc import Iterator

from ..model import JsonObject
from ..model.content import Block, ItemStatus
from . import exports
from .base import ForeignChat, Found
from .building import ChatBuilder, OpenTurn, milliseconds, text_block
from .exports import Export
from .records import Notes, dict_of, list_of, text_of

TITLE = "Claude"
NAME = "claude-ai"

MAX_EXTRACT = 1024 * 1024
"""Characters of an attached document's text."""


def find(path: str | None) -> Iterator[Found]:
    return exports.find(path or "", "uuid", "updated_at", _read)


def _read(chat: JsonObject, export: Export, notes: Notes) -> ForeignChat:
    made = ChatBuilder(NAME, text_of(chat.get("uuid")), notes)
    made.chat.title = text_of(chat.get("name")) or None
    made.chat.created_at = milliseconds(chat.get("created_at"))
    ends: dict[str, tuple[OpenTurn | None, int]] = {}
    last: OpenTurn | None = None
    for index, message in enumerate(map(dict_of, list_of(chat.get("chat_messages")))):
        key, at = text_of(message.get("uuid")) or f"message:{index}", milliseconds(message.get("created_at"))
        before, count = ends.get(
            text_of(message.get("parent_message_uuid")), (last, len(last.items) if last else 0)
        )
        if message.get("sender") == "human":
            last = made.prompt(key, at, _prompt(made, message, export), before)
        else:
            last = _answer(made, key, message, before, count, at)
        ends[key] = (last, len(last.items))
    return made.finish(last)


def _prompt(made: ChatBuilder, message: JsonObject, export: Export) -> list[Block]:
    texts = [text_of(dict_of(part).get("text")) for part in list_of(message.get("content"))]
    text = "\n".join(filter(None, texts)) or text_of(message.get("text"))
    blocks = [text_block(text)] if text.strip() else []
    for each in map(dict_of, list_of(message.get("attachments"))):
        name, extract = text_of(each.get("file_name")), text_of(each.get("extracted_content"))
        if extract:
            blocks.append(made.document(extract[:MAX_EXTRACT], name))
        else:
            blocks.append(_file(made, export, name))
    for each in map(dict_of, list_of(message.get("files"))):
        blocks.append(_file(made, export, text_of(each.get("file_name")), text_of(each.get("file_uuid"))))
    return blocks or [text_block("")]


def _file(made: ChatBuilder, export: Export, *keys: str) -> Block:
    """An attached file, which the export has under its name or its id, or has not."""
    found = next((file for file in map(export.attachment, keys) if file), None)
    return made.attach(found[1] if found else None, "", next(filter(None, keys), "attachment"))


def _answer(
    made: ChatBuilder, key: str, message: JsonObject, before: OpenTurn | None, count: int, at: int
) -> OpenTurn:
    turn = before or made.turn(key, at, None)
    if before and len(before.items) != count:
        turn = made.branch(before, count, key)  # another answer to the same prompt
    parts = [dict_of(part) for part in list_of(message.get("content"))]
    if not parts:
        made.say(turn, key, at, text_of(message.get("text")))
    newest = ""
    for index, part in enumerate(parts):
        id, moment = f"{key}:{index}", milliseconds(part.get("start_timestamp")) or at
        match part.get("type"):
            case "text":
                made.say(turn, id, moment, text_of(part.get("text")))
            case "thinking":
                made.say(turn, id, moment, text_of(part.get("thinking")), "thought")
            case "tool_use":
                newest = text_of(part.get("id")) or id
                made.call(turn, newest, moment, text_of(part.get("name")), part.get("input"))
            case "tool_result":
                status: ItemStatus = "failed" if part.get("is_error") else "completed"
                texts = [text_of(dict_of(each).get("text")) for each in list_of(part.get("content"))]
                result = "\n".join(filter(None, texts)) or text_of(part.get("content"))
                made.result(text_of(part.get("tool_use_id")) or newest, moment, result, status=status)
    return turn
