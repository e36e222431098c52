"""GitHub Copilot CLI: `~/.copilot/session-state/SESSION/events.jsonl`, one event per line, in order."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from ..model import JsonObject
from ..model.content import Block, ItemStatus, Usage
from . import edits
from .base import ForeignChat, Found
from .building import ChatBuilder, OpenTurn, milliseconds, text_block
from .files import home_folder, session_files
from .records import Notes, Unreadable, dict_of, lines, list_of, opened, text_of

TITLE = "GitHub Copilot CLI"
NAME = "copilot"

_SKIPPED = (b'"type":"model.', b'"type":"system.message"', b'"type":"session.usage')
_NAMED = re.compile(r"^name: (.+)$", re.MULTILINE)
_MAX_WORKSPACE = 64 * 1024


def find(path: str | None) -> Iterator[Found]:
    root = path or os.path.join(home_folder("COPILOT_HOME", ".copilot"), "session-state")
    return session_files(
        root, ".jsonl", _chat_id, _read, lambda file: os.path.basename(file) == "events.jsonl"
    )


def _chat_id(file: str) -> str:
    return os.path.basename(os.path.dirname(os.path.abspath(file)))


def _read(file: str) -> ForeignChat:
    return _Reader(file).read()


class _Reader:
    def __init__(self, file: str) -> None:
        self._file = file
        self._notes = Notes(file)
        self._made = ChatBuilder(NAME, _chat_id(file), self._notes)
        self._turn: OpenTurn | None = None
        self._assets: dict[str, tuple[str, str]] = {}
        self._inputs: dict[str, tuple[str, JsonObject]] = {}

    def read(self) -> ForeignChat:
        for number, record in lines(self._file, self._notes, _SKIPPED):
            data, at = dict_of(record.get("data")), milliseconds(record.get("timestamp"))
            self._take(text_of(record.get("id")) or f"line:{number}", record.get("type"), data, at)
        if title := _title(os.path.join(os.path.dirname(self._file), "workspace.yaml")):
            self._made.chat.title, self._made.chat.title_by = title, "user"
        return self._made.finish()

    def _take(self, key: str, type: object, data: JsonObject, at: int) -> None:
        chat = self._made.chat
        match type:
            case "session.start" | "session.resume":
                cwd = text_of(dict_of(data.get("context")).get("cwd"))
                chat.project = chat.project or (cwd if os.path.isabs(cwd) else None)
            case "user.message":
                self._turn = self._made.prompt(key, at, self._prompt(data), self._turn)
            case "assistant.message":
                self._answer(key, data, at)
            case "assistant.reasoning":
                self._made.say(self._open(key, at), key, at, text_of(data.get("content")), "thought")
            case "tool.execution_complete":
                self._result(data, at)
            case "session.binary_asset":
                asset = (text_of(data.get("data")), text_of(data.get("mimeType")))
                self._assets[text_of(data.get("assetId"))] = asset
            case "session.compaction_complete" if self._turn:
                self._made.note(self._turn, key, at, "compaction", text_of(data.get("summaryContent")))
            case "session.error" if self._turn:
                self._made.note(self._turn, key, at, "error", text_of(data.get("message")))
            case "abort" if self._turn:
                self._turn.cancelled = True

    def _prompt(self, data: JsonObject) -> list[Block]:
        blocks = [text_block(text_of(data.get("content")))]
        for each in map(dict_of, list_of(data.get("attachments"))):
            name = text_of(each.get("displayName")) or text_of(each.get("path"))
            if each.get("data"):
                blocks.append(
                    self._made.attach_base64(text_of(each["data"]), text_of(each.get("mimeType")), name)
                )
            elif name:
                blocks.append(text_block(f"({name})"))
        return blocks

    def _answer(self, key: str, data: JsonObject, at: int) -> None:
        turn = self._open(key, at)
        turn.model = text_of(data.get("model")) or turn.model
        self._made.say(turn, f"{key}:thought", at, text_of(data.get("reasoningText")), "thought")
        self._made.say(turn, key, at, text_of(data.get("content")))
        if isinstance(tokens := data.get("outputTokens"), int):
            turn.usage = (turn.usage or Usage()).plus(Usage(output_tokens=tokens))
        for index, call in enumerate(map(dict_of, list_of(data.get("toolRequests")))):
            id, name = text_of(call.get("toolCallId")) or f"{key}:{index}", text_of(call.get("name"))
            self._inputs[id] = (name, dict_of(call.get("arguments")))
            self._made.call(turn, id, at, name, call.get("arguments"))

    def _result(self, data: JsonObject, at: int) -> None:
        id, result = text_of(data.get("toolCallId")), dict_of(data.get("result"))
        code = dict_of(data.get("shellExecution")).get("exitCode")
        exit_code = code if isinstance(code, int) else None
        failed = not data.get("success", True) or bool(exit_code)
        status: ItemStatus = "failed" if failed else "completed"
        text = text_of(result.get("content")) or text_of(dict_of(data.get("error")).get("message"))
        media = [
            self._made.attach_base64(*self._assets[asset])
            for each in list_of(result.get("binaryResultsForLlm"))
            if (asset := text_of(dict_of(each).get("assetId"))) in self._assets
        ]
        self._made.result(id, at, text, status=status, media=media, exit_code=exit_code)
        if failed:
            return
        name, given = self._inputs.get(id, ("", {}))
        for edited in map(dict_of, list_of(data.get("fileEdits"))):
            path = text_of(edited.get("path"))
            text_given = given.get("file_text")
            if edited.get("kind") == "create" and isinstance(text_given, str):
                self._made.edit(id, edits.created(path, text_given))
            else:
                self._made.edit(id, edits.FileEdit(path, diff=_hunks(text_of(result.get("detailedContent")))))
        if (
            not data.get("fileEdits")
            and name in ("edit", "create")
            and (edit := edits.from_call(name, given))
        ):
            self._made.edit(id, edit)

    def _open(self, key: str, at: int) -> OpenTurn:
        if self._turn is None:
            self._turn = self._made.turn(key, at, None)
        return self._turn


def _hunks(diff: str) -> str:
    """The diff from its first hunk on: the lines above name absolute paths in git's form."""
    at = diff.find("\n@@ ")
    return diff[at + 1 :] if at >= 0 else diff


def _title(file: str) -> str | None:
    """The name that the user has given the session; the program's own is its first prompt."""
    try:
        with opened(file) as found:
            text = found.read(_MAX_WORKSPACE).decode(errors="replace")
    except (Unreadable, OSError):
        return None
    named = _NAMED.search(text)
    return named[1].strip().strip("'\"") if named and "user_named: true" in text else None
