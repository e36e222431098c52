"""Qwen Code: `~/.qwen/projects/FOLDER/chats/SESSION.jsonl`, one record per line, each with its parent."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ..model import JsonObject
from ..model.content import ItemStatus, Usage
from .base import ForeignChat, Found
from .building import ChatBuilder, OpenTurn, milliseconds
from .files import session_files
from .gemini_cli import content_blocks, edit_of, response_text
from .records import Notes, dict_of, lines, list_of, text_of

TITLE = "Qwen Code"
NAME = "qwen-code"

_SKIPPED = (b'"subtype":"ui_telemetry"', b'"subtype":"attribution_snapshot"')


def find(path: str | None) -> Iterator[Found]:
    root = path or os.path.join(os.path.expanduser("~"), ".qwen", "projects")
    return session_files(root, ".jsonl", _chat_id, _read, lambda file: path == file or "chats" in file)


def _chat_id(file: str) -> str:
    return os.path.basename(file).removesuffix(".jsonl")


def _read(file: str) -> ForeignChat:
    return _Reader(file).read()


class _Reader:
    def __init__(self, file: str) -> None:
        self._file = file
        self._notes = Notes(file)
        self._made = ChatBuilder(NAME, _chat_id(file), self._notes)
        self._turn_of: dict[str, OpenTurn | None] = {}
        self._last: OpenTurn | None = None
        self._inputs: dict[str, tuple[str, JsonObject]] = {}

    def read(self) -> ForeignChat:
        for number, record in lines(self._file, self._notes):
            if os.path.isabs(text_of(record.get("cwd"))):
                self._made.chat.project = self._made.chat.project or text_of(record["cwd"])
            key = text_of(record.get("uuid")) or f"line:{number}"
            turn = self._turn_of.get(text_of(record.get("parentUuid")), self._last)
            turn = self._take(key, record, turn, milliseconds(record.get("timestamp")))
            self._turn_of[key] = turn
            if record.get("type") in ("user", "assistant", "tool_result") and turn:
                self._last = turn
        return self._made.finish(self._last)

    def _take(self, key: str, record: JsonObject, turn: OpenTurn | None, at: int) -> OpenTurn | None:
        parts = list_of(dict_of(record.get("message")).get("parts"))
        payload = dict_of(record.get("systemPayload"))
        match record.get("type"):
            case "user":
                blocks = content_blocks(self._made, parts)
                return self._made.prompt(key, at, blocks, turn) if blocks else turn
            case "assistant":
                turn = turn or self._made.turn(key, at, None)
                self._answer(key, record, parts, turn, at)
            case "tool_result":
                self._result(record, parts, at)
            case "system" if record.get("subtype") == "chat_compression" and turn:
                first = dict_of(next(iter(list_of(payload.get("compressedHistory"))), {}))
                text = "\n".join(text_of(dict_of(part).get("text")) for part in list_of(first.get("parts")))
                self._made.note(turn, key, at, "compaction", text)
            case "system" if record.get("subtype") == "custom_title":
                self._made.chat.title = text_of(payload.get("customTitle")) or self._made.chat.title
                self._made.chat.title_by = "user"
        return turn

    def _answer(self, key: str, record: JsonObject, parts: list[object], turn: OpenTurn, at: int) -> None:
        turn.model = text_of(record.get("model")) or turn.model
        used = dict_of(record.get("usageMetadata"))
        taken, given = used.get("promptTokenCount"), used.get("candidatesTokenCount")
        if isinstance(taken, int) and isinstance(given, int):
            turn.usage = (turn.usage or Usage()).plus(Usage(input_tokens=taken, output_tokens=given))
        for index, part in enumerate(map(dict_of, parts)):
            call, text = dict_of(part.get("functionCall")), text_of(part.get("text"))
            if call:
                id, name = text_of(call.get("id")) or f"{key}:{index}", text_of(call.get("name"))
                self._inputs[id] = (name, dict_of(call.get("args")))
                self._made.call(turn, id, at, name, call.get("args"))
            else:
                self._made.say(
                    turn, f"{key}:{index}", at, text, "thought" if part.get("thought") else "message"
                )

    def _result(self, record: JsonObject, parts: list[object], at: int) -> None:
        shown = dict_of(record.get("toolCallResult"))
        first = dict_of(dict_of(next(iter(parts), {})).get("functionResponse"))
        id = text_of(first.get("id")) or text_of(shown.get("callId"))
        status: ItemStatus = "completed"
        if shown.get("status") == "error":
            status = "failed"
        elif shown.get("status") == "cancelled":
            status = "cancelled"
        media = [
            self._made.attach_base64(text_of(inline.get("data")), text_of(inline.get("mimeType")))
            for inline in (dict_of(dict_of(part).get("inlineData")) for part in parts)
            if inline
        ]
        display = dict_of(shown.get("resultDisplay"))
        code = display.get("exitCode")
        exit_code = code if isinstance(code, int) else None
        self._made.result(id, at, response_text(parts), status=status, media=media, exit_code=exit_code)
        name, given = self._inputs.get(id, ("", {}))
        if status == "completed" and (edit := edit_of(name, given, display)):
            self._made.edit(id, edit)
