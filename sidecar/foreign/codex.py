"""Codex: `~/.codex/sessions/YEAR/MONTH/DAY/rollout-TIME-ID.jsonl`, one record per line, in order."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import msgspec

from ..model import JsonObject
from ..model.content import Block, ItemStatus, Usage
from . import edits
from .base import ForeignChat, Found
from .building import ChatBuilder, OpenTurn, milliseconds, text_block
from .files import home_folder, session_files
from .records import Notes, dict_of, lines, list_of, text_of

TITLE = "Codex"
NAME = "codex"

_ID = re.compile(r"rollout-.*?([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\.jsonl")
_EXIT = re.compile(r"^(?:Exit code:|Process exited with code) (\d+)", re.MULTILINE)

_ADDED = (
    "<environment_context>",
    "<user_instructions>",
    "<permissions",
    "<skills_instructions>",
    "<turn_aborted>",
    "<INSTRUCTIONS>",
    "<user_shell_command>",
    "# AGENTS.md instructions",
)
"""How messages of the user begin that Codex has written."""

_IMAGE_FRAME = re.compile(r"</?image\b[^>]{0,500}>")


def find(path: str | None) -> Iterator[Found]:
    home = home_folder("CODEX_HOME", ".codex")
    roots = [path] if path else [os.path.join(home, "sessions"), os.path.join(home, "archived_sessions")]
    for root in roots:
        if path or os.path.isdir(root) or root.endswith("/sessions"):
            yield from session_files(root, ".jsonl", _chat_id, _read)


def _chat_id(file: str) -> str:
    found = _ID.search(os.path.basename(file))
    return found[1] if found else os.path.basename(file).removesuffix(".jsonl")


def _read(file: str) -> ForeignChat:
    return _Reader(file).read()


class _Reader:
    def __init__(self, file: str) -> None:
        self._file = file
        self._notes = Notes(file)
        self._made = ChatBuilder(NAME, _chat_id(file), self._notes)
        self._turn: OpenTurn | None = None
        self._model = ""

    def read(self) -> ForeignChat:
        for number, record in lines(self._file, self._notes):
            payload, at = dict_of(record.get("payload")), milliseconds(record.get("timestamp"))
            match record.get("type"):
                case "session_meta":
                    self._meta(payload)
                case "turn_context":
                    self._model = text_of(payload.get("model")) or self._model
                case "response_item":
                    self._item(number, payload, at)
                case "event_msg":
                    self._event(number, payload, at)
                case "compacted":
                    self._compacted(number, payload, at)
                case None if "role" in record or record.get("type") == "message":
                    self._item(number, record, at)
        return self._made.finish()

    def _meta(self, payload: JsonObject) -> None:
        chat = self._made.chat
        if os.path.isabs(folder := text_of(payload.get("cwd"))):
            chat.project = chat.project or folder
        chat.created_at = chat.created_at or milliseconds(payload.get("timestamp"))

    def _item(self, number: int, payload: JsonObject, at: int) -> None:
        key = text_of(payload.get("id")) or f"line:{number}"
        match payload.get("type"):
            case "message":
                self._message(key, payload, at)
            case "reasoning":
                parts = list_of(payload.get("summary")) + list_of(payload.get("content"))
                text = "\n\n".join(text_of(dict_of(part).get("text")) for part in parts)
                self._made.say(self._open(key, at), key, at, text, "thought")
            case "function_call" | "custom_tool_call" | "local_shell_call" | "web_search_call":
                self._call(key, payload, at)
            case "function_call_output" | "custom_tool_call_output":
                self._output(payload, at)

    def _message(self, key: str, payload: JsonObject, at: int) -> None:
        parts = list_of(payload.get("content"))
        if payload.get("role") == "assistant":
            text = "".join(text_of(dict_of(part).get("text")) for part in parts)
            self._made.say(self._open(key, at), key, at, text)
        elif payload.get("role") == "user" and (blocks := self._blocks(parts)):
            self._turn = self._made.prompt(key, at, blocks, self._turn)
            self._turn.model = self._model

    def _blocks(self, parts: list[object]) -> list[Block]:
        found: list[Block] = []
        for part in map(dict_of, parts):
            text = text_of(part.get("text"))
            if part.get("type") == "input_image":
                found.append(self._made.attach_data_url(text_of(part.get("image_url"))))
            elif text.strip() and not text.lstrip().startswith(_ADDED) and _IMAGE_FRAME.sub("", text).strip():
                found.append(text_block(text))
        return found

    def _call(self, key: str, payload: JsonObject, at: int) -> None:
        id = text_of(payload.get("call_id")) or key
        name = ".".join(filter(None, (text_of(payload.get("namespace")), text_of(payload.get("name")))))
        given: object = payload.get("arguments", payload.get("input", payload.get("action")))
        if isinstance(given, str) and payload.get("type") == "function_call":
            try:
                given = msgspec.json.decode(given)
            except (msgspec.DecodeError, RecursionError):
                self._notes.add(None, f"the arguments of the call {id[:80]} are no JSON")
        self._made.call(self._open(key, at), id, at, name or text_of(payload.get("type")), given)

    def _output(self, payload: JsonObject, at: int) -> None:
        output, media = payload.get("output"), list[Block]()
        if isinstance(output, dict):
            output = output.get("content") or output.get("output")
        if isinstance(output, list):
            parts = [dict_of(part) for part in output]
            media = [
                self._made.attach_data_url(text_of(part.get("image_url")))
                for part in parts
                if part.get("type") == "input_image"
            ]
            output = "\n".join(filter(None, (text_of(part.get("text")) for part in parts)))
        text = text_of(output)
        found = _EXIT.search(text[:2000])
        code = int(found[1][:9]) if found else None
        status: ItemStatus = "failed" if code or text.startswith("unsupported call") else "completed"
        self._made.result(
            text_of(payload.get("call_id")), at, text, status=status, media=media, exit_code=code
        )

    def _event(self, number: int, payload: JsonObject, at: int) -> None:
        match payload.get("type"):
            case "item_completed":
                item = dict_of(payload.get("item"))
                if item.get("type") == "FileChange" and item.get("status") == "completed":
                    self._changes(text_of(item.get("id")), dict_of(item.get("changes")))
            case "patch_apply_end" if payload.get("success"):
                self._changes(text_of(payload.get("call_id")), dict_of(payload.get("changes")))
            case "turn_aborted" if self._turn:
                self._turn.cancelled = True
            case "thread_name_updated":
                self._made.chat.title = text_of(payload.get("thread_name")) or self._made.chat.title
                self._made.chat.title_by = "user"
            case "token_count" if self._turn:
                self._count(self._turn, dict_of(dict_of(payload.get("info")).get("last_token_usage")))

    def _changes(self, key: str, changes: JsonObject) -> None:
        for path, change in list(changes.items())[:1000]:
            for edit in _edits(path, dict_of(change)):
                self._made.edit(key, edit)

    def _compacted(self, number: int, payload: JsonObject, at: int) -> None:
        """A compaction. The message before it was the summary, which only the program asked for."""
        text = text_of(payload.get("message"))
        if self._turn:
            self._made.drop_repeated(self._turn, text)
            self._made.note(self._turn, f"compacted:{number}", at, "compaction", text)
        elif text:
            self._turn = self._made.prompt(f"compacted:{number}", at, [text_block(text)], None, "summary")

    def _count(self, turn: OpenTurn, usage: JsonObject) -> None:
        given = [usage.get(name) for name in ("input_tokens", "output_tokens", "cached_input_tokens")]
        numbers = [number for number in given if isinstance(number, int)]
        if len(numbers) == len(given) and any(numbers):
            turn.usage = (turn.usage or Usage()).plus(
                Usage(input_tokens=numbers[0], output_tokens=numbers[1], cached_tokens=numbers[2])
            )

    def _open(self, key: str, at: int) -> OpenTurn:
        if self._turn is None:
            self._turn = self._made.turn(key, at, None)
        return self._turn


def _edits(path: str, change: JsonObject) -> Iterator[edits.FileEdit]:
    kind = text_of(change.get("type")) or next(iter(change), "")
    inner = change if "type" in change else dict_of(change.get(kind))
    content = text_of(inner.get("content"))
    if kind == "add":
        yield edits.created(path, content)
    elif kind == "delete":
        yield edits.FileEdit(path, "delete", content, None, known=True)
    elif kind == "update":
        yield edits.FileEdit(path, diff=text_of(inner.get("unified_diff")))
        if moved := text_of(inner.get("move_path")):
            yield edits.FileEdit(moved, "create", diff="")
