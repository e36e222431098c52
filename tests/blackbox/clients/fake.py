"""A sidecar in memory, played by the test: it keeps a journal, answers the contract, and dies on request.

Prompts are accepted at once; what is said after that, and when, the test decides. Nothing here is shared with
the program, so that a misreading of the contract shows.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
from sidecar_client import Handlers, Sidecar, SidecarDied

from tests.support.patience import PATIENCE_S

Json = dict[str, Any]


class Wire:
    """The transport of one life."""

    pid = None

    def __init__(self, fake: FakeSidecar) -> None:
        self._fake = fake
        self._out, self._in = anyio.create_memory_object_stream[bytes](100_000)
        self.alive = True

    async def send(self, data: bytes) -> None:
        if not self.alive:
            raise anyio.BrokenResourceError
        for line in data.splitlines():
            self._fake.take(json.loads(line))

    async def end_input(self) -> None:
        return None

    async def receive(self) -> bytes:
        try:
            return await self._in.receive()
        except anyio.EndOfStream:
            return b""

    async def watch(self) -> None:
        return None

    async def finish(self, grace: float) -> SidecarDied:
        self.cut()
        self._in.close()
        return SidecarDied("The sidecar was killed by signal 9", -9, "last words")

    def put(self, message: Json) -> None:
        if self.alive:
            self._out.send_nowait(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def cut(self) -> None:
        self.alive = False
        self._out.close()


class FakeSidecar:
    """One chat's journal and everything that was asked. `silent` methods get no answer, those of `results` always the
    same; `commands` are prompts that are answered by Markdown, or by None: not yet."""

    session = "sc-tab-7-bf133f99bd6e5d06"

    def __init__(self) -> None:
        self.journal: list[Json] = []
        self.epoch = "e1"
        self.exists = True
        self.lives = 0
        self.snapshot_only = False
        self.asked: list[tuple[str, Json]] = []
        self.replies: dict[int, Json] = {}
        self.silent: set[str] = set()
        self.errors: dict[str, Json] = {}
        self.results: dict[str, Json] = {}
        self.commands: dict[str, str | None] = {}
        self.prompts: dict[str, str] = {}
        self.queueing = False
        self.wire: Wire
        self._seen: dict[str, anyio.Event] = {}

    async def launch(self) -> Wire:
        if self.lives < 0:
            raise SidecarDied("Could not start sidecar: no such file")
        self.lives += 1
        self.wire = Wire(self)
        return self.wire

    def calls(self, method: str) -> list[Json]:
        return [params for name, params in self.asked if name == method]

    async def asked_for(self, method: str, times: int = 1) -> list[Json]:
        """Wait until `method` was asked for that often."""
        while len(found := self.calls(method)) < times:
            self._seen[method] = anyio.Event()
            await self._seen[method].wait()
        return found

    def take(self, message: Json) -> None:
        method, params = message.get("method", ""), message.get("params", {})
        self.asked.append((method, params))
        if not method:
            self.replies[message["id"]] = message
        elif "id" in message and method not in self.silent:
            self._answer(message["id"], method, params)
        if method == "exit":
            self.wire.cut()
        if method in self._seen:
            self._seen.pop(method).set()

    def ask(self, id: int, method: str, params: Json) -> None:
        """Ask the client something of the present turn; what it answers will be in `replies`."""
        head = {"sessionId": self.session, "chatId": "tab-7", "turnId": "t1", "itemId": "i1"}
        self.wire.put({"id": id, "method": method, "params": {**head, **params}})

    async def reply(self, id: int) -> Json:
        """Wait until the client has answered that request: its `result`, or its `error`."""
        while id not in self.replies:
            await self.asked_for("", len(self.calls("")) + 1)
        message = self.replies[id]
        answer: Json = message["result"] if "result" in message else message["error"]
        return answer

    def record(self, type: str, data: Json, *, turn: str | None = None, start: int | None = None) -> Json:
        """Journal an event without sending it."""
        seq = start or self.last + 1
        event = self._event(seq, seq, type, data, turn)
        self.journal.append(event)
        return event

    def emit(self, type: str, data: Json, turn: str | None = None) -> Json:
        event = self.record(type, data, turn=turn)
        self.deliver(event)
        return event

    def deliver(self, event: Json) -> None:
        self.wire.put({"method": "event", "params": event})

    def say(self, text: str, turn: str = "t1") -> Json:
        return self.emit("message.delta", {"itemId": "m1", "text": text}, turn)

    def end(self, reason: str = "end_turn", turn: str = "t1") -> Json:
        return self.emit("turn.ended", {"reason": reason, "usage": {}}, turn)

    def die(self) -> None:
        self.wire.cut()

    @property
    def last(self) -> int:
        return self.journal[-1]["seq"] if self.journal else 0

    def run_of_deltas(self, first: int, texts: list[str], turn: str = "t1") -> Json:
        """The frame that stands for several stored deltas."""
        event = self._event(
            first + len(texts) - 1, first, "message.delta", {"itemId": "m1", "text": "".join(texts)}, turn
        )
        event["from"] = first
        return event

    def _event(self, seq: int, first: int, type: str, data: Json, turn: str | None) -> Json:
        head = {"sessionId": self.session, "chatId": "tab-7", "epoch": self.epoch, "seq": seq, "ts": 1}
        return {**head, "type": type, "data": data, **({"turnId": turn} if turn else {})}

    def _answer(self, id: int, method: str, params: Json) -> None:
        after: list[Callable[[], object]] = []
        do = getattr(self, "_do_" + method.replace("/", "_"), None)
        result = self.results.get(method) or (do(params, after) if do else {})
        if method in self.errors:
            result = {"error": self.errors[method]}
        self.wire.put({"id": id, **result} if "error" in result else {"id": id, "result": result})
        for action in after:
            action()

    def _do_initialize(self, params: Json, after: list[Callable[[], object]]) -> Json:
        limits = dict.fromkeys(
            ["maxFrameBytes", "maxChatIdBytes", "maxQueuedPrompts", "maxDeltaBytes", "maxMetaBytes"], 1
        )
        server = {"name": "fake", "version": "0"}
        return {"version": 1, "server": server, "instanceId": "i", "capabilities": {}, "limits": limits}

    def _do_chat_open(self, params: Json, after: list[Callable[[], object]]) -> Json:
        if not self.exists and params.get("ifMissing") == "fail":
            return {"error": {"code": -32002, "message": "no such chat", "data": {"name": "not_found"}}}
        status = "resumed" if self.exists else "created"
        self.exists = True
        place = params.get("after", "tail")
        replay: Json = {"kind": "none"}
        if isinstance(place, dict) and (place["epoch"] != self.epoch or self.snapshot_only):
            replay = {"kind": "snapshot", "reason": "too_much"}
        elif isinstance(place, dict) and place["seq"] < self.last:
            replay = {"kind": "events", "from": place["seq"] + 1, "to": self.last}
            after += [partial(self.deliver, event) for event in self.journal if event["seq"] > place["seq"]]
        return self.opened(status, replay)

    def opened(self, status: str, replay: Json) -> Json:
        """The result of an open."""
        cursor = {"epoch": self.epoch, "seq": self.last}
        head = {"sessionId": self.session, "chatId": "tab-7", "key": {"kind": "chat", "value": "tab-7"}}
        place = {"epoch": self.epoch, "lastSeq": self.last, "asOf": cursor, "replay": replay}
        rest: Json = {"turns": [], "state": "idle", "queue": {"paused": False, "items": []}, "pending": []}
        return {
            **head,
            **place,
            **rest,
            "status": status,
            "access": "writer",
            "usage": {},
            "config": {},
            "openFiles": [],
        }

    def _command(self, params: Json, after: list[Callable[[], object]]) -> Json:
        prompt, text = params["promptId"], params["text"]
        said = {
            "promptId": prompt,
            "command": text,
            "data": {"command": text},
            "markdown": self.commands[text],
        }
        if self.commands[text] is not None:
            after.append(lambda: self.emit("command.result", said))
        head = {"sessionId": self.session, "chatId": "tab-7", "epoch": self.epoch}
        return {**head, "disposition": "command", "seq": self.last + 1}

    def _do_prompt_send(self, params: Json, after: list[Callable[[], object]]) -> Json:
        if params.get("text") in self.commands:
            return self._command(params, after)
        prompt = params["promptId"]
        known = prompt in self.prompts
        turn = self.prompts.setdefault(prompt, f"t{len(self.prompts) + 1}")
        disposition = "duplicate" if known else "queued" if self.queueing else "started"
        seq = self.last + 1
        if known:
            seq = next(e["seq"] for e in self.journal if e["data"].get("promptId") == prompt)
        elif self.queueing:
            after.append(lambda: self.emit("prompt.queued", {"promptId": prompt, "turnId": turn}))
        else:
            after.append(lambda: self.emit("prompt.accepted", {"promptId": prompt, "turnId": turn}, turn))
            after.append(lambda: self.emit("turn.started", {"promptId": prompt, "model": "fake"}, turn))
        head = {"sessionId": self.session, "chatId": "tab-7", "epoch": self.epoch}
        return {**head, "disposition": disposition, "turnId": turn, "seq": seq}

    def _do_turn_retry(self, params: Json, after: list[Callable[[], object]]) -> Json:
        return self._do_prompt_send(params, after)

    def _do_turn_cancel(self, params: Json, after: list[Callable[[], object]]) -> Json:
        end = self.end("cancelled", params["turnId"])
        return {"sessionId": self.session, "chatId": "tab-7", "outcome": "cancelled", "endSeq": end["seq"]}

    def _do_events_read(self, params: Json, after: list[Callable[[], object]]) -> Json:
        found = [e for e in self.journal if e["seq"] > params["after"]["seq"]]
        page = found[: params["limit"]]
        cursor = {"epoch": self.epoch, "seq": page[-1]["seq"] if page else params["after"]["seq"]}
        head = {"sessionId": self.session, "chatId": "tab-7"}
        return {**head, "events": page, "next": cursor, "hasMore": len(found) > len(page)}

    def _do_chat_rename(self, params: Json, after: list[Callable[[], object]]) -> Json:
        self.emit("chat.renamed", {"title": params["title"], "by": "user"})
        return {"sessionId": self.session, "chatId": "tab-7", "title": params["title"]}


@asynccontextmanager
async def connected(fake: FakeSidecar, handlers: Handlers | None = None) -> AsyncIterator[Sidecar]:
    with anyio.fail_after(PATIENCE_S):
        async with Sidecar.connect(fake.launch, handlers=handlers) as app:
            yield app
