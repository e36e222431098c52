"""One request and its response: `Exchange` writes the events of a reply in the API's framing, at the pace of the reply.

`deliver` sends the reply complete and correct. A fault sends something else with the same `Exchange`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import anyio

from .base import Api, Vendor
from .values import Framing, Json, ModelCall, PlannedReply, Recorded, Rejected, SentEvent, Usage
from .wire import Wire

CONTENT_TYPES: dict[Framing, str] = {
    "sse": "text/event-stream; charset=utf-8",
    "lines": "application/x-ndjson",
    "array": "application/json",
    "json": "application/json",
}


@dataclass(frozen=True)
class SseStyle:
    """How server-sent events are written where the standard leaves a choice."""

    end: str = "\n"
    spread: bool = False
    """One `data:` line for each line of indented JSON."""


@dataclass
class Exchange:
    api: Api
    vendor: Vendor
    wire: Wire
    request: Recorded
    model_call: ModelCall
    reply: PlannedReply
    fixed_response: Json | None = None
    """The response that does not depend on a model, such as a list of models; None for a call of a model."""

    def usage(self) -> Usage:
        if self.reply.usage is not None:
            given, output, cached = self.reply.usage
            return Usage(given, output, cached, 0, self.reply.thought_tokens)
        model_call, reply = self.model_call, self.reply
        return Usage(
            model_call.input_tokens,
            reply.output_tokens,
            model_call.cached,
            model_call.written,
            reply.thought_tokens,
        )

    def complete_body(self) -> Json:
        if self.fixed_response is not None:
            return self.fixed_response
        return self.api.complete_body(self.model_call, self.reply, self.usage(), self.vendor)

    def events(self) -> Iterator[SentEvent]:
        """Return the stream; for a request without streaming, its whole response as the only event."""
        if self.model_call.framing == "json":
            yield SentEvent(self.complete_body(), "end")
        else:
            yield from self.api.events(self.model_call, self.reply, self.usage(), self.vendor)

    def change(self, **changes: Any) -> None:
        """Replace the reply that the prompt asked for."""
        self.reply = replace(self.reply, **changes)

    def encode(self, event: SentEvent, lines: SseStyle = SseStyle(), *, first: bool = False) -> bytes:  # noqa: B008
        framing = self.model_call.framing
        text = event.data if isinstance(event.data, str) else _json(event.data)
        if framing == "lines":
            return f"{text}\n".encode()
        if framing == "array":
            return f"{'[' if first else ','}{text}\r\n".encode()
        if framing == "json":
            return text.encode()
        if lines.spread and not isinstance(event.data, str):
            text = json.dumps(event.data, ensure_ascii=False, indent=1)
        data = lines.end.join(f"data: {line}" for line in text.split("\n"))
        name = f"event: {event.name}{lines.end}" if event.name else ""
        return f"{name}{data}{lines.end}{lines.end}".encode()

    async def begin(self, status: int = 200, content_type: str | None = None, **more: str) -> None:
        """Send the head of a streamed response."""
        self.request.status = status
        headers = {
            "content-type": content_type or CONTENT_TYPES[self.model_call.framing],
            **self.api.headers(),
        }
        if self.model_call.framing == "sse":
            headers["cache-control"] = "no-cache"
        await self.wire.start(status, {**headers, **more})

    async def send(self, events: Iterable[SentEvent], lines: SseStyle = SseStyle()) -> None:  # noqa: B008
        """Send events at the pace of the reply, after the head and without an end."""
        for event in events:
            if event.kind == "delta" and self.reply.delay:
                await anyio.sleep(self.reply.delay)
            await self.wire.data(self.encode(event, lines, first=self.request.sent == 0))
            self.request.sent += 1

    async def deliver(self, lines: SseStyle = SseStyle(), content_type: str | None = None) -> None:  # noqa: B008
        """Send the response, complete and correct."""
        if self.model_call.framing == "json":
            if self.reply.delay:
                await anyio.sleep(self.reply.delay)
            await self.respond(200, self.complete_body(), content_type=content_type or "application/json")
            return
        await self.begin(content_type=content_type)
        last: SentEvent | None = None
        for event in self.events():
            if last is not None:
                await self.send([last], lines)
            last = event
        assert last is not None, "an API's stream has at least one event"
        tail = self.encode(last, lines, first=self.request.sent == 0)
        self.request.sent += 1
        await self.wire.finish(tail + (b"]" if self.model_call.framing == "array" else b""))

    async def respond(self, status: int, body: Json | str | bytes, **headers: str) -> None:
        """Send a whole response without streaming."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        await respond(self.api, self.wire, self.request, status, body, named)

    async def refuse(self, rejected: Rejected) -> None:
        await refuse(self.api, self.wire, self.request, rejected)


async def respond(
    api: Api, wire: Wire, request: Recorded, status: int, body: Json | str | bytes, headers: Mapping[str, str]
) -> None:
    request.status = status
    data = (
        body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else _json(body).encode()
    )
    await wire.respond(status, {"content-type": "application/json", **api.headers(), **headers}, data)


async def refuse(api: Api, wire: Wire, request: Recorded, rejected: Rejected) -> None:
    """Send an error in the format of the API."""
    await respond(api, wire, request, rejected.status, api.error_body(rejected), rejected.headers)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
