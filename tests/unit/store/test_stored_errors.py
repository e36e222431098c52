"""Errors of turns and items whose members have other types, as an import of an earlier version stored them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from sidecar.chat.actions.history_import import ImportedHistory, TurnEvents
from sidecar.frontends.native.wire import EventEncoder, turn_to_wire
from sidecar.model.chats import ChatKey
from sidecar.model.content import Block, Item, StoredError, Turn
from sidecar.model.events import NewEvent, StoredEvent
from sidecar.store.engine.sqlite import Connection
from sidecar.store.tables import chats, turns
from tests.unit.store.test_message_search import _append
from tests.unit.store.test_message_search import db as db

ERRORS: dict[str, tuple[Any, StoredError]] = {
    "a number": (
        {"message": 7, "data": {"name": "storage"}},
        StoredError(message="7", data={"name": "storage"}),
    ),
    "no text": ({"message": None}, StoredError()),
    "a list": ({"message": ["full"], "data": {}}, StoredError(message="['full']")),
    "another member": ({"other": 1}, StoredError()),
    "data that is text": ({"message": "full", "data": "disk"}, StoredError(message="full")),
    "a name that is a list": (
        {"message": "full", "data": {"name": ["storage"]}},
        StoredError(message="full", data={"name": "['storage']"}),
    ),
    "params that are text": (
        {"message": "no", "data": {"name": "provider_error", "reason": ["window"], "params": "x"}},
        StoredError(message="no", data={"name": "provider_error", "reason": ["window"], "params": "x"}),
    ),
    "text alone": ("full", StoredError(message="full")),
}

TURN = Turn(
    id="t1",
    prompt_id="p1",
    items=[
        Item(
            id="i1",
            turn_id="t1",
            type="user",
            status="completed",
            started_at=1,
            content=[Block(type="text", text="?")],
        ),
        Item(id="i2", turn_id="t1", type="tool", status="failed", started_at=1, name="run_command"),
    ],
    status="failed",
    reason="error",
    model="m",
    engine="native",
    started_at=1,
    ended_at=2,
    error=StoredError(message="x"),
)


def _with_error(event: NewEvent, error: object) -> NewEvent:
    data: Mapping[str, Any] = msgspec.to_builtins(event.data)
    if event.type == "turn.ended":
        return msgspec.structs.replace(event, data={**data, "error": error})
    if event.type == "tool.ended":
        return msgspec.structs.replace(event, data={"item": {**data["item"], "error": error}})
    return event


@pytest.mark.parametrize(("stored", "read"), ERRORS.values(), ids=ERRORS)
def test_a_chat_with_a_mistyped_error_is_read(db: Connection, stored: object, read: StoredError) -> None:
    chat = chats.create(db, ChatKey("test", "chat", "a", "a"), None, {}, 0)
    events = TurnEvents(chat, renumber=False)
    made = [*events.of(TURN), *events.end(ImportedHistory(), chat)]
    _append(db, chat.id, [_with_error(event, stored) for event in made])

    (found,) = turns.before(db, chat.id, None, 9, 1 << 20).turns
    assert (found.error, found.items[-1].error) == (read, read)
    sent = msgspec.to_builtins(turn_to_wire(found))
    assert sent["error"]["message"] == sent["items"][-1]["error"]["message"] == read.message


@pytest.mark.parametrize(("stored", "read"), ERRORS.values(), ids=ERRORS)
@pytest.mark.parametrize("type", ["turn.ended", "error"])
def test_an_event_with_a_mistyped_error_is_sent(type: str, stored: object, read: StoredError) -> None:
    data = msgspec.json.encode({"reason": "error", "error": stored})
    sent = EventEncoder(ChatKey("test", "chat", "a", "a"), "e").notification(
        StoredEvent(1, 1, 0, "t1", type, data)
    )
    params = msgspec.json.decode(sent)["params"]["data"]
    assert (params["error"] if type == "turn.ended" else params)["message"] == read.message
