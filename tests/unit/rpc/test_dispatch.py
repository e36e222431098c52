"""A dispatcher of two methods behind a real peer: one answer a request, and which error an exception becomes."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from sidecar_protocol import jsonrpc
from sidecar_protocol import messages as m
from sidecar_protocol.catalog import METHODS, Method
from sidecar_protocol.errors import RpcError
from sidecar_protocol.messages.base import Empty
from sidecar_protocol.peer import Call, Peer

from sidecar.model.failures import Failure, ProviderFailed, Refused, StorageFailed
from sidecar.model.limits import MAX_TEXT_BYTES
from sidecar.rpc.dispatch import Dispatcher
from tests.support.patience import PATIENCE_S

Json = dict[str, Any]


class TwoMethods:
    """`ping` says so, raises `error`, or waits when `held`; `turn/cancel` gives its parameters back."""

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self.held = False
        self.mended = 0
        self.running = anyio.Event()
        self.release = anyio.Event()
        self.refused: RpcError | None = None
        self.sent: list[Json] = []
        self._answered = anyio.Event()

    async def ping(self, call: Call, params: Empty) -> Json:
        self.running.set()
        if self.held:
            await self.release.wait()
        if self.error:
            raise self.error
        return {"pong": True}

    async def cancel(self, call: Call, params: m.TurnCancelParams) -> Json:
        return {"chat": params.chat_id, "queue": params.queue}

    def admit(self, method: Method) -> None:
        if self.refused and method.name == "turn/cancel":
            raise self.refused

    async def recover(self, failure: Failure) -> bool:
        """Mend `error` when it says that it can be."""
        self.mended += 1
        if failure.reason == "corrupt":
            self.error = None if self.mended == 2 else self.error
        return failure.reason == "corrupt"

    def keep(self, frame: bytes) -> None:
        self.sent.append(json.loads(frame))
        self._answered.set()
        self._answered = anyio.Event()

    async def wait_sent(self, count: int) -> list[Json]:
        while len(self.sent) < count:
            await self._answered.wait()
        return self.sent


@asynccontextmanager
async def connection() -> AsyncIterator[tuple[TwoMethods, Peer]]:
    methods = TwoMethods()
    dispatcher = Dispatcher(
        METHODS,
        {"ping": methods.ping, "turn/cancel": methods.cancel},
        methods.admit,
        lambda params: {"chatId": params.chat_id} if isinstance(params, m.TurnCancelParams) else {},
        methods.recover,
    )
    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as tasks:
            yield methods, Peer(methods.keep, dispatcher.serve, lambda notification: None, tasks)


async def ask(method: str, error: BaseException | None = None, **params: Any) -> Json:
    """The one answer to a request with the id 1."""
    async with connection() as (methods, peer):
        methods.error = error
        peer.receive(jsonrpc.request(1, method, params))
        await methods.wait_sent(1)
    (answer,) = methods.sent
    return answer


def error(code: int, message: str, **data: Any) -> Json:
    return {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": message, "data": data}}


async def test_a_request_gets_what_its_handler_returns() -> None:
    assert await ask("ping") == {"jsonrpc": "2.0", "id": 1, "result": {"pong": True}}


async def test_parameters_reach_the_handler_typed_and_with_their_defaults() -> None:
    answer = await ask("turn/cancel", chatId="c")

    assert answer == {"jsonrpc": "2.0", "id": 1, "result": {"chat": "c", "queue": "pause"}}


UNKNOWN = {
    "pin": "There is no method 'pin'; did you mean ping?",
    "turn/cancle": "There is no method 'turn/cancle'; did you mean turn/cancel?",
    "": "There is no method ''; rpc.discover lists the methods",
    "__class__": "There is no method '__class__'; rpc.discover lists the methods",
    "chat/open": "There is no method 'chat/open'; rpc.discover lists the methods",
}


@pytest.mark.parametrize("name", UNKNOWN)
async def test_an_unknown_method_is_named_with_the_nearest_one(name: str) -> None:
    expected = error(-32601, UNKNOWN[name], name="method_not_found", retryable=False, params={"method": name})

    assert await ask(name) == expected


_QUEUE = 'one of "clear", "keep", "pause"'

WRONG: dict[str, tuple[Json, str, str, str]] = {
    "a number for a text": ({"chatId": 3}, "chatId", "Expected `str | null`, got `int`", "a string or null"),
    "a list for a text": ({"turnId": []}, "turnId", "Expected `str | null`, got `array`", "a string or null"),
    "an object for a text": (
        {"chatId": {}},
        "chatId",
        "Expected `str | null`, got `object`",
        "a string or null",
    ),
    "a word that is none of three": ({"queue": "drop"}, "queue", "Invalid enum value 'drop'", _QUEUE),
    "null for a word": ({"queue": None}, "queue", "Expected `str`, got `null`", _QUEUE),
}


@pytest.mark.parametrize("kind", WRONG)
async def test_a_wrong_type_is_named_with_what_is_allowed(kind: str) -> None:
    params, field, wrong, allowed = WRONG[kind]

    answer = await ask("turn/cancel", **params)

    assert answer == error(
        -32602,
        f"`{field}`: {wrong}; allowed: {allowed}",
        name="invalid_params",
        retryable=False,
        params={"field": field, "expected": allowed},
    )


async def test_an_unknown_parameter_is_named_with_the_nearest_one() -> None:
    answer = await ask("turn/cancel", chatID="c")

    assert answer["error"]["message"] == (
        "`chatID`: Object contains unknown field `chatID`; did you mean `chatId`?"
    )


async def test_a_parameter_of_a_method_without_any_is_refused() -> None:
    answer = await ask("ping", loud=True)

    assert answer["error"]["message"] == "`loud`: Object contains unknown field `loud`; known: none"


async def test_a_text_that_is_too_long_is_refused_before_the_handler() -> None:
    answer = await ask("turn/cancel", turnId="x" * (MAX_TEXT_BYTES + 1))

    assert (answer["error"]["code"], answer["error"]["data"]["params"]["field"]) == (-32602, "turnId")


UNEXPECTED = [
    KeyError("secret"),
    ValueError("secret"),
    RuntimeError("secret"),
    OSError(2, "secret"),
    ExceptionGroup("secret", [ValueError("secret")]),
    AssertionError("secret"),
]


@pytest.mark.parametrize("raised", UNEXPECTED, ids=lambda raised: type(raised).__name__)
async def test_an_unexpected_exception_is_told_by_a_ref_and_not_by_its_text(
    raised: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, "sidecar.rpc.dispatch"):
        answer = await ask("ping", raised)

    (record,) = caplog.records
    ref = record.__dict__["ref"]
    assert answer == error(
        -32603,
        "The sidecar failed; its log has the details under `ref`",
        name="internal_error",
        retryable=False,
        ref=ref,
    )
    assert len(ref) == 8
    assert record.exc_info is not None
    assert record.exc_info[1] is raised


FAILURES: list[tuple[Failure, int, Json]] = [
    (Refused("not_found", "No"), -32002, {"name": "not_found", "retryable": False}),
    (
        Refused("overloaded", "No", retryable=True, retry_after_ms=10),
        -32001,
        {"name": "overloaded", "retryable": True, "retryAfterMs": 10},
    ),
    (
        StorageFailed("full", "No", action="free_space"),
        -32015,
        {"name": "storage", "reason": "full", "retryable": False, "action": "free_space"},
    ),
    (
        ProviderFailed("no_key", "No"),
        -32013,
        {"name": "provider_error", "reason": "no_key", "retryable": False, "action": "enter_key"},
    ),
    (
        Refused("locked", "No", facts={"owner": {"pid": 3}}),
        -32011,
        {"name": "locked", "retryable": False, "owner": {"pid": 3}},
    ),
]


@pytest.mark.parametrize(("raised", "code", "data"), FAILURES, ids=lambda value: getattr(value, "name", ""))
async def test_a_failure_has_the_code_of_its_name(raised: Failure, code: int, data: Json) -> None:
    assert await ask("ping", raised) == error(code, "No", **data)


async def test_no_memory_is_a_failure_that_passes() -> None:
    expected = error(
        -32015, "No memory was left", name="storage", reason="io", retryable=True, action="retry"
    )

    assert await ask("ping", MemoryError()) == expected


async def test_a_refusal_before_the_handler_is_the_answer() -> None:
    async with connection() as (methods, peer):
        methods.refused = RpcError.named("not_initialized", "Send `initialize` first")
        peer.receive(jsonrpc.request(1, "turn/cancel", {"chatId": 3}))
        sent = await methods.wait_sent(1)

    assert sent == [error(-32005, "Send `initialize` first", name="not_initialized", retryable=False)]


async def test_an_error_says_which_chat_it_is_about() -> None:
    async def refuse(call: Call, params: m.TurnCancelParams) -> Json:
        raise Refused("not_found", "No such chat")

    dispatcher = Dispatcher(
        METHODS,
        {"turn/cancel": refuse},
        lambda method: None,
        lambda params: {"chatId": params.chat_id},
    )

    with pytest.raises(RpcError) as raised:
        await dispatcher.serve(Call(jsonrpc.Request(1, "turn/cancel", {"chatId": "c"})))

    assert raised.value.data == {"name": "not_found", "retryable": False, "chatId": "c"}


async def test_a_call_is_served_again_after_its_failure_was_mended() -> None:
    answer = await ask("ping", StorageFailed("corrupt", "damaged"))

    assert answer["result"] == {"pong": True}


async def test_a_failure_that_cannot_be_mended_is_the_answer() -> None:
    answer = await ask("ping", StorageFailed("io", "The disk failed"))

    assert answer["error"]["data"]["reason"] == "io"


async def test_a_cancelled_request_gets_one_answer_that_says_so() -> None:
    async with connection() as (methods, peer):
        methods.held = True
        peer.receive(jsonrpc.request(1, "ping", {}))
        await methods.running.wait()
        peer.receive(jsonrpc.notification("$/cancelRequest", {"id": 1}))
        sent = await methods.wait_sent(1)

    message = "Cancelled by the side that asked"
    assert sent == [error(-32800, message, name="request_cancelled", retryable=False)]


async def test_a_request_that_waits_holds_no_other_up() -> None:
    async with connection() as (methods, peer):
        methods.held = True
        peer.receive(jsonrpc.request(1, "ping", {}))
        peer.receive(jsonrpc.request(2, "turn/cancel", {}))
        await methods.wait_sent(1)
        methods.release.set()
        sent = await methods.wait_sent(2)

    assert [answer["id"] for answer in sent] == [2, 1]
