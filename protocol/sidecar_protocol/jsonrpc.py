"""What a JSON-RPC message is. Parsing never raises: nonsense becomes an `Invalid` that says how to answer it."""

from __future__ import annotations

from typing import Any

import msgspec

from .errors import RpcError, no_memory
from .framing import Frame, Oversized

RequestId = str | int


class Request(msgspec.Struct, frozen=True):
    id: RequestId
    method: str
    params: dict[str, Any]


class Notification(msgspec.Struct, frozen=True):
    method: str
    params: dict[str, Any]


class Response(msgspec.Struct, frozen=True):
    id: RequestId
    result: Any
    error: RpcError | None


class Invalid(msgspec.Struct, frozen=True):
    """Something that gets an error for an answer; `id` is None where none could be read."""

    id: RequestId | None
    error: RpcError


Message = Request | Notification | Response | Invalid


class _Envelope(msgspec.Struct):
    """All that must be known of a message to answer it."""

    id: Any = None
    method: str | None = None


_ENVELOPE = msgspec.json.Decoder(_Envelope)
_decode = msgspec.json.Decoder().decode
_encoder = msgspec.json.Encoder()


def parse(frame: Frame) -> Message:
    """Read one frame."""
    if isinstance(frame, Oversized):
        return Invalid(None, _oversized(frame))
    try:
        message = _decode(frame)
    except (msgspec.DecodeError, UnicodeError, ValueError, RecursionError) as error:
        return Invalid(None, RpcError.named("parse_error", f"Not JSON: {error or 'nested too deeply'}"))
    except MemoryError:
        return _too_large_now(frame)
    if isinstance(message, list):
        return Invalid(None, _bad("Batches are not taken: send one message a frame"))
    if not isinstance(message, dict):
        return Invalid(None, _bad("A message is a JSON object"))
    return _classify(message)


def as_request_id(value: Any) -> RequestId | None:
    """`value` if it can be the id of a request: a string or an integer that every client can hold."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53:
        return value
    return None


def request(id: RequestId, method: str, params: Any) -> bytes:
    return _encode({"jsonrpc": "2.0", "id": id, "method": method, "params": params})


def notification(method: str, params: Any) -> bytes:
    return _encode({"jsonrpc": "2.0", "method": method, "params": params})


def success(id: RequestId, result: Any) -> bytes:
    return _encode({"jsonrpc": "2.0", "id": id, "result": result})


def failure(id: RequestId | None, error: RpcError) -> bytes:
    return _encode({"jsonrpc": "2.0", "id": id, "error": error.to_wire()})


def _encode(message: Any) -> bytes:
    """Into a buffer of our own: msgspec's ends the process when there is no memory to let it grow."""
    buffer = bytearray(512)
    _encoder.encode_into(message, buffer)
    return bytes(buffer)


def _too_large_now(frame: bytes | bytearray) -> Message:
    """A message that there is no memory for. Only its envelope is read, so that whoever waits can be told."""
    try:
        envelope = _ENVELOPE.decode(frame)
    except (msgspec.MsgspecError, UnicodeError, RecursionError, MemoryError):
        return Invalid(None, no_memory())
    id = as_request_id(envelope.id)
    if id is not None and envelope.method is None:
        return Response(id, None, no_memory())
    return Invalid(id, no_memory())


def _classify(message: dict[str, Any]) -> Message:
    id = as_request_id(message.get("id"))
    if message.get("jsonrpc") != "2.0":
        return Invalid(id, _bad('`jsonrpc` must be "2.0"'))
    if "method" not in message:
        return _response(message, id)
    if "id" in message and id is None:
        return Invalid(None, _bad("`id` must be a string or an integer below 2^53"))
    if not isinstance(message["method"], str):
        return Invalid(id, _bad("`method` must be a string"))
    params = message.get("params", {})
    if id is None:
        return Notification(message["method"], params if isinstance(params, dict) else {})
    if not isinstance(params, dict):
        return Invalid(id, RpcError.named("invalid_params", "`params` must be an object with named members"))
    return Request(id, message["method"], params)


def _response(message: dict[str, Any], id: RequestId | None) -> Message:
    if id is None and "error" in message and "result" not in message:
        # The other side could not read something of ours. Answering that would never end.
        return Response("", None, RpcError.named("internal_error", "A message was refused without an id"))
    if ("result" in message) == ("error" in message) or id is None:
        return Invalid(
            id, _bad("Neither a request (`method`) nor a response (`id` with `result` or `error`)")
        )
    if "result" in message:
        return Response(id, message["result"], None)
    error = message["error"] if isinstance(message["error"], dict) else {}
    code, text, data = error.get("code"), error.get("message"), error.get("data")
    failure = RpcError(
        code if isinstance(code, int) else -32603, str(text), data if isinstance(data, dict) else None
    )
    return Response(id, None, failure)


def _bad(message: str) -> RpcError:
    return RpcError.named("invalid_request", message)


def _oversized(frame: Oversized) -> RpcError:
    if frame.reason == "bad_header":
        return _bad("A header block without a valid Content-Length was skipped")
    if frame.reason == "no_memory":
        return no_memory()
    return RpcError.named(
        "message_too_large",
        f"A frame of {frame.size} bytes was skipped: it is over the limit that `initialize` advertises",
        params={"size": frame.size},
    )
