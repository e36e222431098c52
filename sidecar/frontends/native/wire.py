"""Converts values of the program to the types of the wire."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypedDict, TypeVar

import msgspec
from sidecar_protocol import messages as m
from sidecar_protocol.errors import CODES
from sidecar_protocol.messages.base import Key

from ...chat.journal.identity import ChatAddress
from ...chat.sessions.chats import Chats
from ...chat.sessions.session import Session
from ...model import JsonObject
from ...model.chats import Chat, ChatKey, Lease, Prompt
from ...model.content import Block, GivenBlock, StoredError, Turn, stored_error
from ...model.events import StoredEvent, decode, encode
from ...model.refusals import is_refused

T = TypeVar("T")


def address_of(params: Key) -> ChatAddress:
    return ChatAddress(params.chat_id, params.project_path, params.namespace, params.session_id)


async def session_of(chats: Callable[[], Awaitable[Chats]], params: Key) -> Session:
    """The session of the chat that the parameters name, which must exist."""
    return await (await chats()).existing_session(address_of(params))


class ChatRefMembers(TypedDict):
    """The two members that identify a chat in every result."""

    session_id: str
    chat_id: str | None


def chat_ref(key: ChatKey) -> ChatRefMembers:
    return {"session_id": key.session_id, "chat_id": key.chat_id}


def owner_of(lease: Lease | None) -> m.Owner | None:
    """The process that a lease belongs to, as an app shows it."""
    return m.Owner(pid=lease.owner.pid, client=lease.client) if lease and lease.owner else None


def as_wire(value: Any, type: type[T]) -> T:
    """Convert a value to the type of the contract that has the same fields."""
    return msgspec.convert(value, type, from_attributes=True)


def turn_to_wire(turn: Turn) -> m.Turn:
    plain = [msgspec.structs.replace(item, error=None) if item.error else item for item in turn.items]
    wire = as_wire(msgspec.structs.replace(turn, items=plain, error=None), m.Turn)
    items = [
        msgspec.structs.replace(sent, error=error_to_wire(item.error)) if item.error else sent
        for item, sent in zip(turn.items, wire.items, strict=True)
    ]
    hidden = True if turn.hidden else msgspec.UNSET
    error = error_to_wire(turn.error) if turn.error else None
    refused = True if is_refused(turn) else msgspec.UNSET
    return msgspec.structs.replace(wire, items=items, hidden=hidden, error=error, refused=refused)


def error_to_wire(error: StoredError) -> m.ErrorObject:
    """A journalled error with the code that belongs to its name."""
    code = CODES.get(str(error.data.get("name", "")), CODES["internal_error"])
    return m.ErrorObject(code=code, message=error.message, data=error.data)


def queue_to_wire(session: Session) -> m.Queue:
    items = [_queued(prompt, place) for place, prompt in enumerate(session.queue, 1)]
    return m.Queue(paused=session.chat.queue_paused, items=items)


def block_of(block: m.ContentBlock) -> GivenBlock:
    return msgspec.convert(msgspec.to_builtins(block), GivenBlock)


def chat_summary(chat: Chat) -> m.ChatSummary:
    """A chat as lists show it."""
    return m.ChatSummary(
        **chat_ref(chat.key),
        namespace=chat.key.namespace,
        title=chat.title,
        project_path=chat.listed_path,
        model=chat.model,
        state=chat.state,
        created_at=chat.created_at,
        last_activity=chat.last_activity,
        turns=chat.turns,
        preview=chat.preview,
        archived=chat.archived,
        meta=chat.config.get("meta"),
    )


class EventEncoder:
    """Encodes the events of one chat as `event` notifications; the journal's JSON is passed on unchanged."""

    def __init__(self, key: ChatKey, epoch: str) -> None:
        self._base = {"sessionId": key.session_id, "chatId": key.chat_id, "epoch": epoch}

    def params(self, event: StoredEvent) -> dict[str, object]:
        params: dict[str, object] = {**self._base, "seq": event.seq}
        if event.first != event.seq:
            params["from"] = event.first
        params["ts"] = event.ts
        if event.turn_id is not None:
            params["turnId"] = event.turn_id
        params["type"] = event.type
        params["data"] = msgspec.Raw(_data(event))
        return params

    def notification(self, event: StoredEvent) -> bytes:
        return encode({"jsonrpc": "2.0", "method": "event", "params": self.params(event)})


_CHANGE = {"added": 0, "removed": 0, "binary": False, "truncated": False}
_PATCH = {
    "added": 0,
    "removed": 0,
    "binary": False,
    "truncated": False,
    "revertible": True,
    "status": "applied",
}
"""What the journal leaves out and every reader of the wire finds."""


def _data(event: StoredEvent) -> bytes:
    if event.type == "turn.ended" and b'"error":' in event.data:
        data = decode(event.data)
        return encode({**data, "error": _wire_error(data["error"])})
    if event.type == "error":
        data = decode(event.data)
        return encode({**_wire_error(data.pop("error")), **data})
    if event.type == "config.updated":
        return encode({"config": decode(event.data)["config"]})
    if event.type == "patch.recorded":
        return encode({**_PATCH, **decode(event.data)})
    if event.type in _WITH_CHANGES and b'"changes":[{' in event.data:
        return encode(with_changes(decode(event.data)))
    return event.data


_WITH_CHANGES = frozenset({"tool.started", "tool.updated", "tool.ended", "permission.requested"})


def with_changes(data: JsonObject) -> JsonObject:
    """The data of an event, or a request to the user, with all members of its changes of files."""
    if isinstance(item := data.get("item"), dict):
        return {**data, "item": with_changes(item)}
    changes = data.get("changes")
    if not isinstance(changes, list) or not changes:
        return data
    return {**data, "changes": [{**_CHANGE, **change} for change in changes]}


def _wire_error(journalled: object) -> Mapping[str, object]:
    error: Mapping[str, object] = msgspec.to_builtins(error_to_wire(stored_error(journalled)))
    return error


def _queued(prompt: Prompt, place: int) -> m.QueuedPrompt:
    return m.QueuedPrompt(
        prompt_id=prompt.id,
        turn_id=prompt.turn_id,
        content=[as_wire(block, m.ContentBlock) for block in prompt.content],
        delivery=prompt.delivery,
        position=place,
        revision=prompt.revision,
    )


def text_block(text: str) -> Block:
    return Block(type="text", text=text)
