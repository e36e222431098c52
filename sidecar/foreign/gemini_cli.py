"""Gemini CLI: `~/.gemini/tmp/PROJECT/chats/session-*.jsonl`, a log of changes to one list of messages; earlier
versions kept the list as one JSON document.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from ..model import JsonObject
from ..model.content import Block, ItemStatus, Usage
from . import edits
from .base import ForeignChat, Found
from .building import ChatBuilder, OpenTurn, milliseconds, text_block
from .files import session_files
from .records import Notes, Unreadable, dict_of, document, lines, list_of, opened, text_of

TITLE = "Gemini CLI"
NAME = "gemini-cli"

_ADDED = ("<session_context>", "--- Content from referenced files", "--- End of content", "Content from ")
"""How texts begin that Gemini CLI adds to a prompt."""

_STATUS: dict[str, ItemStatus] = {"success": "completed", "error": "failed", "cancelled": "cancelled"}

_MAX_ROOT = 4096


def find(path: str | None) -> Iterator[Found]:
    home = os.environ.get("GEMINI_CLI_HOME") or os.path.expanduser("~")
    root = path or os.path.join(home, ".gemini", "tmp")
    for suffix in (".jsonl", ".json"):
        if path is None or not os.path.isfile(path) or path.endswith(suffix):
            yield from session_files(root, suffix, _chat_id, _read, _is_session)


def _is_session(file: str) -> bool:
    return os.path.basename(file).startswith("session-")


def _chat_id(file: str) -> str:
    """The name of the file, with that of the project's folder: the ids in names are cut off."""
    folder = os.path.basename(os.path.dirname(os.path.dirname(file)))
    return f"{folder}/{os.path.splitext(os.path.basename(file))[0].removeprefix('session-')}"


def _read(file: str) -> ForeignChat:
    return _Reader(file).read()


def _records(file: str, notes: Notes) -> Iterator[tuple[int, JsonObject]]:
    if file.endswith(".jsonl"):
        yield from lines(file, notes)
    elif isinstance(whole := document(file, notes), dict):
        yield 1, {"$set": whole}


def _apply(messages: dict[str, JsonObject], number: int, record: JsonObject) -> None:
    """Apply one change: a message that is new or changed, a list of all, or a way back."""
    if "$rewindTo" in record:
        ids = list(messages)
        target = text_of(record["$rewindTo"])
        for id in ids[ids.index(target) :] if target in messages else ():
            del messages[id]
    listed = list_of(dict_of(record.get("$set")).get("messages"))
    for index, message in enumerate(map(dict_of, listed)):
        # A session that is resumed lists what it sends: what is known has more than that, such as its times.
        messages.setdefault(text_of(message.get("id")) or f"{number}:{index}", message)
    if record.get("type") and "content" in record:
        messages[text_of(record.get("id")) or str(number)] = record


class _Reader:
    def __init__(self, file: str) -> None:
        self._file = file
        self._notes = Notes(file)
        self._made = ChatBuilder(NAME, _chat_id(file), self._notes)
        self._turn: OpenTurn | None = None
        self._ended: set[str] = set()

    def read(self) -> ForeignChat:
        self._made.chat.project = _project(self._file)
        messages: dict[str, JsonObject] = {}
        for number, record in _records(self._file, self._notes):
            _apply(messages, number, record)
        for key, message in messages.items():
            self._take(key, message, milliseconds(message.get("timestamp")))
        return self._made.finish()

    def _take(self, key: str, message: JsonObject, at: int) -> None:
        parts = list_of(message.get("content"))
        blocks = content_blocks(self._made, message.get("content"))
        match message.get("type"):
            case "user" if any("functionResponse" in dict_of(part) for part in parts):
                self._responses(parts, at)
            case "user" if blocks and (blocks[0].text or "").startswith("<state_snapshot>"):
                if self._turn:
                    self._made.note(self._turn, key, at, "compaction", blocks[0].text or "")
            case "user" if blocks:
                self._turn = self._made.prompt(key, at, blocks, self._turn)
            case "gemini":
                self._turn = self._turn or self._made.turn(key, at, None)
                self._answer(key, message, self._turn, at)
            case "info" | "error" | "warning" if self._turn:
                text = "".join(block.text or "" for block in blocks)
                self._made.note(self._turn, key, at, text_of(message.get("type")), text)

    def _answer(self, key: str, message: JsonObject, turn: OpenTurn, at: int) -> None:
        turn.model = text_of(message.get("model")) or turn.model
        parts = [dict_of(part) for part in list_of(message.get("content"))]
        listed = map(dict_of, list_of(message.get("thoughts")))
        thoughts = [
            f"{text_of(one.get('subject'))} {text_of(one.get('description'))}".strip() for one in listed
        ]
        thoughts += [text_of(part.get("text")) for part in parts if part.get("thought")]
        self._made.say(turn, f"{key}:thoughts", at, " ".join(thoughts), "thought")
        said = content_blocks(self._made, message.get("content"))
        self._made.say(turn, key, at, "".join(block.text or "" for block in said))
        tokens = dict_of(message.get("tokens"))
        taken, given = tokens.get("input"), tokens.get("output")
        if isinstance(taken, int) and isinstance(given, int):
            used = Usage(input_tokens=taken, output_tokens=given)
            turn.usage = (turn.usage or Usage()).plus(used)
        for index, call in enumerate(map(dict_of, list_of(message.get("toolCalls")))):
            self._call(text_of(call.get("id")) or f"{key}:{index}", call, turn, at)
        for index, call in enumerate(dict_of(part.get("functionCall")) for part in parts):
            if call:
                id = text_of(call.get("id")) or f"{key}:{index}"
                self._made.call(turn, id, at, text_of(call.get("name")), call.get("args"))

    def _call(self, key: str, call: JsonObject, turn: OpenTurn, at: int) -> None:
        name, given = text_of(call.get("name")), dict_of(call.get("args"))
        self._made.call(turn, key, at, name, given)
        status = _STATUS.get(text_of(call.get("status")))
        if status is None:
            return
        done = milliseconds(call.get("timestamp")) or at
        self._made.result(key, done, response_text(call.get("result")), status=status)
        self._ended.add(key)
        if status == "completed" and (edit := edit_of(name, given, dict_of(call.get("resultDisplay")))):
            self._made.edit(key, edit)

    def _responses(self, parts: list[object], at: int) -> None:
        """The results of calls as they are sent; those that are known have more than that."""
        for part in map(dict_of, parts):
            response = dict_of(part.get("functionResponse"))
            key = text_of(response.get("id"))
            if response and self._made.has_call(key) and key not in self._ended:
                failed = "error" in dict_of(response.get("response"))
                status: ItemStatus = "failed" if failed else "completed"
                self._made.result(key, at, response_text([part]), status=status)
                self._ended.add(key)


def content_blocks(made: ChatBuilder, content: object) -> list[Block]:
    """The blocks of a message; results of tools and what the program added are left out."""
    if isinstance(content, str):
        content = [{"text": content}]
    found: list[Block] = []
    for part in map(dict_of, list_of(content)):
        text, inline = text_of(part.get("text")), dict_of(part.get("inlineData"))
        if inline:
            found.append(made.attach_base64(text_of(inline.get("data")), text_of(inline.get("mimeType"))))
        elif text.strip() and not text.lstrip().startswith(_ADDED) and not part.get("thought"):
            found.append(text_block(text))
    return found


def response_text(results: object) -> str:
    """The text of a tool's result."""
    texts: list[str] = []
    for part in map(dict_of, list_of(results)):
        response = dict_of(dict_of(part.get("functionResponse")).get("response"))
        shown = response.get("output", response.get("error", part.get("text")))
        texts.append(text_of(shown) or (str(shown) if shown is not None else ""))
    return "\n".join(filter(None, texts))


def edit_of(name: str, given: JsonObject, shown: JsonObject) -> edits.FileEdit | None:
    """The changed file, from what the program shows of it."""
    path = text_of(given.get("file_path")) or text_of(shown.get("filePath")) or text_of(shown.get("fileName"))
    before, after = shown.get("originalContent"), shown.get("newContent")
    if not path or "fileDiff" not in shown:
        return edits.from_call(name, given) if name in ("replace", "write_file", "edit") else None
    if isinstance(after, str) and (dict_of(shown.get("diffStat")) or before is not None):
        is_new = shown.get("isNewFile") is True or not before
        return edits.created(path, after) if is_new else edits.replaced(path, text_of(before), after)
    return edits.FileEdit(path, diff=text_of(shown.get("fileDiff")))


def _project(file: str) -> str | None:
    """The project, which a file beside the chats names."""
    root = os.path.join(os.path.dirname(os.path.dirname(file)), ".project_root")
    try:
        with opened(root) as found:
            path = found.read(_MAX_ROOT).decode().strip()
    except (Unreadable, OSError, UnicodeDecodeError):
        return None
    return path if os.path.isabs(path) else None
