"""From the house's values to the types that travel."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from sidecar_protocol import messages as m
from sidecar_protocol.errors import CODES
from sidecar_protocol.messages.base import Key

from ...chat.identity import Address
from ...chat.session import Session
from ...model.chats import Chat, ChatKey, Prompt
from ...model.content import Block, Turn
from ...model.events import StoredEvent, decode, encode

T = TypeVar("T")


def address_of(params: Key) -> Address:
    return Address(params.chat_id, params.project_path, params.namespace, params.session_id)


def chat_ref(key: ChatKey) -> dict[str, Any]:
    """The two members that name a chat in every result."""
    return {"session_id": key.session_id, "chat_id": key.chat_id}


def as_wire(value: Any, type: type[T]) -> T:
    """A value of ours as the type of the contract that has the same fields."""
    return msgspec.convert(value, type, from_attributes=True)


def turn_to_wire(turn: Turn) -> m.Turn:
    wire = as_wire(msgspec.structs.replace(turn, error=None), m.Turn)
    hidden = True if turn.hidden else msgspec.UNSET
    error = m.ErrorObject(**error_to_wire(turn.error)) if turn.error else None
    return msgspec.structs.replace(wire, hidden=hidden, error=error)


def error_to_wire(error: dict[str, Any]) -> dict[str, Any]:
    """A journalled error with the code that belongs to its name."""
    data = error["data"]
    return {
        "code": CODES.get(data["name"], CODES["internal_error"]),
        "message": error["message"],
        "data": data,
    }


def queue_to_wire(session: Session) -> m.Queue:
    items = [_queued(prompt, place) for place, prompt in enumerate(session.queue, 1)]
    return m.Queue(paused=session.chat.queue_paused, items=items)


def block_of(block: m.ContentBlock) -> dict[str, Any]:
    return {key: value for key, value in msgspec.to_builtins(block).items() if value is not None}


def summary_to_wire(chat: Chat) -> dict[str, Any]:
    """A chat as lists show it."""
    return {
        **chat_ref(chat.key),
        "namespace": chat.key.namespace,
        "title": chat.title,
        "project_path": chat.project_path,
        "model": chat.model,
        "state": chat.state,
        "created_at": chat.created_at,
        "last_activity": chat.last_activity,
        "turns": chat.turns,
        "preview": chat.preview,
        "archived": chat.archived,
        "meta": chat.config.get("meta"),
    }


class EventEncoder:
    """Events of one chat as `event` notifications; the journal's JSON is passed on as it is."""

    def __init__(self, key: ChatKey, epoch: str) -> None:
        self._base = {"sessionId": key.session_id, "chatId": key.chat_id, "epoch": epoch}

    def params(self, event: StoredEvent) -> dict[str, Any]:
        params: dict[str, Any] = {**self._base, "seq": event.seq}
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


def _data(event: StoredEvent) -> bytes:
    if event.type == "turn.ended" and b'"error":' in event.data:
        data = decode(event.data)
        return encode({**data, "error": error_to_wire(data["error"])})
    if event.type == "error":
        data = decode(event.data)
        return encode({**error_to_wire(data.pop("error")), **data})
    if event.type == "config.updated":
        return encode({"config": decode(event.data)["config"]})
    return event.data


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
