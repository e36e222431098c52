"""Normalization of a conversation for every dialect: strict order, complete pairs, media.

The rules are those of the strictest API: user first and last, never two replies in a row, every tool call followed by
exactly one result. Every API accepts a history that follows them.
"""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from collections.abc import Iterable
from typing import Any, Literal, TypedDict

import msgspec

from ..model import JsonObject
from ..model.content import Block
from .base import (
    AssistantMessage,
    Message,
    ModelEntry,
    ModelRequest,
    ToolCall,
    ToolResult,
    ToolSpec,
    UserMessage,
    Verbatim,
)

CONTINUE_PROMPT = "Go on from where you stopped, without repeating what you have said."
INTERRUPTED = "The tool call was interrupted; it has no result."
NO_TEXT = "(no text)"

_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}|functions\.[a-zA-Z0-9_-]{1,64}:\d+")
"""What all APIs accept; the second is how Kimi's models number their calls, and they require it unchanged."""


class UserPart(msgspec.Struct, frozen=True):
    """A user message."""

    content: list[Block]


class ModelPart(msgspec.Struct, frozen=True):
    """A model message, with the result of each of its calls in the order of the calls."""

    text: str
    calls: list[ToolCall]
    results: list[ToolResult]
    verbatim: Verbatim | None


Part = UserPart | ModelPart


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
    """Return the conversation in strict order; it begins with the user, and ends with the user or with results."""
    found: list[Part] = []
    open_calls: dict[str, ToolCall] = {}
    results: dict[str, ToolResult] = {}
    replied: AssistantMessage | None = None

    def close() -> None:
        nonlocal replied
        if replied and (replied.text.strip() or replied.tool_calls or replied.verbatim):
            # Every API refuses a call without a result, and a turn that was killed has some.
            answers = [results.get(id) or ToolResult(id, INTERRUPTED, True) for id in open_calls]
            if _needs_user(found):
                found.append(UserPart([Block(type="text", text=CONTINUE_PROMPT)]))
            found.append(
                _sanitise_reply(ModelPart(replied.text, replied.tool_calls, answers, replied.verbatim))
            )
        replied = None
        open_calls.clear()
        results.clear()

    for message in messages:
        match message:
            case UserMessage(content):
                close()
                found.append(UserPart(content))
            case AssistantMessage(text, calls, verbatim):
                # Two messages of the model in a row are one to every API; one with signed thoughts must stay as it
                # was written.
                if replied and not replied.tool_calls and not replied.verbatim and not verbatim:
                    replied = AssistantMessage(replied.text + text, calls)
                else:
                    close()
                    replied = message
                open_calls.update((call.id, call) for call in calls)
            case ToolResult(call_id):
                # A result whose call is gone would be refused; of two results the first counts.
                if call_id in open_calls:
                    results.setdefault(call_id, message)
    close()
    return _with_user_ends(found)


def _sanitise_reply(reply: ModelPart) -> ModelPart:
    """Fix a reply of an imported chat, whose calls may have names, ids and arguments that no API accepts; a verbatim
    reply is valid.
    """
    if reply.verbatim:
        return reply
    return ModelPart(
        reply.text,
        [
            ToolCall(
                _id(made.id),
                _NAME.sub("_", made.name)[:64] or "unnamed",
                made.input if isinstance(made.input, dict) else {"input": made.input},
            )
            for made in reply.calls
        ],
        [msgspec.structs.replace(result, call_id=_id(result.call_id)) for result in reply.results],
        None,
    )


def _id(id: str) -> str:
    if _ID.fullmatch(id):
        return id

    return f"call_{hashlib.sha256(id.encode(errors='replace')).hexdigest()[:24]}"


def _with_user_ends(found: list[Part]) -> list[Part]:
    if not found or isinstance(found[0], ModelPart):
        found.insert(0, UserPart([]))
    if _needs_user(found):
        found.append(UserPart([Block(type="text", text=CONTINUE_PROMPT)]))
    return found


def _needs_user(found: list[Part]) -> bool:
    """Return the user message that must follow a reply without calls: here the text with which it was continued."""
    last = found[-1] if found else None
    return isinstance(last, ModelPart) and not last.results


def content_pieces(content: list[Block], request: ModelRequest, model: ModelEntry) -> list[Text | Media]:
    """Return the blocks of a prompt as text and media that this model accepts; never empty."""
    found = [piece for block in content for piece in _piece(block, request, model)]
    return found or [Text(NO_TEXT)]


class ResultPieces(msgspec.Struct, frozen=True):
    """A tool's result as a model gets it: its text, with a line for each medium that the model does not accept, and
    the media.
    """

    call_id: str
    name: str
    text: str
    failed: bool
    media: list[Media]


def result_pieces(part: ModelPart, request: ModelRequest, model: ModelEntry) -> list[ResultPieces]:
    """Return the results of a message's calls, with the media that this model accepts."""
    names = {made.id: made.name for made in part.calls}
    found: list[ResultPieces] = []
    for result in part.results:
        pieces = [piece for block in result.content for piece in _piece(block, request, model)]
        lines = [piece.text for piece in pieces if isinstance(piece, Text)]
        media = [piece for piece in pieces if isinstance(piece, Media)]
        text = "\n".join([result.text, *lines])
        found.append(
            ResultPieces(result.call_id, names.get(result.call_id, "tool"), text, result.failed, media)
        )
    return found


def trailing_pieces(results: Iterable[ResultPieces]) -> list[Text | Media]:
    """Return the media for a user message after the results, each tool's under a line with its name."""
    found: list[Text | Media] = []
    for result in results:
        if result.media:
            kinds = " and ".join(dict.fromkeys(medium.kind for medium in result.media))
            found += [Text(f"[{kinds} from the result of the tool {result.name}]"), *result.media]
    return found


def _piece(block: Block, request: ModelRequest, model: ModelEntry) -> list[Text | Media]:
    if block.type in ("text", "resource"):
        text = block.text or ""
        if block.type == "resource":
            text = f"{block.uri or block.name or 'resource'}:\n{text}"
        return [Text(text)] if text.strip() else []
    if block.type == "resource_link":
        return [Text(f"[{block.name or 'link'}]({block.uri})")]
    if block.text:
        return [Text(block.text)]
    data = request.media.get(block.blob_id or "")
    reason = why_not_taken(block, model) or ("size" if data is None else None)
    if data is None or reason:
        return [Text(omission_line(block, reason or "size"))]
    kind: Literal["image", "audio"] = "image" if block.type == "image" else "audio"
    return [Media(kind, block.mime_type or "", base64.b64encode(data).decode())]


Unshown = Literal["modality", "format", "invalid", "missing", "refused", "size"]
"""Why a model does not get a media block."""

_WHY: dict[Unshown, str] = {
    "modality": "this model does not take {kind} input",
    "format": "this model does not take {mime}",
    "invalid": "its bytes do not decode",
    "missing": "its bytes are not stored here",
    "refused": "the provider refused it",
    "size": "the request has no space for it",
}


def why_not_taken(block: Block, model: ModelEntry) -> Unshown | None:
    """Return why this model does not accept media of this kind and type; None when it does, or when that is unknown."""
    known = model.modalities
    if block.type not in known if known else block.type == "audio":
        return "modality"  # an unknown model gets images: it refuses them itself
    return None if block.mime_type in model.media_types else "format"


def omission_line(block: Block, reason: Unshown) -> str:
    """Return the line that replaces a media block."""
    why = _WHY[reason].format(kind=block.type, mime=block.mime_type or "this type")
    return f"[{block.type} {block.name or block.mime_type or ''} is not shown: {why}]"


def own_spelling(reply: ModelPart, provider: str, model: str) -> list[Any] | None:
    """Return the reply in the format of this very provider, when it wrote it."""
    verbatim = reply.verbatim
    # Signatures of thoughts are valid for the model that signed them, and for no other.
    if verbatim and (verbatim.provider, verbatim.model) == (provider, model):
        return verbatim.parts
    return None


class FunctionSpec(TypedDict):
    name: str
    description: str
    parameters: JsonObject


class FunctionTool(TypedDict):
    """A tool in the format of Chat Completions and compatible APIs."""

    type: Literal["function"]
    function: FunctionSpec


def function(tool: ToolSpec) -> FunctionTool:
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": tool.input_schema},
    }


class FunctionArguments(TypedDict):
    name: str
    arguments: str


class FunctionCall(TypedDict):
    """A call in the same format; its arguments are JSON text."""

    id: str
    type: Literal["function"]
    function: FunctionArguments


def function_call(made: ToolCall) -> FunctionCall:
    arguments = msgspec.json.encode(made.input).decode()
    return {"id": made.id, "type": "function", "function": {"name": made.name, "arguments": arguments}}


MAX_CALLS = 128
MAX_ARGUMENTS = 4 * 1024 * 1024
"""Limits of one reply: more tool calls, or characters of arguments in one, mean a runaway model."""


class ReplyTooLarge(Exception):
    """The reply exceeds the limits."""


class CallIds:
    """Gives every call an id that is unique in the conversation."""

    def __init__(self, messages: Iterable[Message]) -> None:
        said = (message for message in messages if isinstance(message, AssistantMessage))
        self._taken = {call.id for message in said for call in message.tool_calls}
        self._given = 0

    def take(self, id: str | None) -> str:
        self._given += 1
        if self._given > MAX_CALLS:
            raise ReplyTooLarge(f"more than {MAX_CALLS} tool calls in one reply")
        # Some models number the calls of each reply from 0.
        if not id or id in self._taken:
            id = f"call_{secrets.token_hex(12)}"
        self._taken.add(id)
        return id


class Arguments:
    """The arguments of a call whose pieces are still coming in."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._size = 0

    def add(self, piece: str | None) -> None:
        if piece:
            self._size += len(piece)
            if self._size > MAX_ARGUMENTS:
                raise ReplyTooLarge(f"more than {MAX_ARGUMENTS} characters of arguments for a tool")
            self._pieces.append(piece)

    def __str__(self) -> str:
        return "".join(self._pieces)


def call(id: str, name: str, arguments: str) -> ToolCall:
    """Build a call from its arguments in JSON, valid or not."""
    try:
        input = msgspec.json.decode(arguments or "{}")
    except (msgspec.DecodeError, RecursionError) as error:
        return ToolCall(
            id, name or "unnamed", {}, f"The arguments are not valid JSON ({error}): {arguments[:200]}"
        )
    if not isinstance(input, dict):
        return ToolCall(id, name or "unnamed", {}, "The arguments must be a JSON object.")
    return ToolCall(id, name or "unnamed", input, None if name else "The call has no tool's name.")
