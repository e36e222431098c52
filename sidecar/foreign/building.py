"""Builds a chat from the records of another program: turns with their items, in ids that stay the same at each reading.

An id here is derived from the id there, so a chat that has grown adds only what is new.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import mimetypes
import os
import re
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import msgspec

from ..media import MAX_AUDIO_BYTES, MAX_IMAGE_BYTES, BadMedia, MediaKind, inspect
from ..model import JsonObject
from ..model.content import Block, Item, ItemStatus, Turn, Usage
from ..model.files import Patch
from ..model.limits import MAX_TEXT_BYTES, is_too_long
from ..workspace.ledger import make_patch
from .base import MAX_TURN_ITEMS, Attachment, ForeignChat
from .edits import FileEdit, change_of
from .records import Notes, text_of

MAX_INPUT_BYTES = 1024 * 1024
"""Of a call's arguments; what a model writes in one call is far smaller."""

MAX_COPIED = 10_000
"""Items that the branches of one chat repeat."""

MAX_LABEL = 160
"""Characters of a call's title."""

_MAX_TS = 2**53
_NOT_NAME = re.compile(r"[^A-Za-z0-9_-]")

_KINDS = (
    ("edit", ("edit", "write", "replace", "patch", "create", "insert", "notebookedit")),
    ("execute", ("bash", "shell", "exec", "command", "terminal", "run_code", "python")),
    ("fetch", ("fetch", "web_search", "websearch", "browser")),
    ("search", ("grep", "glob", "search", "find", "list", "ls")),
    ("read", ("read", "view", "cat", "open_file")),
    ("think", ("think", "plan", "todo")),
)


class OpenTurn:
    """A turn that is being built."""

    def __init__(self, builder: ChatBuilder, id: str, at: int, parent: OpenTurn | None) -> None:
        self._builder = builder
        self.id = id
        self.parent = parent
        self.started_at = self.ended_at = at
        self.items: list[Item] = []
        self.model = ""
        self.usage: Usage | None = None
        self.cancelled = False
        self.error: str | None = None

    def add(self, key: str, type: str, at: int, **fields: Any) -> None:
        """Add an item whose id is derived from `key`."""
        self.started_at = self.started_at or at
        self.ended_at = max(self.ended_at, at)
        item_at = at or self.ended_at
        item = Item(
            id=self._builder.item_id(key),
            turn_id=self.id,
            type=type,
            started_at=item_at,
            ended_at=item_at,
            **{"status": "completed", **fields},
        )
        self.items.append(item)


class ChatBuilder:
    """The chat that is being built. `at` are milliseconds since 1970 throughout, 0 where unknown."""

    def __init__(self, platform: str, id: str, notes: Notes) -> None:
        self.notes = notes
        self.platform = platform
        self.chat = ForeignChat(id=id)
        self._turns: list[OpenTurn] = []
        self._calls: dict[str, tuple[OpenTurn, int]] = {}
        self._seen: set[str] = set()
        self._edits: list[tuple[str, FileEdit]] = []
        self._copied = 0

    def prompt(
        self, key: str, at: int, content: list[Block], parent: OpenTurn | None, name: str | None = None
    ) -> OpenTurn:
        """Begin a turn with what the user said."""
        turn = self.turn(key, at, parent)
        fitting = [self._fitting_block(block) for block in content]
        text = "\n".join(block.text or "" for block in fitting if block.type == "text")
        turn.add(key, "user", at, content=fitting, text=text, name=name)
        return turn

    def turn(self, key: str, at: int, parent: OpenTurn | None) -> OpenTurn:
        """Begin a turn without a prompt."""
        turn = OpenTurn(self, f"t-{self._digest('turn', key)}", at or self._last_at(), parent)
        self._turns.append(turn)
        return turn

    def say(self, turn: OpenTurn, key: str, at: int, text: str, type: str = "message") -> None:
        """Add what the model said or thought."""
        if text.strip():
            turn.add(key, type, at, text=self._fitting(text))

    def note(self, turn: OpenTurn, key: str, at: int, kind: str, text: str) -> None:
        """Add what the program noted, such as a summary: it is shown, and no model gets it."""
        if text.strip():
            turn.add(key, "notice", at, kind=kind, text=self._fitting(text))

    def call(self, turn: OpenTurn, key: str, at: int, name: str, given: object) -> None:
        """Add a tool call; it counts as interrupted until its result comes."""
        if key in self._calls:
            return
        arguments = self._fitting_input(given)
        shown = tool_name(name)
        turn.add(
            f"call:{key}",
            "tool",
            at,
            status="interrupted",
            name=shown,
            kind=_kind(shown),
            title=_label(name, arguments),
            input=arguments,
        )
        self._calls[key] = (turn, len(turn.items) - 1)

    def has_call(self, key: str) -> bool:
        return key in self._calls

    def result(
        self,
        key: str,
        at: int,
        text: str,
        *,
        status: ItemStatus = "completed",
        media: list[Block] | None = None,
        exit_code: int | None = None,
    ) -> None:
        """End a tool call; a result without a call is left out, as no provider takes one."""
        if key not in self._calls:
            self.notes.add(None, f"a result belongs to no call: {key[:80]!r}")
            return
        turn, index = self._calls[key]
        item = turn.items[index]
        blocks = media or []
        media = [block for block in blocks if block.type in ("image", "audio")]
        text = "\n".join(filter(None, [text, *(block.text for block in blocks if block not in media)]))
        # A call without text counts as one without a result, and its image would not be sent.
        shown = self._fitting(text) or (f"(an {media[0].type})" if media else "(no output)")
        output: JsonObject = {"text": shown, "truncated": False}
        if media:
            output["content"] = media
        turn.ended_at = max(turn.ended_at, at)
        turn.items[index] = msgspec.structs.replace(
            item, status=status, output=output, exit_code=exit_code, ended_at=at or item.started_at
        )

    def drop_repeated(self, turn: OpenTurn, text: str) -> None:
        """Drop the turn's last message if `text` ends with it."""
        last = turn.items[-1] if turn.items else None
        if last and last.type == "message" and last.text and text.rstrip().endswith(last.text.rstrip()):
            turn.items.pop()

    def edit(self, key: str, edit: FileEdit) -> None:
        """Note that a call has changed a file."""
        if key in self._calls:
            self._edits.append((key, edit))

    def attach(self, data: bytes | None, mime_type: str, name: str | None = None) -> Block:
        """A block for an image, audio or text; a line of text for what no model takes, or is not there."""
        label = os.path.basename(name or "")[:MAX_LABEL] or None
        kind = _media_kind(mime_type, label or "")
        found: Block | None = None
        if data is not None:
            found = self._medium(data, kind, label) if kind else self._document(data, mime_type, label)
        return found or Block(type="text", text=f"({label or mime_type or 'attachment'}: not imported)")

    def document(self, text: str, name: str, mime_type: str = "") -> Block:
        """A block for the text of an attached file."""
        label = os.path.basename(name)[:MAX_LABEL] or "attachment"
        uri = f"attachment:{quote(label)}"
        text = self._fitting(text)
        return Block(type="resource", uri=uri, name=label, text=text, mime_type=mime_type or None)

    def _medium(self, data: bytes, kind: MediaKind, label: str | None) -> Block | None:
        if len(data) > (MAX_IMAGE_BYTES if kind == "image" else MAX_AUDIO_BYTES):
            return None
        try:
            facts = inspect(data, kind)
        except BadMedia:
            return None
        id = self._keep(data, facts.mime_type, label)
        return Block(type=kind, blob_id=id, mime_type=facts.mime_type, name=label, size=len(data))

    def _document(self, data: bytes, mime_type: str, label: str | None) -> Block | None:
        """The block of a file that is text, which its bytes tell: types are often missing or wrong."""
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return None
        return None if "\0" in text else self.document(text, label or "", mime_type)

    def attach_base64(self, data: str, mime_type: str, name: str | None = None) -> Block:
        return self.attach(decode_base64(data), mime_type, name)

    def attach_data_url(self, url: str, name: str | None = None) -> Block:
        """The block of a data URL; other addresses are not opened."""
        head, comma, data = url.partition(",")
        if not (comma and head.startswith("data:") and head.endswith(";base64")):
            return Block(type="text", text=f"({(name or url)[:MAX_LABEL]}: not imported)")
        return self.attach_base64(data, head[len("data:") : -len(";base64")], name)

    def branch(self, turn: OpenTurn, items: int, key: str) -> OpenTurn:
        """A turn beside `turn` that begins with its first items, for another answer to the same prompt."""
        made = self.turn(key, turn.started_at, turn.parent)
        if self._copied + items > MAX_COPIED:
            self.notes.add(None, "a branch begins without what is before it: there are too many")
            items = 0
        self._copied += items
        for index, item in enumerate(turn.items[:items]):
            made.items.append(
                msgspec.structs.replace(item, id=self.item_id(f"{key}/{index}"), turn_id=made.id)
            )
        return made

    def finish(self, head: OpenTurn | None = None) -> ForeignChat:
        """The chat. `head` is the newest turn of the branch that is shown; the last one without it."""
        chat = self.chat
        self._put_edits()
        ids: dict[str, str | None] = {}
        for turn in self._turns:
            parent = turn.parent
            while parent is not None and not parent.items:
                parent = parent.parent
            above = ids.get(parent.id) if parent else None
            made = self._made(turn, above)
            chat.turns += made
            ids[turn.id] = made[-1].id if made else above
        last = head or (self._turns[-1] if self._turns else None)
        chat.head = ids.get(last.id) if last else None
        chat.turns = _ordered(chat.turns, chat.head)
        if chat.turns:
            chat.created_at = chat.created_at or chat.turns[0].started_at
            newest = max(turn.ended_at or turn.started_at for turn in chat.turns)
            chat.updated_at = max(chat.updated_at, newest)
        return self.notes.put(chat)

    def item_id(self, key: str) -> str:
        id = self._digest("item", key)
        number = 1
        while id in self._seen:  # a record that is there twice
            number += 1
            id = self._digest("item", f"{key}#{number}")
        self._seen.add(id)
        return f"i-{id}"

    def _made(self, turn: OpenTurn, parent: str | None) -> list[Turn]:
        """The turn; a very long one in several."""
        made: list[Turn] = []
        for start in range(0, len(turn.items), MAX_TURN_ITEMS):
            part = turn.items[start : start + MAX_TURN_ITEMS]
            id = turn.id if not start else f"{turn.id}-{start // MAX_TURN_ITEMS + 1}"
            above = made[-1].id if made else parent
            made.append(self._value(turn, id, [_of_turn(item, id) for item in part], above))
        return made

    def _value(self, turn: OpenTurn, id: str, items: list[Item], parent: str | None) -> Turn:
        # Without an answer the program was ended before it came.
        unanswered = all(item.type == "user" for item in items)
        unfinished = unanswered or any(item.status == "interrupted" for item in items)
        reason = "cancelled" if turn.cancelled else "interrupted" if unfinished else "end_turn"
        return Turn(
            id=id,
            prompt_id=f"p-{id[2:]}",
            items=items,
            status="cancelled" if turn.cancelled else "interrupted" if unfinished else "completed",
            model=turn.model[:200],
            engine=self.platform,
            started_at=turn.started_at,
            ended_at=turn.ended_at,
            reason=reason,  # type: ignore[arg-type]  # one of the three above
            parent_turn_id=parent,
            usage=turn.usage,
        )

    def _put_edits(self) -> None:
        for key, edit in self._edits:
            turn, index = self._calls[key]
            item = turn.items[index]
            change = change_of(edit, self.chat.project, lambda data: self._keep(data, "text/plain"))
            if change is None:
                self.notes.add(None, f"a changed file has no usable path: {edit.path[:80]!r}")
                continue
            changes = [*(item.changes or []), msgspec.to_builtins(change)]
            turn.items[index] = msgspec.structs.replace(
                item, changes=changes, kind="edit", locations=[{"path": change.path}]
            )
            at = item.ended_at or item.started_at
            patch_id = f"pa-{self._digest('patch', f'{key}:{len(changes)}')}"
            self.chat.patches.append(_patch(change, patch_id, turn.id, item, at))

    def _keep(self, data: bytes, mime_type: str, name: str | None = None) -> str:
        id = hashlib.sha256(data).hexdigest()
        self.chat.blobs.setdefault(id, Attachment(data, mime_type, name))
        return id

    def _fitting(self, text: str) -> str:
        """The text within the limit of a chat, and without half characters."""
        if not text.isascii():
            text = text.encode("utf-8", "replace").decode()
        if not is_too_long(text):
            return text
        self.notes.add(None, f"a text of {len(text)} characters was cut to {MAX_TEXT_BYTES} bytes")
        return text.encode()[:MAX_TEXT_BYTES].decode(errors="ignore")

    def _fitting_block(self, block: Block) -> Block:
        if block.text is None:
            return block
        return msgspec.structs.replace(block, text=self._fitting(block.text))

    def _fitting_input(self, given: object) -> JsonObject:
        """A call's arguments as an object, which is what every provider takes."""
        arguments = given if isinstance(given, dict) else {"input": given}
        if len(encoded := msgspec.json.encode(arguments)) > MAX_INPUT_BYTES:
            self.notes.add(None, f"the arguments of a call have more than {MAX_INPUT_BYTES} bytes")
            return {"input": encoded[:MAX_INPUT_BYTES].decode(errors="ignore")}
        return arguments

    def _digest(self, what: str, key: str) -> str:
        text = f"{what}\0{self.platform}\0{self.chat.id}\0{key}"
        return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:24]

    def _last_at(self) -> int:
        return self._turns[-1].ended_at if self._turns else 0


def tool_name(name: str) -> str:
    """The name in the characters that every provider takes."""
    return _NOT_NAME.sub("_", name)[:64] or "tool"


def milliseconds(value: object) -> int:
    """Milliseconds since 1970 from an ISO date, or from seconds or milliseconds; 0 when it is none of them."""
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            return 0
        value = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return 0
    number = value if abs(value) > 1e11 else value * 1000
    return int(number) if 0 < number < _MAX_TS else 0


def _media_kind(mime_type: str, name: str) -> MediaKind | None:
    """What a file is by its type, or by its name where its type says little; None when it is neither."""
    types = [mime_type] if mime_type.startswith("text/") else [mime_type, mimetypes.guess_type(name)[0] or ""]
    for family in (type.partition("/")[0] for type in types):
        if family == "image":
            return "image"
        if family == "audio":
            return "audio"
    return None


def decode_base64(data: str) -> bytes | None:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None


def text_block(text: str) -> Block:
    return Block(type="text", text=text)


def _ordered(turns: list[Turn], head: str | None) -> list[Turn]:
    """Parents first, and the branch of the head last among its siblings, so that it is the one that is shown."""
    parents = {turn.id: turn.parent_turn_id for turn in turns}
    shown: set[str] = set()
    at = head
    while at is not None and at not in shown:
        shown.add(at)
        at = parents.get(at)
    if len(shown) == len(turns):
        return turns
    following: dict[str | None, list[Turn]] = {}
    for turn in turns:
        following.setdefault(turn.parent_turn_id, []).append(turn)
    ordered: list[Turn] = []
    waiting = _newest_first(following.get(None, []), shown)
    while waiting:
        turn = waiting.pop()
        ordered.append(turn)
        waiting += _newest_first(following.get(turn.id, []), shown)
    return ordered


def _newest_first(turns: list[Turn], shown: set[str]) -> list[Turn]:
    """The turns in the order in which a stack gives them back: the shown one last."""
    return sorted(turns, key=lambda turn: turn.id in shown)[::-1]


def _of_turn(item: Item, id: str) -> Item:
    return item if item.turn_id == id else msgspec.structs.replace(item, turn_id=id)


def _patch(change: Any, id: str, turn_id: str, item: Item, at: int) -> Patch:
    return make_patch(
        change, id=id, turn_id=turn_id, item_id=item.id, tool_name=item.name or "", ts=at, mode=None
    )


def _kind(name: str) -> str:
    lowered = name.lower()
    for kind, words in _KINDS:
        if any(word in lowered for word in words):
            return kind
    return "other"


def _label(name: str, given: JsonObject) -> str:
    names = ("command", "cmd", "file_path", "filePath", "path", "url", "pattern", "query", "description")
    shown = next((given[key] for key in names if key in given), "")
    if isinstance(shown, list):
        shown = " ".join(map(text_of, shown))
    return f"{name} {text_of(shown)}".replace("\n", " ").strip()[:MAX_LABEL]
