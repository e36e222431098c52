"""Every fault does what its line says, in every API that knows it; the harmless ones lose nothing."""

from __future__ import annotations

import gzip
import socket
from email.utils import parsedate_to_datetime
from functools import partial

import anyio
import pytest

from sidecar.fake_provider import FAULTS, FakeProvider, find_fault, unused_port
from sidecar.fake_provider.fault_kinds import HUGE
from tests.support.patience import PATIENCE_S
from tests.support.processes import within

from .raw import APIS, Answer, ask, get

PROMPT = "[[say=one two three four]]"
STATUSES = {
    "bad_request": 400,
    "unauthorized": 401,
    "payment_required": 402,
    "forbidden": 403,
    "model_not_found": 404,
    "request_timeout": 408,
    "too_large": 413,
    "rate_limit": 429,
    "rate_limit_seconds": 429,
    "rate_limit_date": 429,
    "rate_limit_ms": 429,
    "rate_limit_long": 429,
    "quota": 429,
    "server_error": 500,
    "bad_gateway_html": 502,
    "unavailable": 503,
    "overloaded": 529,
    "context_exceeded": 400,
    "redirect": 302,
}
UNANSWERED = ("accept_close", "close_after_request", "reset_before_headers", "cut_headers")
CUT = ("reset_mid", "cut_event", "cut_utf8", "cut_before_end", "broken_chunk", "short_body")
HANGING = ("hang_before_headers", "hang_after_headers", "hang_mid", "hang_before_end", "keepalive_forever")


async def play(fake: FakeProvider, api: str, fault: str, *, stream: bool = True) -> Answer:
    return await ask(
        fake,
        api,
        f"{PROMPT}[[fault={fault}]]",
        stream=stream,
        patience=0.15 if fault in HANGING else PATIENCE_S,
    )


@pytest.mark.sampled(1)
@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_every_fault_plays_without_breaking_the_fake(
    fake: FakeProvider, api: str, stream: bool
) -> None:
    known = {name for name, fault in FAULTS.items() if fault.apis is None or api in fault.apis}
    async with anyio.create_task_group() as tasks:
        for name in known:
            tasks.start_soon(partial(play, fake, api, name, stream=stream))
    assert {seen.fault for seen in fake.requests} == known
    assert (await ask(fake, api, "still there?")).status == 200


@pytest.mark.parametrize("api", APIS)
async def test_a_status_comes_with_the_apis_own_error(fake: FakeProvider, api: str) -> None:
    for fault, status in STATUSES.items():
        answer = await play(fake, api, fault)
        assert answer.status == status, fault
        if fault not in ("bad_gateway_html", "redirect"):
            assert answer.headers["content-type"] == "application/json"
            assert "error" in answer.json


@pytest.mark.parametrize("api", APIS)
async def test_a_connection_that_breaks_off_leaves_the_answer_incomplete(
    fake: FakeProvider, api: str
) -> None:
    for fault in UNANSWERED:
        answer = await play(fake, api, fault)
        assert (answer.status, bool(answer.broken)) == (None, True), fault
    for fault in CUT:
        answer = await play(fake, api, fault)
        assert answer.broken, fault


@pytest.mark.parametrize("api", APIS)
async def test_a_fault_that_hangs_keeps_the_connection_open(fake: FakeProvider, api: str) -> None:
    async def hang(fault: str) -> None:
        answer = await play(fake, api, fault)
        assert answer.hung, fault

    async with anyio.create_task_group() as tasks:
        for fault in HANGING:
            tasks.start_soon(hang, fault)
    for seen in fake.requests:
        with anyio.fail_after(PATIENCE_S), within(1):
            await seen.ended.wait()
        assert seen.closed_early, seen.fault


@pytest.mark.parametrize("api", ["openai-chat", "openai-responses", "anthropic"])
async def test_an_error_event_comes_at_the_start_or_after_some_deltas(fake: FakeProvider, api: str) -> None:
    at_start = await play(fake, api, "error_at_start")
    middle = await play(fake, api, "error_mid")
    assert (at_start.status, middle.status) == (200, 200)
    assert (len(at_start.events), len(middle.events) > 2) == (1, True)
    assert "verloaded" in str(at_start.events[0])
    assert "verloaded" in str(middle.events[-1])


async def test_retry_after_comes_in_seconds_as_a_date_and_in_milliseconds(fake: FakeProvider) -> None:
    assert (await play(fake, "anthropic", "rate_limit_seconds")).headers["retry-after"] == "1"
    date = (await play(fake, "anthropic", "rate_limit_date")).headers["retry-after"]
    assert parsedate_to_datetime(date).tzinfo is not None
    assert (await play(fake, "anthropic", "rate_limit_ms")).headers["retry-after-ms"] == "150"


async def test_quota_and_rate_limit_differ_in_their_code(fake: FakeProvider) -> None:
    assert (await play(fake, "openai-chat", "quota")).json["error"]["code"] == "insufficient_quota"
    assert (await play(fake, "openai-chat", "rate_limit")).json["error"]["code"] == "rate_limit_exceeded"


async def test_a_cut_utf8_character_and_invalid_bytes_cannot_be_decoded(fake: FakeProvider) -> None:
    for fault in ("cut_utf8", "invalid_utf8"):
        answer = await play(fake, "openai-chat", fault)
        with pytest.raises(UnicodeDecodeError):
            answer.body.decode()


async def test_a_stream_without_its_end_is_complete_for_http_only(fake: FakeProvider) -> None:
    answer = await play(fake, "anthropic", "end_without_terminal")
    assert answer.broken is None
    assert "message_stop" not in [event["type"] for event in answer.events]


async def test_odd_bodies_are_what_their_names_say(fake: FakeProvider) -> None:
    assert (await play(fake, "openai-chat", "empty_body")).body == b""
    assert (await play(fake, "openai-chat", "json_not_stream")).json["object"] == "chat.completion"
    assert b"<html>" in (await play(fake, "openai-chat", "html_200")).body
    assert b"[DONE]" in gzip.decompress((await play(fake, "openai-chat", "gzip")).body)
    assert len((await play(fake, "openai-chat", "huge_event")).body) > HUGE
    assert (await play(fake, "openai-chat", "wrong_content_type")).headers["content-type"] == "text/plain"


async def test_line_ends_are_as_the_fault_names_them(fake: FakeProvider) -> None:
    assert b"\r\n\r\n" in (await play(fake, "openai-chat", "crlf")).body
    body = (await play(fake, "openai-chat", "cr")).body
    assert (b"\r\r" in body, b"\n" in body) == (True, False)
    assert b'data: {\ndata:  "id"' in (await play(fake, "openai-chat", "multi_line")).body


async def test_tool_calls_go_wrong_as_named(fake: FakeProvider) -> None:
    def calls(answer: Answer) -> list[dict[str, object]]:
        found: list[dict[str, object]] = answer.json["choices"][0]["message"]["tool_calls"]
        return found

    twice = calls(await play(fake, "openai-chat", "duplicate_tool_id", stream=False))
    assert twice[0]["id"] == twice[1]["id"]
    assert "id" not in calls(await play(fake, "openai-chat", "no_tool_id", stream=False))[0]
    nameless = calls(await play(fake, "openai-chat", "empty_tool_name", stream=False))[0]
    assert nameless["function"] == {"name": "", "arguments": '{"where": "door"}'}


async def test_a_fault_with_a_number_ends_after_that_many_requests(fake: FakeProvider) -> None:
    prompt = "[[say=hi]][[fault=server_error*2]]"
    assert [(await ask(fake, "openai-chat", prompt)).status for _ in range(3)] == [500, 500, 200]


async def test_a_test_can_queue_faults_for_one_api(fake: FakeProvider) -> None:
    fake.fault("overloaded", 2, api="anthropic")
    assert (await ask(fake, "ollama", "hi")).status == 200
    assert [(await ask(fake, "anthropic", "hi")).status for _ in range(3)] == [529, 529, 200]


async def test_a_list_of_models_fails_when_its_path_is_named(fake: FakeProvider) -> None:
    fake.fault("server_error", path="/v1/models")
    assert (await ask(fake, "openai-chat", "hi")).status == 200
    assert [(await get(fake, "openai-chat", "/v1/models")).status for _ in range(2)] == [500, 200]


async def test_accept_close_closes_before_a_request_is_sent(fake: FakeProvider) -> None:
    fake.fault("accept_close")
    async with await anyio.connect_tcp(fake.host, fake.port) as stream:
        with anyio.fail_after(PATIENCE_S), within(1), pytest.raises(anyio.EndOfStream):
            await stream.receive()


async def test_an_unknown_fault_is_refused_by_name(fake: FakeProvider) -> None:
    answer = await ask(fake, "openai-chat", "[[fault=nonsense]]")
    assert (answer.status, "nonsense" in answer.json["error"]["message"]) == (400, True)
    with pytest.raises(ValueError, match="makes no sense for ollama"):
        find_fault("no_tool_id", "ollama")


def test_nobody_listens_on_an_unused_port() -> None:
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", unused_port()))
