"""Claude Code: `~/.claude/projects/FOLDER/SESSION.jsonl`, one record per line, each with its parent."""

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
from .records import Notes, dict_of, lines, list_of, text_of

TITLE = "Claude Code"
NAME = "claude-code"

_SKIPPED = (
    b'"type":"api-request',
    b'"type":"attachment"',
    b'"type":"file-history-snapshot"',
    b'"type":"progress"',
)
"""Records that repeat what others have: whole requests, rendered attachments, states of files."""

_COMMAND = re.compile(r"<command-name>/?(.*?)</command-name>", re.DOTALL)
_ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
_STDOUT, _STDOUT_END = "<local-command-stdout>", "</local-command-stdout>"

_COMMAND_CHARACTERS = 20_000
"""Within which a command's name and arguments are looked for: a search for pairs takes quadratic time."""


def find(path: str | None) -> Iterator[Found]:
    root = path or os.path.join(home_folder("CLAUDE_CONFIG_DIR", ".claude"), "projects")
    return session_files(root, ".jsonl", _chat_id, _read)


def _chat_id(file: str) -> str:
    """The session; of a subagent its own id too."""
    name = os.path.basename(file).removesuffix(".jsonl")
    folder = os.path.dirname(file)
    if os.path.basename(folder) == "subagents":
        return f"{os.path.basename(os.path.dirname(folder))}:{name}"
    return name


def _read(file: str) -> ForeignChat:
    return _Reader(file).read()


class _Reader:
    def __init__(self, file: str) -> None:
        self._file = file
        self._notes = Notes(file)
        self._made = ChatBuilder(NAME, _chat_id(file), self._notes)
        self._turn_of: dict[str, OpenTurn | None] = {}
        """The turn that each record belongs to, by its id."""
        self._last: OpenTurn | None = None
        self._usage: dict[str, Usage] = {}
        self._by_user = False

    def read(self) -> ForeignChat:
        for number, record in lines(self._file, self._notes, _SKIPPED):
            self._take(number, record)
        return self._made.finish(self._last)

    def _take(self, number: int, record: JsonObject) -> None:
        chat = self._made.chat
        if chat.project is None and os.path.isabs(text_of(record.get("cwd"))):
            chat.project = text_of(record["cwd"])
        uuid = text_of(record.get("uuid"))
        turn = self._parent(record)
        match record.get("type"):
            case "user":
                turn = self._user(number, record, turn)
            case "assistant":
                turn = self._assistant(record, turn)
            case "system" if record.get("subtype") == "local_command" and turn:
                self._made.note(turn, uuid, _at(record), "command", text_of(record.get("content")))
            case "summary" if not self._by_user and text_of(record.get("summary")):
                chat.title, chat.title_by = text_of(record["summary"]), "model"
            case "ai-title" if not self._by_user:
                chat.title = text_of(record.get("aiTitle")) or chat.title
            case "custom-title" if text_of(record.get("customTitle")):
                chat.title, chat.title_by, self._by_user = text_of(record["customTitle"]), "user", True
        if uuid:
            self._turn_of[uuid] = turn
            if record.get("type") in ("user", "assistant") and turn:
                self._last = turn

    def _parent(self, record: JsonObject) -> OpenTurn | None:
        """The turn of the record before; the newest where the file does not have that record."""
        for name in ("parentUuid", "logicalParentUuid"):
            if (uuid := text_of(record.get(name))) in self._turn_of:
                return self._turn_of[uuid]
        return self._last if record.get("parentUuid") or record.get("logicalParentUuid") else None

    def _user(self, number: int, record: JsonObject, parent: OpenTurn | None) -> OpenTurn | None:
        content = dict_of(record.get("message")).get("content")
        key, at = text_of(record.get("uuid")) or f"line:{number}", _at(record)
        if isinstance(content, list) and any(_type(block) == "tool_result" for block in content):
            return self._results(record, content, at) or parent
        if record.get("isCompactSummary"):
            return self._summary(key, at, _plain(content), parent)
        if record.get("isMeta"):
            return parent
        text = _plain(content)
        if text.startswith(_STDOUT):
            if parent:
                shown = text.removeprefix(_STDOUT).strip().removesuffix(_STDOUT_END)
                self._made.note(parent, key, at, "command", shown)
            return parent
        if text.startswith("[Request interrupted"):
            if parent:
                parent.cancelled = True
            return parent
        if command := _COMMAND.search(text[:_COMMAND_CHARACTERS]):
            arguments = _ARGUMENTS.search(text[:_COMMAND_CHARACTERS])
            said = f"/{command[1].strip()} {arguments[1] if arguments else ''}".strip()
            return self._made.prompt(key, at, [text_block(said)], parent)
        blocks = self._blocks(content)
        if not blocks:
            return parent
        origin = text_of(dict_of(record.get("origin")).get("kind"))
        return self._made.prompt(key, at, blocks, parent, origin if origin and origin != "human" else None)

    def _summary(self, key: str, at: int, text: str, parent: OpenTurn | None) -> OpenTurn | None:
        """A compaction's summary; without the turns that it replaces, it is what the chat begins with."""
        if parent is None:
            return self._made.prompt(key, at, [text_block(text)], None, "summary")
        self._made.note(parent, key, at, "compaction", text)
        return parent

    def _results(self, record: JsonObject, content: list[object], at: int) -> OpenTurn | None:
        extra = record.get("toolUseResult")
        turn = self._turn_of.get(text_of(record.get("sourceToolAssistantUUID")))
        for block in map(dict_of, content):
            if _type(block) != "tool_result":
                continue
            key = text_of(block.get("tool_use_id"))
            texts, media = self._output(block.get("content"))
            status: ItemStatus = "failed" if block.get("is_error") else "completed"
            self._made.result(key, at, texts, status=status, media=media)
            if not block.get("is_error") and (edit := _edit(dict_of(extra))):
                self._made.edit(key, edit)
        return turn

    def _assistant(self, record: JsonObject, parent: OpenTurn | None) -> OpenTurn:
        message, at = dict_of(record.get("message")), _at(record)
        uuid = text_of(record.get("uuid"))
        turn = parent or self._made.turn(uuid, at, None)
        model = text_of(message.get("model"))
        if model and model != "<synthetic>":
            turn.model = model
        self._count(turn, message)
        content = message.get("content")
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        for index, block in enumerate(map(dict_of, blocks)):
            key = f"{uuid}:{index}"
            match _type(block):
                case "text":
                    self._made.say(turn, key, at, text_of(block.get("text")))
                case "thinking":
                    self._made.say(turn, key, at, text_of(block.get("thinking")), "thought")
                case "tool_use" | "server_tool_use" | "mcp_tool_use":
                    id = text_of(block.get("id")) or key
                    self._made.call(turn, id, at, text_of(block.get("name")), block.get("input"))
        return turn

    def _count(self, turn: OpenTurn, message: JsonObject) -> None:
        """Add the tokens of a reply, once: each of its blocks is a record that repeats them."""
        usage, id = dict_of(message.get("usage")), text_of(message.get("id"))
        if not usage or not id or id in self._usage:
            return
        cached = _number(usage.get("cache_read_input_tokens"))
        written = _number(usage.get("cache_creation_input_tokens"))
        self._usage[id] = Usage(
            input_tokens=_number(usage.get("input_tokens")) + cached + written,
            output_tokens=_number(usage.get("output_tokens")),
            cached_tokens=cached,
        )
        turn.usage = (turn.usage or Usage()).plus(self._usage[id])

    def _blocks(self, content: object) -> list[Block]:
        if isinstance(content, str):
            return [text_block(content)] if content.strip() else []
        found: list[Block] = []
        for block in map(dict_of, list_of(content)):
            text, source = text_of(block.get("text")), dict_of(block.get("source"))
            if _type(block) == "text" and text.strip() and not text.startswith("<system-reminder>"):
                found.append(text_block(text))
            elif _type(block) in ("image", "document"):
                data, kind = text_of(source.get("data")), text_of(source.get("media_type"))
                name = text_of(block.get("title")) or None
                if source.get("type") == "text":
                    found.append(self._made.document(data, name or "", kind))
                else:
                    found.append(self._made.attach_base64(data, kind, name))
        return found

    def _output(self, content: object) -> tuple[str, list[Block]]:
        if isinstance(content, str):
            return content, []
        blocks = self._blocks(content)
        media = [block for block in blocks if block.type in ("image", "audio")]
        return "\n".join(block.text for block in blocks if block.text is not None), media


def _edit(extra: JsonObject) -> edits.FileEdit | None:
    """The file that a call has changed, from what Claude Code keeps beside its result."""
    path, before = text_of(extra.get("filePath")), extra.get("originalFile")
    if not path or "structuredPatch" not in extra:
        return None
    content = extra.get("content")
    if extra.get("type") == "create" and isinstance(content, str):
        return edits.created(path, content)
    if isinstance(before, str) and isinstance(content, str):
        return edits.replaced(path, before, content)
    if isinstance(before, str) and (after := _after(before, extra)) is not None:
        return edits.replaced(path, before, after)
    return edits.FileEdit(path, diff=_diff(list_of(extra["structuredPatch"])))


def _after(before: str, extra: JsonObject) -> str | None:
    """The text after an edit; None when the parts that are recorded do not lead there."""
    steps = [dict_of(step) for step in list_of(extra.get("edits"))] or [extra]
    text = before
    for step in steps:
        old = text_of(step.get("oldString") or step.get("old_string"))
        new = text_of(step.get("newString") or step.get("new_string"))
        if not old or old not in text:
            return None
        every = step.get("replaceAll") or step.get("replace_all")
        text = text.replace(old, new) if every else text.replace(old, new, 1)
    return text


def _diff(hunks: list[object]) -> str:
    out: list[str] = []
    for hunk in map(dict_of, hunks):
        numbers = [_number(hunk.get(name)) for name in ("oldStart", "oldLines", "newStart", "newLines")]
        out.append("@@ -{},{} +{},{} @@".format(*numbers))
        out += map(text_of, list_of(hunk.get("lines")))
    return "\n".join(out) + "\n" if out else ""


def _type(block: object) -> str:
    return text_of(dict_of(block).get("type"))


def _plain(content: object) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(text_of(dict_of(block).get("text")) for block in list_of(content))


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _at(record: JsonObject) -> int:
    return milliseconds(record.get("timestamp"))
