"""opencode: sessions, messages and their parts, in `~/.local/share/opencode/opencode.db`; earlier versions kept each as
a JSON file in `storage` beside it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from ..model import JsonObject
from ..model.content import Block, ItemStatus, Usage
from . import edits
from .base import MAX_CHAT_BYTES, MAX_LINE_BYTES, ForeignChat, Found, FoundChat, Problem
from .building import ChatBuilder, OpenTurn, milliseconds, text_block
from .database import ForeignDatabase
from .files import mark_of, walk
from .records import Notes, Unreadable, decoded, dict_of, document, list_of, text_of

TITLE = "opencode"
NAME = "opencode"

Message = tuple[str, JsonObject, list[tuple[str, JsonObject]]]
"""A message with its id and its parts."""


def find(path: str | None) -> Iterator[Found]:
    base = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    root = path or os.path.join(base, "opencode")
    if os.path.isfile(root):
        yield from _in_database(root)
        return
    for name in sorted(_names(root)):
        if name.startswith("opencode") and name.endswith(".db"):
            yield from _in_database(os.path.join(root, name))
    storage = root if os.path.basename(root) == "storage" else os.path.join(root, "storage")
    if os.path.isdir(os.path.join(storage, "session")):
        yield from _in_files(storage)
    elif not os.path.isdir(root):
        yield Problem(root, None, "there is no such folder")


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _in_database(file: str) -> Iterator[Found]:
    try:
        database = ForeignDatabase(file)
        known = database.columns("session")
        if not {"id", "directory", "title"} <= known:
            yield Problem(file, None, "it is no database of opencode: it has no sessions")
            return
        query = (
            "SELECT s.id, s.directory, s.title, s.time_created, s.time_updated, count(p.id),"
            " coalesce(sum(length(p.data)), 0), coalesce(max(p.time_updated), 0)"
            " FROM session s LEFT JOIN part p ON p.session_id = s.id GROUP BY s.id"
        )
        for row in database.rows(query):
            yield _found_session(database, file, row)
    except Unreadable as error:
        yield Problem(file, None, str(error))


def _found_session(database: ForeignDatabase, file: str, row: tuple[Any, ...]) -> FoundChat:
    id, directory, title, created, updated, count, size, newest = row
    session = {"id": id, "directory": directory, "title": title, "created": created, "updated": updated}

    def read() -> ForeignChat:
        notes = Notes(file)
        return _chat(session, _stored_messages(database, text_of(id), notes), notes)

    return FoundChat(
        id=text_of(id),
        file=file,
        mark=mark_of(title, updated, count, size, newest),
        size=size if isinstance(size, int) else 0,
        updated_at=max(milliseconds(updated), milliseconds(newest)),
        read=read,
    )


def _stored_messages(database: ForeignDatabase, session: str, notes: Notes) -> Iterator[Message]:
    parts: dict[str, list[tuple[str, JsonObject]]] = {}
    query = "SELECT message_id, id, data FROM part WHERE session_id = ? ORDER BY message_id, id"
    total = 0
    for message, id, data in database.rows(query, (session,)):
        total += len(data) if isinstance(data, str | bytes) else 0
        if total > MAX_CHAT_BYTES:
            notes.add(None, f"the rest is left out: the chat has more than {MAX_CHAT_BYTES} bytes")
            break
        parts.setdefault(message, []).append((id, _decoded(data, f"part {id}", notes)))
    query = "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id"
    for id, data in database.rows(query, (session,)):
        yield id, _decoded(data, f"message {id}", notes), parts.get(id, [])


def _decoded(data: object, what: str, notes: Notes) -> JsonObject:
    raw = data.encode() if isinstance(data, str) else data
    value = decoded(raw, None, notes) if isinstance(raw, bytes) else None
    if not isinstance(value, dict):
        notes.add(None, f"the {what} is no JSON object")
    return dict_of(value)


def _in_files(storage: str) -> Iterator[Found]:
    for file, state in walk(os.path.join(storage, "session"), ".json"):
        if isinstance(state, str):
            yield Problem(file, None, state)
            continue
        id = os.path.basename(file).removesuffix(".json")
        folder = os.path.join(storage, "message", id)
        newest = _mtime(folder)
        yield FoundChat(
            id=id,
            file=file,
            mark=mark_of(state.st_mtime_ns, newest, len(_names(folder))),
            size=state.st_size,
            updated_at=max(state.st_mtime_ns, newest) // 1_000_000,
            read=lambda file=file, id=id: _read_files(storage, file, id),  # type: ignore[misc]
        )


def _mtime(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def _read_files(storage: str, file: str, id: str) -> ForeignChat:
    notes = Notes(file)
    found = dict_of(document(file, notes))
    times = dict_of(found.get("time"))
    session = found | {"id": id, "created": times.get("created"), "updated": times.get("updated")}
    return _chat(session, _filed_messages(storage, id, notes), notes)


def _filed_messages(storage: str, session: str, notes: Notes) -> Iterator[Message]:
    messages = [
        (name.removesuffix(".json"), _read_file(os.path.join(storage, "message", session, name), notes))
        for name in sorted(_names(os.path.join(storage, "message", session)))
        if name.endswith(".json")
    ]
    messages.sort(key=lambda each: (milliseconds(dict_of(each[1].get("time")).get("created")), each[0]))
    for id, message in messages:
        folder = os.path.join(storage, "part", id)
        names = sorted(name for name in _names(folder) if name.endswith(".json"))
        yield (
            id,
            message,
            [(name.removesuffix(".json"), _read_file(os.path.join(folder, name), notes)) for name in names],
        )


def _read_file(file: str, notes: Notes) -> JsonObject:
    own = Notes(file)
    try:
        value = dict_of(document(file, own, MAX_LINE_BYTES))
    except Unreadable as error:
        own.add(None, str(error))
        value = {}
    notes.problems += own.problems
    return value


def _chat(session: JsonObject, messages: Iterator[Message], notes: Notes) -> ForeignChat:
    made = ChatBuilder(NAME, text_of(session.get("id")), notes)
    folder, title = text_of(session.get("directory")), text_of(session.get("title"))
    made.chat.project = folder if os.path.isabs(folder) else None
    made.chat.title = None if title.startswith(("New session - ", "Child session - ")) else title or None
    made.chat.created_at = milliseconds(session.get("created"))
    turn: OpenTurn | None = None
    for id, message, parts in messages:
        at = milliseconds(dict_of(message.get("time")).get("created"))
        if message.get("role") == "user":
            if blocks := _prompt(made, parts):
                turn = made.prompt(id, at, blocks, turn)
        elif message.get("role") == "assistant":
            turn = turn or made.turn(id, at, None)
            _answer(made, turn, message, parts, at)
    return made.finish()


def _prompt(made: ChatBuilder, parts: list[tuple[str, JsonObject]]) -> list[Block]:
    """What the user said and attached; other texts that the program has added are left out."""
    blocks: list[Block] = []
    added = ""
    for _, part in parts:
        text = text_of(part.get("text"))
        if part.get("type") == "file":
            blocks.append(_attached(made, part, added))
            added = ""
        elif part.get("type") == "text" and part.get("synthetic"):
            added = text
        elif part.get("type") == "text" and text.strip():
            blocks.append(text_block(text))
    return blocks


def _attached(made: ChatBuilder, part: JsonObject, added: str) -> Block:
    """An attached file: its bytes, or the text that the program has read of it and put before it."""
    url, name = text_of(part.get("url")), text_of(part.get("filename"))
    if added and not url.startswith("data:"):
        return made.document(added, name, text_of(part.get("mime")))
    return made.attach_data_url(url, name or None)


def _answer(
    made: ChatBuilder, turn: OpenTurn, message: JsonObject, parts: list[tuple[str, JsonObject]], at: int
) -> None:
    turn.model = text_of(message.get("modelID")) or turn.model
    tokens = dict_of(message.get("tokens"))
    sent, said = tokens.get("input"), tokens.get("output")
    cached = dict_of(tokens.get("cache")).get("read")
    if isinstance(sent, int) and isinstance(said, int) and isinstance(cached, int) and (sent or said):
        used = Usage(input_tokens=sent + cached, output_tokens=said, cached_tokens=cached)
        turn.usage = (turn.usage or Usage()).plus(used)
    for id, part in parts:
        text, times = text_of(part.get("text")), dict_of(part.get("time"))
        moment = milliseconds(times.get("start")) or at
        match part.get("type"):
            case "text" if message.get("summary"):
                made.note(turn, id, moment, "compaction", text)
            case "text":
                made.say(turn, id, moment, text)
            case "reasoning":
                made.say(turn, id, moment, text, "thought")
            case "tool":
                _call(made, turn, id, part, at)
    if dict_of(message.get("error")).get("name") == "MessageAbortedError":
        turn.cancelled = True


def _call(made: ChatBuilder, turn: OpenTurn, id: str, part: JsonObject, at: int) -> None:
    state = dict_of(part.get("state"))
    times, shown = dict_of(state.get("time")), dict_of(state.get("metadata"))
    name, given = text_of(part.get("tool")), dict_of(state.get("input"))
    made.call(turn, id, milliseconds(times.get("start")) or at, name, given)
    if state.get("status") not in ("completed", "error"):
        return
    code = shown.get("exit")
    exit_code = code if isinstance(code, int) else None
    failed = state["status"] == "error" or bool(exit_code)
    status: ItemStatus = "failed" if failed else "completed"
    media = [
        made.attach_data_url(
            text_of(dict_of(each).get("url")), text_of(dict_of(each).get("filename")) or None
        )
        for each in list_of(state.get("attachments"))
    ]
    text = text_of(state.get("output")) or text_of(state.get("error"))
    made.result(id, milliseconds(times.get("end")), text, status=status, media=media, exit_code=exit_code)
    if not failed and (edit := _edit(name, given, shown)):
        made.edit(id, edit)


def _edit(name: str, given: JsonObject, shown: JsonObject) -> edits.FileEdit | None:
    path, changed = text_of(given.get("filePath")), dict_of(shown.get("filediff"))
    before, after = changed.get("before"), changed.get("after")
    content = given.get("content")
    if name == "write" and shown.get("exists") is False and isinstance(content, str):
        return edits.created(path, content)
    if isinstance(before, str) and isinstance(after, str):
        return edits.replaced(path, before, after)
    if text_of(shown.get("diff")):
        return edits.FileEdit(path, diff=text_of(shown["diff"]))
    return edits.from_call(name, given) if name in ("edit", "write") else None
