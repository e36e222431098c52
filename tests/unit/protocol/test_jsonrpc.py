"""What a message is: parsing never raises, and what was encoded is read as it was."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sidecar_protocol import jsonrpc
from sidecar_protocol.errors import CODES, RpcError
from sidecar_protocol.framing import Oversized
from sidecar_protocol.jsonrpc import Invalid, Message, Notification, Request, Response

_scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
_json = st.recursive(
    _scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8
)
_ids = st.text() | st.integers(-(2**53) + 1, 2**53 - 1)
_params = st.dictionaries(st.text(), _json, max_size=4)
_members = st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error", "extra"])
_near_messages = st.dictionaries(_members, _json | st.just("2.0"))


@given(st.binary())
def test_any_bytes_are_a_message_or_say_what_is_wrong(frame: bytes) -> None:
    assert isinstance(jsonrpc.parse(frame), get_args(Message))


@given(_near_messages)
def test_any_object_that_is_nearly_a_message_is_classified(message: dict[str, Any]) -> None:
    assert isinstance(jsonrpc.parse(json.dumps(message).encode()), get_args(Message))


@pytest.mark.parametrize(
    "frame",
    [
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"n":NaN}}',
        b'{"a":"\\ud800"}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"9" * 5_000,
        b'{"n":' + b"9" * 5_000 + b"}",
        b'"\xff\xfe"',
        b"{} {}",
        b"",
    ],
    ids=["nan", "surrogate", "deep list", "deep object", "digits", "long number", "utf-8", "two", "empty"],
)
def test_hostile_json_gets_an_error_without_an_id(frame: bytes) -> None:
    message = jsonrpc.parse(frame)

    assert isinstance(message, Invalid)
    assert message.id is None
    assert message.error.code in (CODES["parse_error"], CODES["invalid_request"])


@pytest.mark.parametrize("id", ["1.5", "true", "null", "[]", "{}", str(2**53), str(-(2**53))])
def test_an_id_that_is_no_string_or_small_integer_is_refused(id: str) -> None:
    message = jsonrpc.parse(f'{{"jsonrpc":"2.0","id":{id},"method":"ping"}}'.encode())

    assert isinstance(message, Invalid)
    assert (message.id, message.error.name) == (None, "invalid_request")


@given(_ids, st.text(), _params)
def test_a_request_is_read_as_it_was_written(id: str | int, method: str, params: dict[str, Any]) -> None:
    assert jsonrpc.parse(jsonrpc.request(id, method, params)) == Request(id, method, params)


@given(st.text(), _params)
def test_a_notification_is_read_as_it_was_written(method: str, params: dict[str, Any]) -> None:
    assert jsonrpc.parse(jsonrpc.notification(method, params)) == Notification(method, params)


@given(_ids, _json)
def test_a_result_is_read_as_it_was_written(id: str | int, result: Any) -> None:
    assert jsonrpc.parse(jsonrpc.success(id, result)) == Response(id, result, None)


@given(_ids, st.sampled_from(sorted(CODES)), st.text())
def test_an_error_is_read_as_it_was_written(id: str | int, name: str, text: str) -> None:
    error = RpcError.named(name, text, reason=None, params={"size": 1})

    message = jsonrpc.parse(jsonrpc.failure(id, error))

    assert isinstance(message, Response)
    assert message.error is not None
    assert (message.id, message.error.to_wire()) == (id, error.to_wire())


def test_a_batch_gets_one_error() -> None:
    message = jsonrpc.parse(b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]')

    assert isinstance(message, Invalid)
    assert (message.id, message.error.name) == (None, "invalid_request")


def test_positional_parameters_are_refused_with_the_id_of_the_request() -> None:
    message = jsonrpc.parse(b'{"jsonrpc":"2.0","id":7,"method":"ping","params":[1]}')

    assert isinstance(message, Invalid)
    assert (message.id, message.error.name) == (7, "invalid_params")


@pytest.mark.parametrize(
    ("reason", "name"), [("too_large", "message_too_large"), ("bad_header", "invalid_request")]
)
def test_a_skipped_frame_gets_an_error_without_an_id(reason: str, name: str) -> None:
    message = jsonrpc.parse(Oversized(99, reason))

    assert isinstance(message, Invalid)
    assert (message.id, message.error.name) == (None, name)


@pytest.mark.parametrize(
    ("frame", "told"),
    [
        (b'{"jsonrpc": "2.0", "id": 7, "method": "prompt/send", "params": {"text": "x"}}', Invalid),
        (b'{"jsonrpc": "2.0", "id": 7, "result": {"text": "x"}}', Response),
    ],
)
def test_who_waits_for_what_there_is_no_memory_for_is_told(
    monkeypatch: pytest.MonkeyPatch, frame: bytes, told: type
) -> None:
    monkeypatch.setattr(jsonrpc, "_decode", _no_memory)
    message = jsonrpc.parse(frame)
    assert isinstance(message, told)
    assert isinstance(message, Invalid | Response)
    assert message.error is not None
    assert (message.id, message.error.code, message.error.reason) == (7, CODES["storage"], "io")


@pytest.mark.parametrize("frame", [b'{"id": 7, "method": 5}', b"\xff", b"[" * 100_000, b""])
def test_nothing_is_raised_for_nonsense_without_memory(monkeypatch: pytest.MonkeyPatch, frame: bytes) -> None:
    monkeypatch.setattr(jsonrpc, "_decode", _no_memory)
    assert isinstance(jsonrpc.parse(frame), Invalid)


def _no_memory(frame: bytes) -> Any:
    raise MemoryError
