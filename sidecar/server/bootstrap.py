"""Answers `initialize` and `ping` while the rest of the program is still being imported.

Standard library only. It answers plain first messages; every other frame waits, in order, for the server, which
validates it in full.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from sidecar_protocol.framing import Frame, Oversized

from ..frontends.acp import greeting as acp
from ..frontends.native import greeting as native
from ..rpc.stdio import StdinReader, StdoutWriter, take_over_stdio
from ..system.launch import Handover, ServeOptions

if TYPE_CHECKING:
    from ..frontends.base import InitializeResult, PingResult
    from ..frontends.registry import FrontendRegistry

GREETING_WAIT_S = 0.02
"""A client sends `initialize` at once; importing must not take the processor from the answer to it."""

MAX_QUICK_BYTES = 16 * 1024
"""A plain `initialize` is a few hundred bytes."""

MAX_HELD_BYTES = 64 * 1024 * 1024
"""Bytes that may wait for the server; more stays in the pipe."""

_EARLY_DIALECTS = (None, native.NAME, acp.NAME)
"""The dialects whose first request is answered here; None is the one that this request chooses."""


def serve(options: ServeOptions, frontends: FrontendRegistry | None = None) -> NoReturn:
    """Serve until the client is gone, then exit with a code of the contract. `frontends` are those of the program."""
    source, target = take_over_stdio()
    responder = EarlyResponder(source, target, options.framing, options.frontend)
    for name in ("SIGTERM", "SIGINT", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), _exit_at_once)
    responder.open()
    # The reader's thread needs the interpreter lock to answer; an import in this thread would hold it for
    # milliseconds at a time.
    responder.greeted.wait(GREETING_WAIT_S)
    gc.disable()  # nothing that is imported is garbage; collecting takes a tenth of the start
    from ..frontends.registry import FrontendRegistry
    from .connection import load_frontend
    from .server import run

    registry = frontends or FrontendRegistry()
    load_frontend(registry, responder.dialect)
    # What start-up created stays for good: later collections need not look at it again.
    gc.freeze()
    gc.enable()
    run(responder, options, registry)


class EarlyResponder:
    """Owns the pipes from the start; passes frames to the server once it is imported. `dialect` is the one that the
    command has chosen, or the client's first message; None as long as it is unknown.
    """

    def __init__(self, source: int, target: int, framing: str, dialect: str | None = None) -> None:
        self.dialect = dialect
        self.instance_id = os.urandom(8).hex()
        self.started = time.monotonic()
        self.greeted = threading.Event()
        self.stdout_writer = StdoutWriter(target, self._end)
        self._stdin_reader = StdinReader(source, framing, self.stdout_writer, self._take, self._end)
        self._lock = threading.Condition()
        self._greeting: Mapping[str, object] | None = None
        self._held_frames: list[Frame] = []
        self._held_bytes = 0
        self._ended = False
        self._to_server: Callable[[Sequence[Frame]], None] | None = None
        self._on_end: Callable[[], None] | None = None

    def open(self) -> None:
        self.stdout_writer.start()
        self._stdin_reader.start()

    def hand_over(self, take: Callable[[Sequence[Frame]], None], on_end: Callable[[], None]) -> Handover:
        """From now on pass frames to `take`, called from the reader's thread."""
        with self._lock:
            self._to_server, self._on_end = take, on_end
            # Taken and switched under one lock: no frame is lost between the two, and none overtakes another.
            held, self._held_frames = self._held_frames, []
            self._lock.notify_all()
            return Handover(self._greeting, held, self._ended, self.dialect)

    def initialize_result(self) -> InitializeResult:
        """The result of `initialize`."""
        return native.initialize_result(self.instance_id)

    def ping(self, inflight: int) -> PingResult:
        """The result of `ping`."""
        return {
            "now": time.time_ns() // 1_000_000,
            "uptimeMs": int((time.monotonic() - self.started) * 1000),
            "instanceId": self.instance_id,
            "inflight": inflight,
        }

    def _take(self, frames: Sequence[Frame]) -> None:
        with self._lock:
            # Blocks the reader's thread, so the pipe fills and the client waits.
            self._lock.wait_for(lambda: self._held_bytes < MAX_HELD_BYTES or self._to_server)
            # Under the lock: a frame read now could otherwise reach the server before those that `hand_over`
            # returns.
            if self._to_server:
                self._to_server(frames)
                return
            for frame in frames:
                # Once one frame is held, all later ones are: an answer out of order would be a different program to
                # the client.
                if self._held_frames or not self._answer(frame):
                    self._held_frames.append(frame)
                    self._held_bytes += len(frame) if not isinstance(frame, Oversized) else 0
        self.greeted.set()

    def _end(self) -> None:
        with self._lock:
            self._ended = True
            on_end = self._on_end
        self.greeted.set()
        if on_end:
            on_end()

    def _answer(self, frame: Frame) -> bool:
        """Answer a plain `initialize`, or a `ping` of our own dialect; False leaves the frame to the server."""
        message = _plain_request(frame) if self.dialect in _EARLY_DIALECTS else None
        result = None if message is None else self._result(message["method"], message.get("params"))
        if message is None or result is None:
            return False
        self.stdout_writer.send(
            json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
        )
        return True

    def _result(self, method: str, params: Any) -> Mapping[str, object] | None:
        """The result of a plain request; None for any other."""
        if method == "ping" and not params and self.dialect in (None, native.NAME):
            return self.ping(0)
        if method != "initialize" or self._greeting is not None:
            return None
        if self.dialect in (None, native.NAME) and native.is_plain(params):
            self.dialect, self._greeting = native.NAME, params
            return self.initialize_result()
        if self.dialect in (None, acp.NAME) and acp.is_plain(params):
            self.dialect, self._greeting = acp.NAME, params
            return acp.initialize_result(acp.requested_version(params) or 0)
        return None


def _plain_request(frame: Frame) -> dict[str, Any] | None:
    """The frame as a request, if it needs no further validation."""
    # Escapes and non-ASCII may hold lone surrogates: such a frame is left to the decoder that refuses
    # them.
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


def _exit_at_once(number: int, frame: FrameType | None) -> None:
    """Exit on a signal before the server is running: nothing is open, so there is nothing to close."""
    os._exit(128 + number)
