"""A client that is nobody's: sends a request in the shape of any of the five APIs, and keeps what came back."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import anyio
import h11

from sidecar.fake_provider import FakeProvider
from tests.support.patience import PATIENCE_S

KEY = "sk-fake-0123456789"
APIS = ("openai-chat", "openai-responses", "anthropic", "gemini", "ollama")
TOOL: dict[str, Any] = {"type": "object", "properties": {"where": {"type": "string"}}, "required": ["where"]}


@dataclass
class Answer:
    """`broken` is what went wrong on the way, and `hung` that nothing more came."""

    status: int | None
    headers: dict[str, str]
    body: bytes
    broken: str | None = None
    hung: bool = False

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[Any]:
        """The JSON of each event, of any framing; `[DONE]` as it is."""
        text = self.body.decode()
        if "text/event-stream" not in self.headers["content-type"]:
            return [json.loads(line) for line in text.splitlines() if line]
        found = []
        for block in text.split("\n\n"):
            data = "\n".join(line[6:] for line in block.split("\n") if line.startswith("data: "))
            if data:
                found.append(data if data == "[DONE]" else json.loads(data))
        return found


def request(api: str, prompt: str, *, stream: bool = True) -> tuple[str, dict[str, Any]]:
    """Path and body that ask `prompt`."""
    message = {"role": "user", "content": prompt}
    match api:
        case "openai-chat":
            return "/v1/chat/completions", {"model": "fake-1", "messages": [message], "stream": stream}
        case "openai-responses":
            return "/v1/responses", {"model": "fake-1", "input": prompt, "stream": stream}
        case "anthropic":
            return "/v1/messages", {
                "model": "fake-1",
                "max_tokens": 4096,
                "messages": [message],
                "stream": stream,
            }
        case "gemini":
            verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
            body = {"contents": [{"role": "user", "parts": [{"text": prompt}]}]}
            return f"/v1beta/models/fake-1:{verb}", body
        case _:
            return "/api/chat", {"model": "fake-1", "messages": [message], "stream": stream}


def headers_of(api: str) -> dict[str, str]:
    match api:
        case "anthropic":
            return {"x-api-key": KEY, "anthropic-version": "2023-06-01"}
        case "gemini":
            return {"x-goog-api-key": KEY}
        case _:
            return {"authorization": f"Bearer {KEY}"}


async def ask(
    fake: FakeProvider, api: str, prompt: str, *, stream: bool = True, patience: float = PATIENCE_S
) -> Answer:
    path, body = request(api, prompt, stream=stream)
    return await send(fake, "POST", path, body, headers_of(api), patience=patience)


async def post(fake: FakeProvider, api: str, body: Any, path: str | None = None, **headers: str) -> Answer:
    """A body of the test's own, to where the API is asked."""
    where = path or request(api, "", stream=False)[0]
    return await send(
        fake, "POST", where, body, headers_of(api) | {k.replace("_", "-"): v for k, v in headers.items()}
    )


async def get(fake: FakeProvider, api: str, path: str) -> Answer:
    return await send(fake, "GET", path, b"", headers_of(api))


async def send(
    fake: FakeProvider,
    method: str,
    target: str,
    body: Any,
    headers: dict[str, str],
    *,
    patience: float = PATIENCE_S,
) -> Answer:
    """One request on a connection of its own, read until it ends, breaks, or keeps still for too long."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = Answer(None, {}, b"")
    http = h11.Connection(h11.CLIENT)
    full = {"host": "fake", "content-type": "application/json", "content-length": str(len(data)), **headers}
    async with await anyio.connect_tcp(fake.host, fake.port) as stream:
        head = http.send(h11.Request(method=method, target=target, headers=[*full.items()])) or b""
        try:
            await stream.send(
                head + (http.send(h11.Data(data=data)) or b"") + (http.send(h11.EndOfMessage()) or b"")
            )
            with anyio.fail_after(patience):
                await _read(stream, http, answer)
        except TimeoutError:
            answer.hung = True
        except (anyio.BrokenResourceError, anyio.EndOfStream) as error:
            answer.broken = type(error).__name__
        except h11.RemoteProtocolError as error:
            answer.broken = str(error)
    return answer


async def _read(stream: anyio.abc.SocketStream, http: h11.Connection, answer: Answer) -> None:
    while True:
        event = http.next_event()
        if event is h11.NEED_DATA:
            try:
                http.receive_data(await stream.receive())
            except anyio.EndOfStream:
                http.receive_data(b"")
        elif isinstance(event, h11.Response):
            answer.status = event.status_code
            answer.headers = {name.decode(): value.decode() for name, value in event.headers}
        elif isinstance(event, h11.Data):
            answer.body += event.data
        elif isinstance(event, h11.ConnectionClosed):
            answer.broken = "closed without an answer"
            return
        elif isinstance(event, h11.EndOfMessage):
            return
