"""The door: answers `initialize` and `ping` while the house behind it is still being imported.

Standard library only. It looks at nothing but plain first messages; whatever is not plainly right waits, in order,
for the house, which checks it in full.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, NoReturn

from sidecar_protocol.framing import MAX_FRAME_BYTES, Frame

from . import __version__
from .rpc.stdio import Inlet, Outlet, take_over_stdio
from .system.launch import Handover, ServeOptions

GREETING_WAIT_S = 0.02
"""A client greets at once; importing must not take the processor from the answer to that greeting."""

MAX_QUICK_BYTES = 16 * 1024
"""A plain greeting is a few hundred bytes."""

MAX_HELD_BYTES = 64 * 1024 * 1024
"""What may wait for the house; more stays in the pipe."""

VERSION = 1


def serve(options: ServeOptions) -> NoReturn:
    """Serve until the client is gone, then leave the process with the exit code of the contract."""
    source, target = take_over_stdio()
    door = Door(source, target, options.framing)
    for name in ("SIGTERM", "SIGINT", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), _leave_at_once)
    door.open()
    door.greeted.wait(GREETING_WAIT_S)
    gc.disable()  # nothing that is imported is garbage; looking for some takes a tenth of the start
    from .app import run

    gc.freeze()
    gc.enable()
    run(door, options)


def hello(instance_id: str) -> dict[str, Any]:
    """The result of `initialize`."""
    return {
        "version": VERSION,
        "server": {"name": "sidecar", "version": __version__},
        "instanceId": instance_id,
        "capabilities": {
            "framings": ["lines", "headers"],
            "deliveries": ["queue", "steer", "interrupt", "reject"],
            "permissions": True,
            "input": True,
            "buffers": True,
            "tools": True,
            "commands": True,
        },
        "limits": {
            "maxFrameBytes": MAX_FRAME_BYTES,
            "maxChatIdBytes": 512,
            "maxQueuedPrompts": 256,
            "maxDeltaBytes": 64 * 1024,
            "maxMetaBytes": 16 * 1024,
        },
    }


class Door:
    """Owns the pipes from the first moment; hands frames to the house when it is there."""

    def __init__(self, source: int, target: int, framing: str) -> None:
        self.instance_id = os.urandom(8).hex()
        self.started = time.monotonic()
        self.greeted = threading.Event()
        self.outlet = Outlet(target, self._end)
        self._inlet = Inlet(source, framing, self.outlet, self._take, self._end)
        self._lock = threading.Condition()
        self._greeting: dict[str, Any] | None = None
        self._held: list[Frame] = []
        self._held_bytes = 0
        self._ended = False
        self._to_house: Callable[[Sequence[Frame]], None] | None = None
        self._on_end: Callable[[], None] | None = None

    def open(self) -> None:
        self.outlet.start()
        self._inlet.start()

    def hand_over(self, take: Callable[[Sequence[Frame]], None], on_end: Callable[[], None]) -> Handover:
        """From now on frames go to `take`, called from the reader's thread."""
        with self._lock:
            self._to_house, self._on_end = take, on_end
            held, self._held = self._held, []
            self._lock.notify_all()
            return Handover(self._greeting, held, self._ended)

    def hello(self) -> dict[str, Any]:
        """The result of `initialize`."""
        return hello(self.instance_id)

    def ping(self, inflight: int) -> dict[str, Any]:
        """The result of `ping`."""
        return {
            "now": time.time_ns() // 1_000_000,
            "uptimeMs": int((time.monotonic() - self.started) * 1000),
            "instanceId": self.instance_id,
            "inflight": inflight,
        }

    def _take(self, frames: Sequence[Frame]) -> None:
        with self._lock:
            self._lock.wait_for(lambda: self._held_bytes < MAX_HELD_BYTES or self._to_house)
            if self._to_house:
                self._to_house(frames)
                return
            for frame in frames:
                if self._held or not self._answer(frame):
                    self._held.append(frame)
                    self._held_bytes += len(frame) if isinstance(frame, bytes) else 0
        self.greeted.set()

    def _end(self) -> None:
        with self._lock:
            self._ended = True
            on_end = self._on_end
        self.greeted.set()
        if on_end:
            on_end()

    def _answer(self, frame: Frame) -> bool:
        """Answer a plain greeting or ping; False leaves the frame to the house."""
        message = _plain_request(frame)
        if message is None:
            return False
        if message["method"] == "ping" and not message.get("params"):
            result = self.ping(0)
        elif (
            message["method"] == "initialize" and self._greeting is None and _is_plain(message.get("params"))
        ):
            self._greeting = message["params"]
            result = self.hello()
        else:
            return False
        self.outlet.send(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode())
        return True


def _plain_request(frame: Frame) -> dict[str, Any] | None:
    """The frame as a request, if nothing about it needs a second look."""
    if not isinstance(frame, bytes) or len(frame) > MAX_QUICK_BYTES or not frame.isascii() or b"\\" in frame:
        return None
    try:
        message = json.loads(frame)
    except (ValueError, RecursionError):
        return None
    if (
        not isinstance(message, dict)
        or message.get("jsonrpc") != "2.0"
        or not isinstance(message.get("method"), str)
    ):
        return None
    id = message.get("id")
    plain_id = isinstance(id, str) or (type(id) is int and abs(id) < 2**53)
    return message if plain_id else None


def _is_plain(params: Any) -> bool:
    """Whether `params` are those of an ordinary `initialize`."""
    if not isinstance(params, dict) or not params.keys() <= {
        "protocol",
        "versions",
        "client",
        "processId",
        "capabilities",
        "deltaMs",
    }:
        return False
    client = params.get("client")
    capabilities = params.get("capabilities", {})
    versions = params.get("versions")
    return (
        params.get("protocol") == "sidecar"
        and isinstance(versions, list)
        and all(type(version) is int for version in versions)
        and VERSION in versions
        and isinstance(client, dict)
        and "name" in client
        and client.keys() <= {"name", "version"}
        and all(isinstance(value, str) for value in client.values())
        and isinstance(capabilities, dict)
        and capabilities.keys() <= {"permissions", "input", "buffers"}
        and all(isinstance(value, bool) for value in capabilities.values())
        and _is_count(params.get("processId", 1), 2**31)
        and _is_count(params.get("deltaMs", 0), 60_001)
    )


def _is_count(value: Any, limit: int) -> bool:
    return type(value) is int and 0 <= value < limit


def _leave_at_once(number: int, frame: FrameType | None) -> None:
    """A signal before the house stands: nothing has been opened, so nothing is left to close."""
    os._exit(128 + number)
