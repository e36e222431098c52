"""What may stand on the wire: each result, error, event and status is read with the contract's own types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from sidecar_protocol import errors
from sidecar_protocol import messages as m
from sidecar_protocol.catalog import METHODS, REQUESTS
from sidecar_protocol.limits import MAX_DELTA_BYTES
from sidecar_protocol.messages.details import OBJECTS

Json = dict[str, Any]

_COMMON_OF_ITEMS = {field.encode_name for field in msgspec.structs.fields(m.Item)} - {
    name for own in m.ITEM_TYPES.values() for name in own
}

_CHAT_ERRORS = {-32001, -32002, -32003, -32004, -32008, -32009, -32011}
"""Errors that speak of a chat when a chat's method answers them, and so must name its session."""


def message_violations(message: Json, method: str | None) -> list[str]:
    """What is wrong with one message of the sidecar; `method` is what an answer answers, if known."""
    if message.get("jsonrpc") != "2.0":
        return [f"no jsonrpc 2.0: {_short(message)}"]
    if message.get("method") in REQUESTS:
        return _request(message)
    if "method" in message:
        return _notification(message)
    if ("result" in message) == ("error" in message) or "id" not in message:
        return [f"neither a result nor an error: {_short(message)}"]
    if "error" in message:
        return _error(message["error"], method)
    return _result(message["result"], method)


def _request(message: Json) -> list[str]:
    """A request of the sidecar to its client."""
    if "id" not in message:
        return [f"a request without an id: {_short(message)}"]
    return _mismatch(message.get("params"), REQUESTS[message["method"]].params)


def _notification(message: Json) -> list[str]:
    kinds: dict[str, type[Any]] = {
        "event": m.Event,
        "status": m.Status,
        "$/cancelRequest": m.CancelRequestParams,
    }
    kind = kinds.get(message["method"])
    if kind is None or "id" in message:
        return [f"an unknown notification: {_short(message)}"]
    wrong = _mismatch(message.get("params"), kind)
    if not wrong and kind is m.Event:
        wrong = _event(message["params"])
    if not wrong and kind is m.Status:
        wrong = _data(message["params"], m.STATUS_TYPES)
    return wrong


def _event(event: Json) -> list[str]:
    wrong = [] if "chatId" in event else [f"no chatId: {_short(event)}"]
    if event["type"] not in m.EVENT_TYPES:
        wrong.append(f"an event type that the contract does not name: {event['type']}")
    first: int = event.get("from") or event["seq"]
    if not 0 < first <= event["seq"] < 2**53:
        wrong.append(f"seq or from out of range: {_short(event)}")
    if first < event["seq"]:
        if not event["type"].endswith((".delta", ".output")):
            wrong.append(f"a run of something else than deltas: {_short(event)}")
        elif len(event["data"]["text"].encode()) > MAX_DELTA_BYTES:
            wrong.append(f"a run of over 64 KiB: {_short(event)}")
    return wrong or _data(event, m.EVENT_TYPES)


def _data(told: Json, rows: Mapping[str, m.EventRow]) -> list[str]:
    """What the table does not say of the data of an event or a status: apps read what it says, and no more."""
    row = rows[told["type"]]
    wrong = _mismatch(told["data"], row.data)
    fields = {field.encode_name for field in msgspec.structs.fields(row.data)}
    wrong += [f"{told['type']}: the table has no member {name}" for name in told["data"].keys() - fields]
    item = told["data"].get("item")
    if row.item and item:
        own = _COMMON_OF_ITEMS | set(m.ITEM_TYPES[row.item])
        wrong += [f"{told['type']}: an item of type {item['type']}"] * (item["type"] != row.item)
        wrong += [f"{told['type']}: a {row.item} has no member {name}" for name in item.keys() - own]
        for name, kind in OBJECTS.items():
            if name[0] == "Item" and name[1] in item:
                wrong += _mismatch(item[name[1]], kind)
    return wrong


def _error(error: Any, method: str | None) -> list[str]:
    wrong = _mismatch(error, m.ErrorObject)
    if wrong:
        return wrong
    data = error.get("data", {})
    if errors.CODES.get(str(data.get("name"))) != error["code"]:
        wrong.append(f"data.name does not fit the code: {_short(error)}")
    if not isinstance(data.get("retryable"), bool):
        wrong.append(f"an error without data.retryable: {_short(error)}")
    chat = method in METHODS and METHODS[method].scope == "chat"
    if chat and error["code"] in _CHAT_ERRORS and not ("sessionId" in data and "chatId" in data):
        wrong.append(f"an error of a chat without sessionId and chatId: {method}: {_short(error)}")
    return wrong


def _result(result: Any, method: str | None) -> list[str]:
    if method not in METHODS:
        return []
    return [f"{method}: {wrong}" for wrong in _mismatch(result, METHODS[method].result)]


def _mismatch(value: Any, kind: Any) -> list[str]:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        return [f"{getattr(kind, '__name__', kind)}: {error}: {_short(value)}"]
    return []


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 400 else f"{text[:400]}…"
