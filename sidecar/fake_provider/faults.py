"""The table of faults: a name, one line about it, and how it is played. A fault exists because it is in `FAULTS`.

Most need no code of their own: `fault_kinds` builds them. Some are harmless on purpose (`harmless`): unusual but
legal traffic that a client must accept.
"""

from __future__ import annotations

from email.utils import formatdate
from time import time

from . import fault_kinds as kinds
from .exchange import Exchange
from .fault_kinds import Fault
from .values import Rejected

RETRY_AFTER = 1  # seconds; long enough to be noticed, short enough for a test


def find_fault(name: str, api: str | None = None) -> Fault:
    """Return a fault by its name; raise ValueError when there is none, or when it does not apply to the API."""
    fault = FAULTS.get(name)
    if fault is None:
        raise ValueError(f"fake provider: there is no fault {name!r}; `--list-faults` lists them")
    if api is not None and fault.apis is not None and api not in fault.apis:
        raise ValueError(f"fake provider: the fault {name!r} makes no sense for {api}")
    return fault


_RATE = "Rate limit reached for requests. Limit: 3 / min. Please try again in 1s."
_QUOTA = (
    "You exceeded your current quota, please check your plan and billing details. For more information on this"
    " error, read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors."
)
_OVERLOADED = Rejected("Overloaded", status=529, reason="overloaded")


def _rate_by_date(exchange: Exchange) -> Rejected:
    date = formatdate(time() + RETRY_AFTER + 1, usegmt=True)
    return Rejected(_RATE, status=429, reason="rate_limit", headers={"retry-after": date})


def _rate(**headers: str) -> Rejected:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Rejected(_RATE, status=429, reason="rate_limit", headers=named)


_TABLE = (
    # Connection faults.
    Fault("accept_close", "closes the connection as soon as it is accepted", kinds.close_unanswered),
    Fault("close_after_request", "reads the request and closes without an answer", kinds.close_unanswered),
    Fault(
        "reset_before_headers", "reads the request and resets the connection (RST)", kinds.reset_unanswered
    ),
    Fault("reset_mid", "resets the connection (RST) in the middle of the stream", kinds.reset_mid),
    Fault("cut_headers", "closes in the middle of the response's headers", kinds.cut_headers),
    Fault("hang_before_headers", "reads the request and never answers", kinds.hang_before_headers),
    Fault("hang_after_headers", "sends the headers and then nothing", kinds.hang_after_headers),
    Fault("hang_mid", "stops in the middle of the stream and keeps the connection open", kinds.hang_mid),
    Fault("hang_before_end", "sends every delta and then never the terminal event", kinds.hang_before_end),
    Fault(
        "keepalive_forever", "sends nothing but comments or blank lines, without end", kinds.keepalive_forever
    ),
    Fault("cut_event", "closes in the middle of an event", kinds.cut_event),
    Fault("cut_utf8", "closes in the middle of a UTF-8 character", kinds.cut_utf8),
    Fault("cut_before_end", "closes after the last delta, before the terminal event", kinds.cut_before_end),
    Fault(
        "end_without_terminal",
        "ends the body properly, but without the terminal event",
        kinds.end_without_terminal,
    ),
    Fault("broken_chunk", "sends a chunk whose size is no number", kinds.broken_chunk),
    Fault("short_body", "announces a longer body than it sends", kinds.short_body),
    # Refusals by status.
    kinds.status("bad_request", "400", Rejected("Invalid request.", status=400)),
    kinds.status("unauthorized", "401", Rejected("Invalid authentication.", status=401, reason="auth")),
    kinds.status(
        "payment_required",
        "402, the account has no credit",
        Rejected("Your credit balance is too low to access the API.", status=402, reason="billing"),
    ),
    kinds.status(
        "forbidden",
        "403",
        Rejected("You are not allowed to use this resource.", status=403, reason="permission"),
    ),
    kinds.status("model_not_found", "404, there is no such model", kinds.no_model),
    kinds.status("request_timeout", "408", Rejected("Request timed out.", status=408, reason="timeout")),
    kinds.status(
        "too_large", "413", Rejected("Request exceeds the maximum size", status=413, reason="too_large")
    ),
    kinds.status("rate_limit", "429 without a word on when to try again", _rate()),
    kinds.status(
        "rate_limit_seconds", "429 with Retry-After in seconds", _rate(retry_after=str(RETRY_AFTER))
    ),
    kinds.status("rate_limit_date", "429 with Retry-After as an HTTP date", _rate_by_date),
    kinds.status("rate_limit_ms", "429 with retry-after-ms", _rate(retry_after_ms="150", retry_after="1")),
    kinds.status("rate_limit_long", "429 with a Retry-After of an hour", _rate(retry_after="3600")),
    kinds.status("quota", "429, the quota is used up", Rejected(_QUOTA, status=429, reason="quota")),
    kinds.status("server_error", "500", Rejected("The server had an error.", status=500, reason="server")),
    Fault("bad_gateway_html", "502 with an HTML page of a proxy", kinds.bad_gateway_html),
    kinds.status(
        "unavailable", "503", Rejected("The service is unavailable.", status=503, reason="unavailable")
    ),
    kinds.status("overloaded", "529, as Anthropic says it", _OVERLOADED),
    kinds.status("context_exceeded", "the prompt does not fit the window", kinds.context_exceeded),
    Fault("prompt_blocked", "the prompt is blocked by a filter", kinds.prompt_blocked),
    Fault("content_filter", "the answer is broken off by a filter", kinds.content_filter),
    Fault("redirect", "302 to another address", kinds.redirect),
    # Errors inside of a stream that began with 200.
    kinds.error_event("error_at_start", "200, and the first event is an error", 0, _OVERLOADED),
    kinds.error_event("error_mid", "200, and an error event after some deltas", 2, _OVERLOADED),
    kinds.error_event(
        "context_exceeded_event",
        "200, and an error event that the window is exceeded",
        0,
        kinds.context_exceeded,
    ),
    Fault("malformed_event", "an event whose JSON is broken", kinds.malformed_event),
    Fault("invalid_utf8", "an event with bytes that are no UTF-8", kinds.invalid_utf8),
    # Responses that do not match the request.
    Fault("empty_reply", "a complete answer without any content", kinds.empty_reply),
    Fault("empty_body", "200 and no byte of a body", kinds.empty_body),
    Fault(
        "json_not_stream",
        "200 with the whole answer as JSON where a stream was asked for",
        kinds.json_not_stream,
    ),
    Fault("html_200", "200 with an HTML page, as a captive portal answers", kinds.html_200),
    Fault("gzip", "a gzip'd body that nobody asked for", kinds.gzipped),
    Fault("huge_event", "one event of 2 MB", kinds.huge_event, harmless=True),
    # Wrong tool calls.
    Fault("duplicate_tool_id", "two tool calls with one id", kinds.duplicate_tool_id, apis=kinds.WITH_IDS),
    Fault("broken_arguments", "a tool call whose arguments are half a JSON", kinds.broken_arguments),
    Fault("no_tool_id", "a tool call without an id", kinds.no_tool_id, apis=kinds.WITH_IDS),
    Fault("empty_tool_name", "a tool call with an empty name", kinds.empty_tool_name),
    # Unusual, but a client must accept it.
    Fault("one_byte", "the answer arrives a byte at a time", kinds.one_byte, harmless=True),
    Fault("noise", "unknown events, comments and pings between the others", kinds.noise, harmless=True),
    Fault("bare_fields", "id and retry lines of their own, without data", kinds.bare_fields, harmless=True),
    Fault("no_done", "the stream ends without `[DONE]`", kinds.no_done, apis=kinds.CHAT, harmless=True),
    Fault("crlf", "lines end with CR LF", kinds.crlf, harmless=True),
    Fault("cr", "lines end with CR alone", kinds.cr, harmless=True),
    Fault("multi_line", "each event's data is spread over many lines", kinds.multi_line, harmless=True),
    Fault(
        "wrong_content_type", "a stream that calls itself text/plain", kinds.wrong_content_type, harmless=True
    ),
    Fault("one_write", "the whole answer in a single write", kinds.one_write, harmless=True),
)

FAULTS: dict[str, Fault] = {fault.name: fault for fault in _TABLE}
