"""Reads turns for the summariser: messages as sentences and list entries, within a bound on all work. Does
not decide what is used."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from ...model.content import Item, Turn
from . import language
from .language import Listed

MAX_TEXT = 8_000
"""Characters of one message that are read, from both ends together."""

MAX_CHARACTERS = 1_000_000
"""Of all messages together; in a longer chat, less is read of long messages."""

MIN_TEXT = 200
MAX_MESSAGES = 20_000
"""What is read of a message even in the longest chat, and how many of the newest are read at all."""

MAX_PIECES = 200
"""Sentences of one message."""

Speaker = Literal["user", "model"]

_FENCE = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)
_BULLET = re.compile(r"\s{0,8}(?:[-*+•・]|\d{1,3}[.)、])\s++")
_CHECKED = re.compile(r"\[([ xX✓✔-])\]\s*+")
_TICKED = re.compile(r"(?:✅|☑|✓|✔)\ufe0f?\s*+")
_STRUCK = re.compile(r"~~([^~]{1,600})~~")
_ENDS = re.compile(r"(?<=[.!?…])\s++(?![a-z])|(?<=[。！？])")
_PROGRAM_OUTPUT = re.compile(
    r"\s*at \S+.*[:(]\d|\s*File \"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d|diff --git|@@ |[|>]|(?:---|\+\+\+) "
)
_QUESTION = re.compile(r"[?？]\W{0,3}$|か[。．]?$")


class Passage(msgspec.Struct, frozen=True):
    """A sentence, or an entry of a list: `listed` is the kind of its heading, `done` is set for checklists."""

    text: str
    turn_id: str
    speaker: Speaker
    listed: Listed | None = None
    done: bool | None = None

    @property
    def asks(self) -> bool:
        return _QUESTION.search(self.text[-8:]) is not None


class ChatMessage(msgspec.Struct, frozen=True):
    """What a user or the model said in one item; `at_work` when the turn has tool calls."""

    turn_id: str
    speaker: Speaker
    text: str
    at_work: bool


def visible_turns(turns: Sequence[Turn]) -> list[Turn]:
    """Return the turns without those that a rewind has hidden."""
    return [turn for turn in turns if not turn.hidden]


def messages(turns: Sequence[Turn]) -> list[ChatMessage]:
    """Return all messages, in order."""
    return [
        ChatMessage(turn.id, "user" if item.type == "user" else "model", text, at_work)
        for turn in turns
        for at_work in [any(item.type == "tool" for item in turn.items)]
        for item in turn.items
        if item.type in ("user", "message") and (text := message_text(item))
    ]


def message_text(item: Item) -> str:
    """Return a message's own text; attached files are not the user's words."""
    if item.type != "user":
        return item.text or ""
    blocks = [block.text for block in item.content or [] if block.type == "text" and block.text]
    return "\n".join(blocks) or item.text or ""


def pieces(read: Sequence[ChatMessage]) -> Iterator[Passage]:
    """Return the sentences and list entries of all messages, each read as far as the total allows."""
    newest = read[-MAX_MESSAGES:]
    limit = fair_share([len(message.text) for message in newest], MAX_CHARACTERS, MIN_TEXT, MAX_TEXT)
    for message in newest:
        yield from _pieces(message, limit)


def fair_share(sizes: Sequence[int], total: int, least: int, most: int) -> int:
    """Return the most that each may have so that all stay within the total: what small ones do not use goes
    to large ones."""
    while least < most:
        middle = (least + most + 1) // 2
        if sum(min(size, middle) for size in sizes) <= total:
            least = middle
        else:
            most = middle - 1
    return least


def _pieces(message: ChatMessage, limit: int) -> Iterator[Passage]:
    text = message.text
    if len(text) > limit:
        text = f"{text[: limit // 2]}\n{text[-(limit // 2) :]}"
    left = MAX_PIECES
    listed: Listed | None = None
    for line in _prose(text):
        if not line.strip():
            continue
        bullet = _BULLET.match(line)
        if not bullet:
            listed = language.list_heading(line)
            if listed is not None:
                continue
        # What a model lists without tool calls is advice, not work that it does.
        kept = listed if bullet and (message.speaker == "user" or message.at_work) else None
        for piece in _line_pieces(line[bullet.end() :] if bullet else line, message, kept):
            if left == 0:
                return
            left -= 1
            yield piece


def _prose(text: str) -> list[str]:
    """Return the lines outside code blocks that are neither program output nor quotations."""
    outside = "\n".join(_FENCE.split(text)[::2])
    return [line for line in outside.splitlines() if not _PROGRAM_OUTPUT.match(line[:300])]


def _line_pieces(line: str, message: ChatMessage, listed: Listed | None) -> Iterator[Passage]:
    turn_id, speaker = message.turn_id, message.speaker
    if box := _CHECKED.match(line):
        yield Passage(line[box.end() :].strip(), turn_id, speaker, "tasks", box.group(1) not in " -")
    elif mark := _TICKED.match(line) or _STRUCK.match(line):
        text = mark.group(1) if mark.re is _STRUCK else line[mark.end() :]
        yield Passage(text.strip(), turn_id, speaker, "tasks", done=True)
    elif listed:
        yield Passage(line.strip(), turn_id, speaker, listed, done=False if listed == "tasks" else None)
    else:
        for sentence in _ENDS.split(line):
            if sentence.strip():
                yield Passage(sentence.strip(), turn_id, speaker)
