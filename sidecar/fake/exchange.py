"""One request and its answer on the wire: encodes events in the API's framing and sends them at the reply's pace.

A fault plays on an `Exchange` instead of the plain `deliver`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import anyio

from .base import Api, House
from .values import Event, Framing, Json, Recorded, Rejected, Reply, Turn, Usage
from .wire import Wire

CONTENT_TYPES: dict[Framing, str] = {
    "sse": "text/event-stream; charset=utf-8",
    "lines": "application/x-ndjson",
    "array": "application/json",
    "json": "application/json",
}


@dataclass(frozen=True)
class Lines:
    """How server-sent events are written where the standard leaves a choice."""

    end: str = "\n"
    spread: bool = False
    """One `data:` line for each line of indented JSON."""


@dataclass
class Exchange:
    api: Api
    house: House
    wire: Wire
    request: Recorded
    turn: Turn
    reply: Reply
    plain: Json | None = None
    """The whole answer, where no model was asked."""

    def usage(self) -> Usage:
        if self.reply.usage is not None:
            given, output, cached = self.reply.usage
            return Usage(given, output, cached, 0, self.reply.thought_tokens)
        turn, reply = self.turn, self.reply
        return Usage(turn.input_tokens, reply.output_tokens, turn.cached, turn.written, reply.thought_tokens)

    def whole(self) -> Json:
        if self.plain is not None:
            return self.plain
        return self.api.whole(self.turn, self.reply, self.usage(), self.house)

    def events(self) -> Iterator[Event]:
        """The stream; of a request that wants none, its whole answer as the only event."""
        if self.turn.framing == "json":
            yield Event(self.whole(), "end")
        else:
            yield from self.api.events(self.turn, self.reply, self.usage(), self.house)

    def change(self, **changes: Any) -> None:
        """Another reply than the prompt asked for."""
        self.reply = replace(self.reply, **changes)

    def encode(self, event: Event, lines: Lines = Lines(), *, first: bool = False) -> bytes:  # noqa: B008
        framing = self.turn.framing
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
        """Send the head of a streamed answer."""
        self.request.status = status
        headers = {"content-type": content_type or CONTENT_TYPES[self.turn.framing], **self.api.headers()}
        if self.turn.framing == "sse":
            headers["cache-control"] = "no-cache"
        await self.wire.start(status, {**headers, **more})

    async def send(self, events: Iterable[Event], lines: Lines = Lines()) -> None:  # noqa: B008
        """Send events at the reply's pace, with the head already out and no end after them."""
        for event in events:
            if event.kind == "delta" and self.reply.delay:
                await anyio.sleep(self.reply.delay)
            await self.wire.data(self.encode(event, lines, first=self.request.sent == 0))
            self.request.sent += 1

    async def deliver(self, lines: Lines = Lines(), content_type: str | None = None) -> None:  # noqa: B008
        """The plain answer, complete and right."""
        if self.turn.framing == "json":
            if self.reply.delay:
                await anyio.sleep(self.reply.delay)
            await self.respond(200, self.whole(), content_type=content_type or "application/json")
            return
        await self.begin(content_type=content_type)
        last: Event | None = None
        for event in self.events():
            if last is not None:
                await self.send([last], lines)
            last = event
        assert last is not None, "an API's stream has at least one event"
        tail = self.encode(last, lines, first=self.request.sent == 0)
        self.request.sent += 1
        await self.wire.finish(tail + (b"]" if self.turn.framing == "array" else b""))

    async def respond(self, status: int, body: Json | str | bytes, **headers: str) -> None:
        """A whole answer that is no stream."""
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
    """Answer with the API's error in the API's shape."""
    await respond(api, wire, request, rejected.status, api.error_body(rejected), rejected.headers)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
