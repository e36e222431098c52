"""What every dialect has to do to a conversation before it can spell it: strict order, whole pairs, media.

The rules are those of the strictest API: user first and last, never two replies in a row, every tool call
followed by its one result. A history that holds to them is taken by all.
"""

from __future__ import annotations

import base64
import re
import secrets
from collections.abc import Iterable
from typing import Literal

import msgspec

from ..model.content import Block
from .base import (
    AssistantMessage,
    Message,
    ModelEntry,
    ModelRequest,
    ToolCall,
    ToolResult,
    UserMessage,
    Verbatim,
)

GO_ON = "Go on from where you stopped, without repeating what you have said."
INTERRUPTED = "The tool call was interrupted; it has no result."
NOTHING = "(no text)"

_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}|functions\.[a-zA-Z0-9_-]{1,64}:\d+")
"""What all APIs take; the second is how Kimi's models number their calls, and they want it back like that."""

IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""What every API with images takes."""


class Said(msgspec.Struct, frozen=True):
    """The user's part."""

    content: list[Block]


class Replied(msgspec.Struct, frozen=True):
    """The model's part, with the result of each of its calls in the calls' order."""

    text: str
    calls: list[ToolCall]
    results: list[ToolResult]
    verbatim: Verbatim | None


Part = Said | Replied


class Text(msgspec.Struct, frozen=True):
    text: str


class Media(msgspec.Struct, frozen=True):
    kind: Literal["image", "audio"]
    mime_type: str
    data: str
    """Base64."""

    @property
    def url(self) -> str:
        return f"data:{self.mime_type};base64,{self.data}"


def parts(messages: Iterable[Message]) -> list[Part]:
    """The conversation in strict order; it begins with the user, and ends with the user or with results."""
    found: list[Part] = []
    open_calls: dict[str, ToolCall] = {}
    results: dict[str, ToolResult] = {}
    replied: AssistantMessage | None = None

    def close() -> None:
        nonlocal replied
        if replied and (replied.text.strip() or replied.tool_calls or replied.verbatim):
            answers = [results.get(id) or ToolResult(id, INTERRUPTED, True) for id in open_calls]
            if _needs_user(found):
                found.append(Said([Block(type="text", text=GO_ON)]))
            found.append(_spellable(Replied(replied.text, replied.tool_calls, answers, replied.verbatim)))
        replied = None
        open_calls.clear()
        results.clear()

    for message in messages:
        match message:
            case UserMessage(content):
                close()
                found.append(Said(content))
            case AssistantMessage(text, calls, verbatim):
                if replied and not replied.tool_calls and not replied.verbatim and not verbatim:
                    replied = AssistantMessage(replied.text + text, calls)
                else:
                    close()
                    replied = message
                open_calls.update((call.id, call) for call in calls)
            case ToolResult(call_id):
                if call_id in open_calls:
                    results.setdefault(call_id, message)
    close()
    return _begun_and_ended(found)


def _spellable(reply: Replied) -> Replied:
    """An imported chat may hold calls with names, ids and arguments that no API takes; a verbatim reply cannot."""
    if reply.verbatim:
        return reply
    return Replied(
        reply.text,
        [
            ToolCall(
                _id(made.id),
                _NAME.sub("_", made.name)[:64] or "unnamed",
                made.input if isinstance(made.input, dict) else {"input": made.input},
            )
            for made in reply.calls
        ],
        [ToolResult(_id(result.call_id), result.text, result.failed) for result in reply.results],
        None,
    )


def _id(id: str) -> str:
    if _ID.fullmatch(id):
        return id
    import hashlib

    return f"call_{hashlib.sha256(id.encode(errors='replace')).hexdigest()[:24]}"


def _begun_and_ended(found: list[Part]) -> list[Part]:
    if not found or isinstance(found[0], Replied):
        found.insert(0, Said([]))
    if _needs_user(found):
        found.append(Said([Block(type="text", text=GO_ON)]))
    return found


def _needs_user(found: list[Part]) -> bool:
    """A reply without calls is followed by the user: here by the words that it was gone on with."""
    last = found[-1] if found else None
    return isinstance(last, Replied) and not last.results


def pieces(content: list[Block], request: ModelRequest, model: ModelEntry) -> list[Text | Media]:
    """A prompt's blocks as text and media that this model takes; never nothing."""
    found = [piece for block in content for piece in _piece(block, request, model)]
    return found or [Text(NOTHING)]


def _piece(block: Block, request: ModelRequest, model: ModelEntry) -> list[Text | Media]:
    if block.type in ("text", "resource"):
        text = block.text or ""
        if block.type == "resource":
            text = f"{block.uri or block.name or 'resource'}:\n{text}"
        return [Text(text)] if text.strip() else []
    if block.type == "resource_link":
        return [Text(f"[{block.name or 'link'}]({block.uri})")]
    data = request.media.get(block.blob_id or "")
    kind: Literal["image", "audio"] = "image" if block.type == "image" else "audio"
    known = model.modalities
    taken = kind in known if known else kind == "image"  # a model that cannot see will say so itself
    if kind == "image" and block.mime_type not in IMAGE_TYPES:
        taken = False
    if data is None or not taken:
        return [
            Text(f"[{kind} {block.name or block.mime_type or ''} is not shown: this model does not take it]")
        ]
    return [Media(kind, block.mime_type or "", base64.b64encode(data).decode())]


def own(reply: Replied, provider: str, model: str) -> list[dict[str, object]] | None:
    """The reply as this very provider spelled it, when it did."""
    verbatim = reply.verbatim
    if verbatim and (verbatim.provider, verbatim.model) == (provider, model):
        return verbatim.parts
    return None


MAX_CALLS = 128
MAX_ARGUMENTS = 4 * 1024 * 1024
"""Of one reply: more tool calls, or characters of arguments in one, are a model that has run away."""


class RanAway(Exception):
    """The reply has no measure."""


class CallIds:
    """Gives every call an id that no other call of the conversation has."""

    def __init__(self, messages: Iterable[Message]) -> None:
        said = (message for message in messages if isinstance(message, AssistantMessage))
        self._taken = {call.id for message in said for call in message.tool_calls}
        self._given = 0

    def take(self, id: str | None) -> str:
        self._given += 1
        if self._given > MAX_CALLS:
            raise RanAway(f"more than {MAX_CALLS} tool calls in one reply")
        if not id or id in self._taken:
            id = f"call_{secrets.token_hex(12)}"
        self._taken.add(id)
        return id


class Arguments:
    """A call's arguments as their pieces come in."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._size = 0

    def add(self, piece: str | None) -> None:
        if piece:
            self._size += len(piece)
            if self._size > MAX_ARGUMENTS:
                raise RanAway(f"more than {MAX_ARGUMENTS} characters of arguments for a tool")
            self._pieces.append(piece)

    def __str__(self) -> str:
        return "".join(self._pieces)


def call(id: str, name: str, arguments: str) -> ToolCall:
    """A call from its arguments in JSON, whatever the model made of them."""
    try:
        input = msgspec.json.decode(arguments or "{}")
    except (msgspec.DecodeError, RecursionError) as error:
        return ToolCall(
            id, name or "unnamed", {}, f"The arguments are not valid JSON ({error}): {arguments[:200]}"
        )
    if not isinstance(input, dict):
        return ToolCall(id, name or "unnamed", {}, "The arguments must be a JSON object.")
    return ToolCall(id, name or "unnamed", input, None if name else "The call has no tool's name.")
