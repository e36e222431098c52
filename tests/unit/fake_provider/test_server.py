"""The fake as a server: what it refuses of any API, what it remembers, and how it notices that a client leaves."""

from __future__ import annotations

import socket

import anyio
import pytest

from sidecar.fake_provider import FakeProvider, in_thread
from tests.support.patience import PATIENCE_S
from tests.support.processes import within

from .raw import APIS, KEY, ask, headers_of, post, request, send


@pytest.mark.parametrize("api", APIS)
async def test_bodies_that_are_no_json_are_refused(fake: FakeProvider, api: str) -> None:
    path = request(api, "", stream=False)[0]
    for body in (b"{", b"[]", b'"\xff"', b'{"a": "\\ud800"}', b'{"a": NaN}', b""):
        answer = await send(fake, "POST", path, body, headers_of(api))
        assert (answer.status, "error" in answer.json) == (400, True), body


@pytest.mark.parametrize("api", APIS)
async def test_another_content_type_is_refused(fake: FakeProvider, api: str) -> None:
    path, body = request(api, "hi")
    answer = await send(fake, "POST", path, body, headers_of(api) | {"content-type": "text/plain"})
    assert (answer.status, "error" in answer.json) == (400, True)


@pytest.mark.parametrize("api", APIS)
async def test_a_missing_key_is_refused_in_the_apis_shape(fake: FakeProvider, api: str) -> None:
    path, body = request(api, "hi")
    answer = await send(fake, "POST", path, body, {"anthropic-version": "2023-06-01"})
    assert (answer.status, "error" in answer.json) == (403 if api == "gemini" else 401, True)


@pytest.mark.parametrize("api", APIS)
async def test_without_a_key_of_its_own_the_fake_demands_none(api: str) -> None:
    path, body = request(api, "hi")
    async with FakeProvider() as fake:
        assert (await send(fake, "POST", path, body, {"anthropic-version": "2023-06-01"})).status == 200


@pytest.mark.parametrize("api", APIS)
async def test_a_body_beyond_the_limit_is_refused_with_413(api: str) -> None:
    async with FakeProvider(body_limit=1000) as fake:
        assert (await ask(fake, api, "x" * 2000)).status == 413
        assert (await ask(fake, api, "hi")).status == 200


async def test_a_request_is_recorded_with_all_that_a_test_may_ask(fake: FakeProvider) -> None:
    await post(fake, "openai-chat", {"model": "fake-1", "messages": [{"role": "user", "content": "hi"}]})
    [seen] = fake.requests
    assert (seen.api, seen.method, seen.path) == ("openai-chat", "POST", "/v1/chat/completions")
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    assert seen.json["messages"][0]["content"] == "hi"
    assert (seen.status, seen.fault, seen.rule, seen.closed_early) == (200, None, None, False)


async def test_an_error_of_the_test_comes_out_as_it_is() -> None:
    async def fail() -> None:
        async with FakeProvider():
            raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        await fail()


async def test_a_test_that_is_cancelled_takes_the_fake_with_it() -> None:
    with anyio.move_on_after(0.05) as scope:
        async with FakeProvider() as fake:
            await ask(fake, "ollama", "[[fault=hang_mid]]")
    assert scope.cancelled_caught


async def test_one_connection_serves_request_after_request_also_those_sent_ahead(fake: FakeProvider) -> None:
    one = b"GET /api/version HTTP/1.1\r\nhost: x\r\nauthorization: Bearer " + KEY.encode() + b"\r\n"
    async with await anyio.connect_tcp(fake.host, fake.port) as stream:
        await stream.send((one + b"\r\n") * 2 + one + b"connection: close\r\n\r\n")
        with anyio.fail_after(PATIENCE_S):
            received = b"".join([data async for data in stream])
    assert received.count(b"200 OK") == 3
    assert [seen.connection for seen in fake.requests] == [1, 1, 1]


async def test_one_can_wait_for_a_request(fake: FakeProvider) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, fake, "ollama", "first")
        with anyio.fail_after(PATIENCE_S):
            assert (await fake.wait_for(1)).api == "ollama"


@pytest.mark.parametrize("api", APIS)
async def test_a_client_that_leaves_in_the_middle_is_noticed_at_once(fake: FakeProvider, api: str) -> None:
    answer = await ask(fake, api, "[[n=1000]][[delay=30]]", patience=0.15)
    assert answer.hung
    with anyio.fail_after(PATIENCE_S), within(0.5):
        await fake.requests[0].ended.wait()
    assert fake.requests[0].closed_early
    assert 0 < fake.requests[0].sent < 30


async def test_a_client_that_reads_to_the_end_did_not_leave_early(fake: FakeProvider) -> None:
    for _ in range(20):
        await ask(fake, "anthropic", "[[n=5]]")
    assert not any(seen.closed_early for seen in fake.requests)


def test_code_that_is_not_async_gets_a_fake_on_a_thread() -> None:
    with (
        in_thread(key=None) as fake,
        socket.create_connection((fake.host, fake.port), timeout=PATIENCE_S) as client,
    ):
        client.sendall(b"GET /api/version HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        assert b'{"version":' in client.makefile("rb").read()


async def test_one_can_look_at_the_requests_and_queue_faults_from_outside(fake: FakeProvider) -> None:
    queued = await send(fake, "POST", "/_fake/faults", {"name": "overloaded"}, {})
    assert queued.status == 200
    assert (await ask(fake, "anthropic", "hi")).status == 529
    [seen] = (await send(fake, "GET", "/_fake/requests", b"", {})).json
    assert (seen["api"], seen["fault"], seen["headers"]["x-api-key"]) == ("anthropic", "overloaded", "…")
    assert (await send(fake, "POST", "/_fake/faults", {"name": "nonsense"}, {})).status == 400


async def test_an_address_of_no_api_is_not_found(fake: FakeProvider) -> None:
    assert (await send(fake, "GET", "/v2/nothing", b"", {})).status == 404
