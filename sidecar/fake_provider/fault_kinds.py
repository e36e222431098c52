"""How each fault is played on an exchange. Each is a few lines: what is sent, and what is omitted."""

from __future__ import annotations

import gzip
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import anyio

from .exchange import CONTENT_TYPES, Exchange, SseStyle
from .rules import context_rejection
from .values import Rejected, SentCall, SentEvent

HUGE = 2 * 1024 * 1024
KEEP_ALIVE = 0.05  # seconds between two keep-alives without content

WITH_IDS = frozenset({"openai-chat", "openai-responses", "anthropic"})
CHAT = frozenset({"openai-chat"})

_HTML = "<!DOCTYPE html>\n<html><head><title>{0}</title></head><body><center><h1>{0}</h1></center></body></html>\n"
_EMPTY_ANSWERS = ("text", "thoughts", "calls")


@dataclass(frozen=True)
class Fault:
    """`apis` None: it applies to all. `harmless`: the client must still get the whole answer."""

    name: str
    about: str
    play: Callable[[Exchange], Awaitable[None]]
    apis: frozenset[str] | None = None
    harmless: bool = False


Refusal = Rejected | Callable[[Exchange], Rejected]


def status(name: str, about: str, refusal: Refusal) -> Fault:
    """Return a fault that is an HTTP status with the API's own error body."""

    async def play(exchange: Exchange) -> None:
        await exchange.refuse(_refusal(refusal, exchange))

    return Fault(name, about, play)


def error_event(name: str, about: str, after: int, refusal: Refusal) -> Fault:
    """Return a fault whose stream begins well; after some deltas comes an error event, and the body ends."""

    async def play(exchange: Exchange) -> None:
        rejected = _refusal(refusal, exchange)
        if exchange.model_call.framing == "json":
            await exchange.refuse(rejected)
            return
        await exchange.begin()
        before = _until(exchange, after) if after else []
        await exchange.send(before)
        await exchange.send([exchange.api.error_event(rejected, len(before))])
        await exchange.wire.finish(b"]" if exchange.model_call.framing == "array" else b"")

    return Fault(name, about, play)


def no_model(exchange: Exchange) -> Rejected:
    name = exchange.model_call.model
    message = f"The model `{name}` does not exist or you do not have access to it."
    return Rejected(message, status=404, reason="model", param=name)


def context_exceeded(exchange: Exchange) -> Rejected:
    return context_rejection(
        exchange.request.api, exchange.model_call.input_tokens, exchange.model_call.input_tokens - 1
    )


async def close_unanswered(exchange: Exchange) -> None:
    await exchange.wire.close()


async def reset_unanswered(exchange: Exchange) -> None:
    await exchange.wire.reset()


async def reset_mid(exchange: Exchange) -> None:
    await _half(exchange)
    await exchange.wire.reset()


async def cut_headers(exchange: Exchange) -> None:
    await exchange.wire.raw(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-str")
    await exchange.wire.close()


async def hang_before_headers(exchange: Exchange) -> None:
    await anyio.sleep_forever()


async def hang_after_headers(exchange: Exchange) -> None:
    await exchange.begin()
    await anyio.sleep_forever()


async def hang_mid(exchange: Exchange) -> None:
    await _half(exchange)
    await anyio.sleep_forever()


async def hang_before_end(exchange: Exchange) -> None:
    await exchange.begin()
    await exchange.send(_before_end(exchange))
    await anyio.sleep_forever()


async def keepalive_forever(exchange: Exchange) -> None:
    await exchange.begin()
    beat = b": keep-alive\n\n" if exchange.model_call.framing == "sse" else b"\n"
    while True:
        await exchange.wire.data(beat)
        await anyio.sleep(KEEP_ALIVE)


async def cut_event(exchange: Exchange) -> None:
    encoded = await _up_to_a_delta(exchange)
    await exchange.wire.data(encoded[: len(encoded) // 2])
    await exchange.wire.close()


async def cut_utf8(exchange: Exchange) -> None:
    encoded, at = _inside_text(exchange, await _up_to_a_delta(exchange))
    await exchange.wire.data(encoded[:at] + "é".encode()[:1])
    await exchange.wire.close()


async def cut_before_end(exchange: Exchange) -> None:
    if exchange.model_call.framing == "json":
        await cut_event(exchange)
        return
    await exchange.begin()
    await exchange.send(_before_end(exchange))
    await exchange.wire.close()


async def end_without_terminal(exchange: Exchange) -> None:
    if exchange.model_call.framing == "json":
        await empty_body(exchange)
        return
    await exchange.begin()
    await exchange.send(_before_end(exchange))
    await exchange.wire.finish(b"]" if exchange.model_call.framing == "array" else b"")


async def broken_chunk(exchange: Exchange) -> None:
    await _half(exchange)
    await exchange.wire.raw(b"not-a-number\r\n{}\r\n")
    await exchange.wire.close()


async def short_body(exchange: Exchange) -> None:
    body = b"".join(exchange.encode(event) for event in exchange.events())
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {_content_type(exchange)}\r\ncontent-length: {len(body) + 1000}\r\n\r\n"
    await exchange.wire.raw(head.encode() + body[: len(body) // 2])
    await exchange.wire.close()


async def bad_gateway_html(exchange: Exchange) -> None:
    await exchange.respond(502, _HTML.format("502 Bad Gateway"), content_type="text/html", server="nginx")


async def html_200(exchange: Exchange) -> None:
    await exchange.respond(200, _HTML.format("Sign in to the network"), content_type="text/html")


async def redirect(exchange: Exchange) -> None:
    await exchange.respond(302, b"", location="https://example.invalid/elsewhere")


async def empty_body(exchange: Exchange) -> None:
    await exchange.respond(200, b"", content_type=_content_type(exchange))


async def json_not_stream(exchange: Exchange) -> None:
    await exchange.respond(200, exchange.complete_body())


async def gzipped(exchange: Exchange) -> None:
    body = b"".join(exchange.encode(event) for event in exchange.events())
    packed = gzip.compress(body)
    await exchange.respond(200, packed, content_type=_content_type(exchange), content_encoding="gzip")


async def prompt_blocked(exchange: Exchange) -> None:
    if exchange.request.api == "gemini":
        exchange.model_call.details["blocked"] = True
        await exchange.deliver()
        return
    message = "Invalid prompt: your prompt was flagged as potentially violating our usage policy."
    if exchange.request.api == "anthropic":
        message = "Output blocked by content filtering policy"
    await exchange.refuse(Rejected(message, reason="blocked", param="messages"))


async def content_filter(exchange: Exchange) -> None:
    exchange.model_call.details["filtered"] = True
    exchange.change(text=exchange.reply.text[:1], calls=(), stop="refusal")
    await exchange.deliver()


async def malformed_event(exchange: Exchange) -> None:
    await _half(exchange)
    broken = '{"type": "content", "delta": {"text": '
    await exchange.send(
        [SentEvent(broken, "delta", "message" if exchange.model_call.framing == "sse" else None)]
    )
    await exchange.wire.finish()


async def invalid_utf8(exchange: Exchange) -> None:
    encoded, at = _inside_text(exchange, await _up_to_a_delta(exchange))
    await exchange.wire.data(encoded[:at] + b"\xff\xfe" + encoded[at:])
    await exchange.wire.finish()


async def empty_reply(exchange: Exchange) -> None:
    exchange.change(**dict.fromkeys(_EMPTY_ANSWERS, ()), stop="end")
    await exchange.deliver()


async def huge_event(exchange: Exchange) -> None:
    exchange.change(text=("x" * HUGE, *exchange.reply.text))
    await exchange.deliver()


async def duplicate_tool_id(exchange: Exchange) -> None:
    call = replace(_a_call(exchange), id="call_twice")
    exchange.change(calls=(call, replace(call)), stop="tools")
    await exchange.deliver()


async def broken_arguments(exchange: Exchange) -> None:
    """Gemini and Ollama parse the arguments themselves, and report that the model failed."""
    if exchange.request.api == "gemini":
        exchange.model_call.details["finish"] = "MALFORMED_FUNCTION_CALL"
        exchange.change(text=(), calls=(), stop="end")
        await exchange.deliver()
        return
    if exchange.request.api == "ollama":
        message = 'error parsing tool call: raw=\'{"where": "do\', err=unexpected end of JSON input'
        await exchange.refuse(Rejected(message, status=500, reason="server"))
        return
    exchange.change(calls=(replace(_a_call(exchange), arguments='{"where": "do'),), stop="tools")
    await exchange.deliver()


async def no_tool_id(exchange: Exchange) -> None:
    exchange.change(calls=(replace(_a_call(exchange), id=None),), stop="tools")
    await exchange.deliver()


async def empty_tool_name(exchange: Exchange) -> None:
    exchange.change(calls=(replace(_a_call(exchange), name=""),), stop="tools")
    await exchange.deliver()


async def one_byte(exchange: Exchange) -> None:
    await exchange.begin()
    for event in exchange.events():
        encoded = exchange.encode(event, first=exchange.request.sent == 0)
        exchange.request.sent += 1
        for at in range(len(encoded)):
            await exchange.wire.data(encoded[at : at + 1])
    await exchange.wire.finish(b"]" if exchange.model_call.framing == "array" else b"")


async def one_write(exchange: Exchange) -> None:
    body = b""
    for event in exchange.events():
        body += exchange.encode(event, first=not body)
        exchange.request.sent += 1
    await exchange.begin()
    await exchange.wire.finish(body + (b"]" if exchange.model_call.framing == "array" else b""))


async def noise(exchange: Exchange) -> None:
    if exchange.model_call.framing != "sse":
        await exchange.deliver()
        return
    await exchange.begin()
    for event in exchange.events():
        await exchange.wire.data(b": ping\n\n")
        await exchange.send([*([] if event.data == "[DONE]" else exchange.api.noise()), event])
    await exchange.wire.finish()


async def no_done(exchange: Exchange) -> None:
    if exchange.model_call.framing != "sse":
        await exchange.deliver()
        return
    await exchange.begin()
    await exchange.send(event for event in exchange.events() if event.data != "[DONE]")
    await exchange.wire.finish()


async def bare_fields(exchange: Exchange) -> None:
    if exchange.model_call.framing != "sse":
        await exchange.deliver()
        return
    await exchange.begin()
    for event in exchange.events():
        await exchange.wire.data(b"retry: 3000\nid: 7\n\n")
        await exchange.send([event])
    await exchange.wire.finish()


async def crlf(exchange: Exchange) -> None:
    await exchange.deliver(SseStyle(end="\r\n"))


async def cr(exchange: Exchange) -> None:
    await exchange.deliver(SseStyle(end="\r"))


async def multi_line(exchange: Exchange) -> None:
    await exchange.deliver(SseStyle(spread=True))


async def wrong_content_type(exchange: Exchange) -> None:
    await exchange.deliver(content_type="text/plain")


def _refusal(refusal: Refusal, exchange: Exchange) -> Rejected:
    return refusal if isinstance(refusal, Rejected) else refusal(exchange)


def _content_type(exchange: Exchange) -> str:
    return CONTENT_TYPES[exchange.model_call.framing]


def _until(exchange: Exchange, deltas: int) -> list[SentEvent]:
    """Return the stream up to and including some deltas."""
    taken: list[SentEvent] = []
    for event in exchange.events():
        taken.append(event)
        if sum(each.kind == "delta" for each in taken) >= deltas:
            break
    return [event for event in taken if event.kind in ("open", "delta")]


def _before_end(exchange: Exchange) -> list[SentEvent]:
    return [event for event in exchange.events() if event.kind in ("open", "delta")]


async def _half(exchange: Exchange) -> None:
    """Send the head and the first half of the deltas."""
    await exchange.begin()
    events = _before_end(exchange)
    if exchange.model_call.framing == "json":
        body = exchange.encode(next(exchange.events()))
        await exchange.wire.data(body[: len(body) // 2])
        return
    total = sum(event.kind == "delta" for event in events)
    await exchange.send(_until(exchange, max(1, total // 2)))


async def _up_to_a_delta(exchange: Exchange) -> bytes:
    """Send everything before the second delta, or the first if there is only one; return that, encoded."""
    await exchange.begin()
    events = list(exchange.events())
    deltas = [at for at, event in enumerate(events) if event.kind == "delta"] or [len(events) - 1]
    at = deltas[min(1, len(deltas) - 1)]
    await exchange.send(events[:at])
    return exchange.encode(events[at], first=at == 0)


def _inside_text(exchange: Exchange, encoded: bytes) -> tuple[bytes, int]:
    """Return a position inside the text of the event, so that its JSON is cut there."""
    for piece in (*exchange.reply.text[1:2], *exchange.reply.text, *exchange.reply.thoughts):
        at = encoded.find(json.dumps(piece, ensure_ascii=False)[1:-1].encode())
        if at >= 0:
            return encoded, at
    return encoded, max(encoded.rfind(b'"'), 0)


def _a_call(exchange: Exchange) -> SentCall:
    if exchange.reply.calls:
        return exchange.reply.calls[0]
    name = next(iter(exchange.model_call.tools), "look")
    return SentCall(name, '{"where": "door"}', {"where": "door"})
