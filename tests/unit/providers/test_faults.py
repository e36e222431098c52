"""What each vendor's error means: its reason, whether to try again and when, and never a key in its words."""

from __future__ import annotations

import time
from email.utils import formatdate

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.model.failures import ProviderFailed
from sidecar.providers.endpoint import Endpoint
from sidecar.providers.http.errors import (
    MAX_MESSAGE,
    ProviderError,
    classify,
    failure,
    parse_error_body,
    parse_error_document,
    retry_after,
)
from sidecar.system import redact

KEY = "sk-planted-0123456789/+ä"
HERE = Endpoint("openai", "openai", "https://api.openai.com/v1", True, KEY, "environment", "OPENAI_API_KEY")


def judge(status: int, document: object) -> ProviderFailed:
    code, message = parse_error_body(msgspec.json.encode(document))
    return classify(ProviderError(status, code, message), HERE, "some-model")


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2000),
        ({"retry-after": "0.5"}, 500),
        ({"retry-after": " 3 "}, 3000),
        ({"retry-after": "-1"}, 0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after-ms": "20"}, 20),
        ({"retry-after-ms": "20.7", "retry-after": "9"}, 20),
        ({"retry-after-ms": "x", "retry-after": "9"}, 9000),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0),
        ({"retry-after": "Thu, 99 Foo 2026 00:00:00 GMT"}, None),
    ],
)
def test_when_to_try_again(headers: dict[str, str], expected: int | None) -> None:
    assert retry_after(headers) == expected


def test_a_date_to_try_again_is_counted_from_now() -> None:
    wait = retry_after({"retry-after": formatdate(time.time() + 30, usegmt=True)})
    assert wait is not None
    assert 25_000 < wait <= 30_000


@given(st.text(max_size=30))
def test_no_header_is_too_odd(value: str) -> None:
    assert (retry_after({"retry-after": value, "retry-after-ms": value}) or 0) >= 0


def _openai(message: str, code: str | None = None, kind: str = "invalid_request_error") -> object:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _anthropic(message: str, kind: str) -> object:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


def _google(code: int, message: str, status: str) -> object:
    return {"error": {"code": code, "message": message, "status": status}}


VENDORS: list[tuple[int, object, str]] = [
    (
        400,
        _openai(
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
            "context_length_exceeded",
        ),
        "window",
    ),
    (401, _openai("Incorrect API key provided: sk-abc.", "invalid_api_key"), "bad_key"),
    (
        404,
        _openai("The model `gpt-9` does not exist or you do not have access to it.", "model_not_found"),
        "model_unknown",
    ),
    (400, _openai("invalid model ID"), "model_unknown"),
    (
        429,
        _openai(
            "You exceeded your current quota, please check your plan and billing details.",
            "insufficient_quota",
            "insufficient_quota",
        ),
        "quota",
    ),
    (
        429,
        _openai("Rate limit reached for gpt-5 on tokens per min (TPM)", "rate_limit_exceeded", "tokens"),
        "rate_limit",
    ),
    (
        400,
        _openai(
            "Invalid prompt: your prompt was flagged as potentially violating our usage policy.",
            "invalid_prompt",
        ),
        "refused",
    ),
    (400, _openai("Unknown parameter: 'foo'.", "unknown_parameter"), "bad_reply"),
    (
        500,
        _openai("The server had an error while processing your request.", None, "server_error"),
        "overloaded",
    ),
    (503, _openai("The engine is currently overloaded", None, "server_error"), "overloaded"),
    (
        400,
        _anthropic("prompt is too long: 210000 tokens > 200000 maximum", "invalid_request_error"),
        "window",
    ),
    (
        400,
        _anthropic("Your credit balance is too low to access the Anthropic API.", "invalid_request_error"),
        "quota",
    ),
    (401, _anthropic("invalid x-api-key", "authentication_error"), "bad_key"),
    (
        403,
        _anthropic(
            "Your API key does not have permission to use the specified resource.", "permission_error"
        ),
        "bad_key",
    ),
    (404, _anthropic("model: claude-9", "not_found_error"), "model_unknown"),
    (413, _anthropic("Request exceeds the maximum size", "request_too_large"), "window"),
    (
        429,
        _anthropic("This request would exceed your account's rate limit.", "rate_limit_error"),
        "rate_limit",
    ),
    (500, _anthropic("Internal server error", "api_error"), "overloaded"),
    (529, _anthropic("Overloaded", "overloaded_error"), "overloaded"),
    (400, _google(400, "API key not valid. Please pass a valid API key.", "INVALID_ARGUMENT"), "bad_key"),
    (403, _google(403, "Method doesn't allow unregistered callers.", "PERMISSION_DENIED"), "bad_key"),
    (
        400,
        _google(
            400,
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            "INVALID_ARGUMENT",
        ),
        "window",
    ),
    (404, _google(404, "models/gemini-9 is not found for API version v1beta.", "NOT_FOUND"), "model_unknown"),
    (
        429,
        _google(429, "Resource has been exhausted (e.g. check quota).", "RESOURCE_EXHAUSTED"),
        "rate_limit",
    ),
    (503, _google(503, "The model is overloaded. Please try again later.", "UNAVAILABLE"), "overloaded"),
    (504, _google(504, "Deadline exceeded", "DEADLINE_EXCEEDED"), "timeout"),
    (404, {"error": "model 'llama9' not found"}, "model_unknown"),
    (400, {"error": '"llama3" does not support tools'}, "bad_reply"),
    (500, {"error": "llama runner process has terminated"}, "overloaded"),
    (
        400,
        {
            "object": "error",
            "message": "This model's maximum context length is 4096 tokens.",
            "type": "BadRequestError",
            "code": 400,
        },
        "window",
    ),
    (
        404,
        {"object": "error", "message": "The model `x` does not exist.", "type": "NotFoundError", "code": 404},
        "model_unknown",
    ),
    (402, {"error": {"message": "Insufficient credits", "code": 402}}, "quota"),
    (
        402,
        {
            "error": {
                "message": "Insufficient Balance",
                "type": "unknown_error",
                "code": "invalid_request_error",
            }
        },
        "quota",
    ),
    (403, {"error": {"message": "Your input was flagged by moderation", "code": 403}}, "refused"),
    (422, {"detail": [{"loc": ["body", "messages"], "msg": "field required"}]}, "bad_reply"),
    (405, {"detail": "Method Not Allowed"}, "bad_reply"),
]
"""A status and an error document as each vendor and the well-known servers write them, and the contract's reason."""


@pytest.mark.parametrize(("status", "document", "reason"), VENDORS)
def test_each_vendors_error_has_its_reason(status: int, document: object, reason: str) -> None:
    classify = judge(status, document)

    assert classify.reason == reason
    assert classify.retryable == (reason in ("rate_limit", "overloaded", "timeout"))
    assert classify.message != f"openai: HTTP status {status}", "its words were lost"
    assert classify.action


NAMED_WINDOWS = {
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 8351 tokens.": 8192,
    "prompt is too long: 210000 tokens > 200000 maximum": 200_000,
    "input length and `max_tokens` exceed context limit: 199000 + 20000 > 200000, decrease input length": 200_000,
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).": 1_048_576,
    "request (5,000 tokens) exceeds the available context size (4,096 tokens), try increasing it": 4096,
    "Prompt contains 40000 tokens, too large for model with 32768 maximum context length": 32_768,
    "`inputs` must have less than 1024 tokens. Given: 2000": 1024,
    "the input length exceeds the context length": None,
    "Your input exceeds the context window of this model.": None,
}


@pytest.mark.parametrize(("words", "window"), NAMED_WINDOWS.items())
def test_the_window_that_a_refusal_names_is_reported(words: str, window: int | None) -> None:
    failed = classify(ProviderError(400, "", words), HERE)
    assert (failed.reason, (failed.params or {}).get("window")) == ("window", window)


def test_a_list_around_the_error_is_looked_through() -> None:
    assert (
        parse_error_body(msgspec.json.encode([_google(429, "Slow down", "RESOURCE_EXHAUSTED")]))[1]
        == "Slow down"
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", ""),
        (b"upstream connect error", "upstream connect error"),
        (b"<html><head><title>502 Bad\nGateway</title></head><body>nginx</body></html>", "502 Bad Gateway"),
        (b"<h1>Not  here</h1>", "Not here"),
        (b"\xff\xfe", "��"),
        (b"[]", ""),
        (b"null", ""),
        (b'"oh"', ""),
        (b'{"error": null}', ""),
        (b'{"error": {"message": {"a": 1}}}', '{"a":1}'),
    ],
)
def test_a_body_that_is_no_error_document(body: bytes, message: str) -> None:
    assert parse_error_body(body)[1] == message


@pytest.mark.parametrize(
    "control", ["\x1b[2J", "\x07", "\x9b1m", "\u202e", "\u2028", "\x00"], ids=lambda text: ascii(text)
)
def test_control_characters_of_a_provider_do_not_reach_its_message(control: str) -> None:
    failure = classify(ProviderError(400, "", f"Too{control} long"), HERE)

    assert failure.message.isprintable()
    assert failure.message.startswith("openai: Too ")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["error", "message", "code", "type", "detail"]), inner, max_size=3)
    ),
)


@given(JSON, st.integers(300, 599))
def test_any_document_is_a_failure_in_words(document: object, status: int) -> None:
    code, message = parse_error_document(document)
    failure = classify(ProviderError(status, code, message), HERE)
    assert failure.reason
    assert len(failure.message) <= MAX_MESSAGE + 20
    assert failure.message.isprintable()


def test_a_key_that_is_echoed_is_hidden() -> None:
    redact.add_secrets([KEY])
    for said in (f"Incorrect API key provided: {KEY}.", f"…{KEY}…{KEY}", msgspec.json.encode(KEY).decode()):
        told = failure("bad_key", said, HERE)
        assert KEY not in f"{told.message} {told.hint} {told.params}"
        assert redact.HIDDEN in told.message


def test_a_key_at_the_edge_of_what_is_kept_is_hidden() -> None:
    redact.add_secrets([KEY])
    for before in range(MAX_MESSAGE - len(KEY) - 5, MAX_MESSAGE + 1):
        told = failure("bad_key", "x" * before + KEY, HERE)
        assert KEY[:8] not in told.message


def test_a_refusal_without_a_key_asks_for_one() -> None:
    told = classify(ProviderError(401, "", "Unauthorized"), msgspec.structs.replace(HERE, key=None))
    assert (told.reason, told.action) == ("no_key", "enter_key")
    assert "OPENAI_API_KEY" in str(told.hint)
