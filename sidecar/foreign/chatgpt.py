"""ChatGPT: the export that its users can download, a zip with `conversations.json`. Each chat is a tree of messages."""

from __future__ import annotations

from collections.abc import Iterator

from ..model import JsonObject
from ..model.content import Block
from . import exports
from .base import ForeignChat, Found
from .building import ChatBuilder, OpenTurn, milliseconds, text_block
from .exports import Export
from .records import Notes, dict_of, list_of, text_of

TITLE = "ChatGPT"
NAME = "chatgpt"

_SCHEMES = ("file-service://", "sediment://")
_SETTINGS = ("user_editable_context", "model_editable_context")
"""What the user has set for all chats: it is no message."""


def find(path: str | None) -> Iterator[Found]:
    return exports.find(path or "", "conversation_id", "update_time", _read)


def _read(chat: JsonObject, export: Export, notes: Notes) -> ForeignChat:
    return _Reader(chat, export, notes).read()


class _Reader:
    def __init__(self, chat: JsonObject, export: Export, notes: Notes) -> None:
        self._chat = chat
        self._nodes = {key: dict_of(node) for key, node in dict_of(chat.get("mapping")).items()}
        self._export = export
        id = text_of(chat.get("conversation_id")) or text_of(chat.get("id"))
        self._made = ChatBuilder(NAME, id, notes)
        self._ends: dict[str, tuple[OpenTurn | None, int]] = {}
        """The turn of each message, and how many items it had with it."""
        self._waiting: dict[str, str] = {}
        """The newest call of each turn, until its result comes."""

    def read(self) -> ForeignChat:
        made = self._made.chat
        made.title = text_of(self._chat.get("title")) or None
        made.created_at = milliseconds(self._chat.get("create_time"))
        waiting = [
            key for key, node in self._nodes.items() if text_of(node.get("parent")) not in self._nodes
        ][::-1]
        while waiting:
            key = waiting.pop()
            if key in self._ends:
                continue  # a tree that is none
            node = self._nodes[key]
            before, count = self._ends.get(text_of(node.get("parent")), (None, 0))
            turn = self._take(key, dict_of(node.get("message")), before, count)
            self._ends[key] = (turn, len(turn.items) if turn else 0)
            waiting += [
                child for child in map(text_of, list_of(node.get("children"))[::-1]) if child in self._nodes
            ]
        head, _ = self._ends.get(text_of(self._chat.get("current_node")), (None, 0))
        return self._made.finish(head)

    def _take(self, key: str, message: JsonObject, turn: OpenTurn | None, count: int) -> OpenTurn | None:
        author, content = dict_of(message.get("author")), dict_of(message.get("content"))
        details, at = dict_of(message.get("metadata")), milliseconds(message.get("create_time"))
        kind, role = text_of(content.get("content_type")), author.get("role")
        if details.get("is_visually_hidden_from_conversation") or kind in _SETTINGS or role == "system":
            return turn
        if role == "user":
            blocks = self._blocks(content) + self._attached(details)
            return self._made.prompt(key, at, blocks, turn) if blocks else turn
        if role not in ("assistant", "tool"):
            return turn
        if turn is None:
            turn = self._made.turn(key, at, None)
        elif len(turn.items) != count:
            turn = self._made.branch(turn, count, key)  # another answer to the same prompt
        turn.model = text_of(details.get("model_slug")) or turn.model
        if role == "tool":
            self._result(key, text_of(author.get("name")), content, turn, at)
        else:
            self._answer(key, message, content, turn, at)
        return turn

    def _answer(self, key: str, message: JsonObject, content: JsonObject, turn: OpenTurn, at: int) -> None:
        recipient = text_of(message.get("recipient")) or "all"
        if content.get("content_type") == "thoughts":
            for index, thought in enumerate(map(dict_of, list_of(content.get("thoughts")))):
                text = f"{text_of(thought.get('summary'))}\n{text_of(thought.get('content'))}".strip()
                self._made.say(turn, f"{key}:{index}", at, text, "thought")
        elif recipient != "all":
            self._made.call(turn, key, at, recipient, {"input": _text(content)})
            self._waiting[turn.id] = key
        else:
            self._made.say(turn, key, at, _text(content))

    def _result(self, key: str, name: str, content: JsonObject, turn: OpenTurn, at: int) -> None:
        """A tool's message: the result of the call before it, or a call that the export does not have."""
        id = self._waiting.pop(turn.id, None)
        if id is None:
            self._made.call(turn, id := key, at, name or "tool", {})
        blocks = self._blocks(content)
        self._made.result(id, at, "", media=blocks)

    def _blocks(self, content: JsonObject) -> list[Block]:
        found: list[Block] = []
        for part in list_of(content.get("parts")):
            if isinstance(part, str):
                found += [text_block(part)] if part.strip() else []
            elif asset := _asset_of(dict_of(part)):
                found.append(self._asset(*asset))
            elif text := text_of(dict_of(part).get("text")):
                found.append(text_block(text))
        return found or ([text_block(text)] if (text := _text(content)).strip() else [])

    def _attached(self, details: JsonObject) -> list[Block]:
        """Attached files; images and audio are parts of the message."""
        found: list[Block] = []
        for each in map(dict_of, list_of(details.get("attachments"))):
            name, kind = text_of(each.get("name")), text_of(each.get("mime_type"))
            if name and not kind.startswith(("image/", "audio/")):
                file = self._export.attachment(text_of(each.get("id"))) or self._export.attachment(name)
                found.append(self._made.attach(file[1] if file else None, kind, name))
        return found

    def _asset(self, pointer: str, kind: str) -> Block:
        for scheme in _SCHEMES:
            pointer = pointer.removeprefix(scheme)
        found = self._export.attachment(pointer)
        return self._made.attach(found[1] if found else None, kind, found[0] if found else pointer)


def _asset_of(part: JsonObject) -> tuple[str, str] | None:
    """The address and the kind of the image or audio that a part is; what was said aloud has it one level deeper."""
    inner = dict_of(part.get("audio_asset_pointer")) or part
    pointer = text_of(inner.get("asset_pointer"))
    kind = "audio/*" if text_of(inner.get("content_type")).startswith("audio") else "image/*"
    return (pointer, kind) if pointer else None


def _text(content: JsonObject) -> str:
    """The text of a message, whatever its form."""
    if isinstance(content.get("text"), str):
        return text_of(content["text"])
    if isinstance(content.get("result"), str):
        return text_of(content["result"])
    if isinstance(content.get("content"), str):
        return text_of(content["content"])
    return "\n".join(part for part in list_of(content.get("parts")) if isinstance(part, str))
