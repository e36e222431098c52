"""One duplex end: every request gets exactly one answer, whatever becomes of its handler."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from anyio.abc import TaskGroup
from sidecar_protocol import jsonrpc
from sidecar_protocol.errors import CODES, RpcError
from sidecar_protocol.jsonrpc import Notification
from sidecar_protocol.peer import Call, Peer

from tests.support.patience import PATIENCE_S

Json = dict[str, Any]


class End:
    """A peer whose frames are kept in a list, and what it heard."""

    def __init__(self, tasks: TaskGroup, serve: Callable[[Call], Awaitable[Any]]) -> None:
        self.sent: list[Json] = []
        self.heard: list[Notification] = []
        self.peer = Peer(self._keep, serve, self.heard.append, tasks)

    def _keep(self, frame: bytes) -> None:
        self.sent.append(json.loads(frame))

    def ask(self, id: str | int, method: str = "work", **params: Any) -> None:
        self.peer.receive(jsonrpc.request(id, method, params))

    def tell(self, method: str, **params: Any) -> None:
        self.peer.receive(jsonrpc.notification(method, params))


class Desk:
    """A handler that does what the method's name says, and can be watched while it works."""

    def __init__(self) -> None:
        self.working = anyio.Event()
        self.finish = anyio.Event()

    async def serve(self, call: Call) -> Any:
        match call.method:
            case "fail":
                raise RpcError.named("not_found", "No such thing")
            case "wait":
                self.working.set()
                await self.finish.wait()
        return {"method": call.method, **call.params}


@asynccontextmanager
async def end() -> AsyncIterator[tuple[End, Desk]]:
    environment = Desk()
    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as tasks:
            yield End(tasks, environment.serve), environment


def outcomes(sent: list[Json]) -> list[tuple[Any, Any]]:
    """Each answer as its id and its result, or the name of its error."""
    return [(m["id"], m["result"] if "result" in m else m["error"]["data"]["name"]) for m in sent]


async def test_a_handler_that_returns_is_one_result() -> None:
    async with end() as (side, _):
        side.ask("a", text="x")

    assert outcomes(side.sent) == [("a", {"method": "work", "text": "x"})]


async def test_a_handler_that_raises_is_one_error() -> None:
    async with end() as (side, _):
        side.ask(1, "fail")

    assert outcomes(side.sent) == [(1, "not_found")]


async def test_a_request_that_the_client_cancels_answers_request_cancelled_once() -> None:
    async with end() as (side, environment):
        side.ask(1, "wait")
        await environment.working.wait()
        side.tell("$/cancelRequest", id=1)
        side.tell("$/cancelRequest", id=1)

    assert outcomes(side.sent) == [(1, "request_cancelled")]
    assert side.sent[0]["error"]["code"] == -32800


async def test_a_cancel_that_comes_too_late_or_names_nothing_changes_nothing() -> None:
    async with end() as (side, _):
        side.ask(1)
        await anyio.wait_all_tasks_blocked()
        unknown: list[Any] = [1, 2, None, [], "1"]
        for id in unknown:
            side.tell("$/cancelRequest", id=id)

    assert outcomes(side.sent) == [(1, {"method": "work"})]


async def test_a_request_whose_task_group_is_cancelled_answers_server_cancelled() -> None:
    environment = Desk()
    async with anyio.create_task_group() as tasks:
        side = End(tasks, environment.serve)
        side.ask(1, "wait")
        await environment.working.wait()
        tasks.cancel_scope.cancel()

    assert outcomes(side.sent) == [(1, "server_cancelled")]


async def test_a_request_that_had_no_time_to_begin_is_answered_when_its_task_group_is_cancelled() -> None:
    async with anyio.create_task_group() as tasks:
        side = End(tasks, Desk().serve)
        side.ask(1, "wait")
        tasks.cancel_scope.cancel()

    assert outcomes(side.sent) == [(1, "server_cancelled")]


async def test_idle_waits_until_every_request_has_its_answer() -> None:
    async with end() as (side, environment):
        side.ask(1, "wait")
        side.ask(2, "wait")
        await environment.working.wait()
        environment.finish.set()
        await side.peer.idle()

        assert (len(side.sent), side.peer.inflight) == (2, 0)


async def test_an_id_in_use_is_refused_and_the_first_request_still_answered() -> None:
    async with end() as (side, environment):
        side.ask(1, "wait")
        await environment.working.wait()
        side.ask(1)
        environment.finish.set()

    assert outcomes(side.sent) == [(1, "invalid_request"), (1, {"method": "wait"})]


async def test_an_id_may_be_used_again_after_its_answer() -> None:
    async with end() as (side, _):
        side.ask(1)
        await anyio.wait_all_tasks_blocked()
        side.ask(1)

    assert [id for id, _ in outcomes(side.sent)] == [1, 1]


async def test_after_refuse_new_requests_get_that_error_and_those_under_way_their_result() -> None:
    async with end() as (side, environment):
        side.ask(1, "wait")
        await environment.working.wait()
        side.peer.refuse(RpcError.named("shutting_down", "Leaving"))
        side.ask(2)
        environment.finish.set()

    assert outcomes(side.sent) == [(2, "shutting_down"), (1, {"method": "wait"})]


async def test_what_waits_for_the_answer_runs_after_it_and_once() -> None:
    order: list[str] = []

    async def serve(call: Call) -> None:
        call.after_answer(lambda: order.append(f"after {len(side.sent)} sent"))

    async with anyio.create_task_group() as tasks:
        side = End(tasks, serve)
        side.ask(1)

    assert order == ["after 1 sent"]


async def test_calls_begin_in_the_order_of_their_frames() -> None:
    begun: list[Any] = []

    async def serve(call: Call) -> None:
        begun.append(call.id)

    async with anyio.create_task_group() as tasks:
        side = End(tasks, serve)
        for id in range(50):
            side.ask(id)

    assert begun == list(range(50))


@pytest.mark.parametrize(
    ("frame", "code"),
    [(b"{nope", CODES["parse_error"]), (b"[]", CODES["invalid_request"]), (b"7", CODES["invalid_request"])],
)
async def test_nonsense_is_answered_without_an_id(frame: bytes, code: int) -> None:
    async with end() as (side, _):
        side.peer.receive(frame)

    assert [(m["id"], m["error"]["code"]) for m in side.sent] == [(None, code)]


async def test_a_response_to_nothing_asked_is_ignored() -> None:
    async with end() as (side, _):
        side.peer.receive(jsonrpc.success(99, "?"))
        side.peer.receive(jsonrpc.failure("x", RpcError.named("not_found", "?")))

    assert side.sent == []


async def test_a_notification_is_heard_and_not_answered() -> None:
    async with end() as (side, _):
        side.tell("exit")

    assert (side.heard, side.sent) == ([Notification("exit", {})], [])


@asynccontextmanager
async def pair() -> AsyncIterator[tuple[Peer, Peer, Desk]]:
    """Two peers in one process, each writing into the other; the second one has handlers."""
    environment = Desk()
    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as tasks:
            client = Peer(lambda frame: server.receive(frame), environment.serve, lambda _: None, tasks)
            server = Peer(client.receive, environment.serve, lambda _: None, tasks)
            yield client, server, environment
            tasks.cancel_scope.cancel()


async def test_a_request_of_ours_returns_the_other_sides_result() -> None:
    async with pair() as (client, _, _):
        assert await client.request("work", {"n": 1}) == {"method": "work", "n": 1}


async def test_a_request_of_ours_raises_the_other_sides_error() -> None:
    async with pair() as (client, _, _):
        with pytest.raises(RpcError) as refused:
            await client.request("fail", {})

    assert refused.value.name == "not_found"


async def test_leaving_the_wait_cancels_the_request_on_the_other_side() -> None:
    async with pair() as (client, server, environment):
        async with anyio.create_task_group() as waiting:
            waiting.start_soon(client.request, "wait", {})
            await environment.working.wait()
            waiting.cancel_scope.cancel()
        await anyio.wait_all_tasks_blocked()

        assert server.inflight == 0


async def test_requests_that_wait_when_the_connection_ends_fail_with_its_error() -> None:
    async with pair() as (client, _, environment), anyio.create_task_group() as waiting:
        failed: list[RpcError] = []
        waiting.start_soon(_fail_to_ask, client, failed)
        await environment.working.wait()
        client.refuse(RpcError.named("shutting_down", "Gone"))

    assert [error.name for error in failed] == ["shutting_down"]


async def _fail_to_ask(peer: Peer, failed: list[RpcError]) -> None:
    try:
        await peer.request("wait", {})
    except RpcError as error:
        failed.append(error)


async def test_an_error_without_an_id_is_not_answered() -> None:
    """Otherwise two peers would answer each other's complaints for ever."""
    async with end() as (side, _):
        side.peer.receive(jsonrpc.failure(None, RpcError.named("parse_error", "Not JSON")))

    assert side.sent == []
