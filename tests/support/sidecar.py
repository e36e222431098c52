"""A running sidecar as a client sees it: requests in, frames out, every frame kept and refereed.

Two threads read its stdout and stderr. Every wait has a bound and fails with what the sidecar said last.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import select
import signal
import struct
import subprocess
import termios
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from . import processes
from .frames import FrameReader, encode
from .patience import PATIENCE_S
from .referee import Referee
from .wire import Json

EXIT_WITHIN = 2.0
"""Section 1: gone within 2 s, whatever ended it."""

FIRST_ID = 1001
"""Our own ids; those that tests of raw input write by hand are smaller or words."""

ASK_AGAIN_S = 0.05
"""What a test waits for may be a file or a process: no frame announces it, so it is asked for this often."""

EventTest = Callable[[Json], bool]


class Refusal(Exception):
    """An answer that is an error, where a result was wanted."""

    def __init__(self, error: Json) -> None:
        super().__init__(str(error))
        self.code: int = error["code"]
        self.data: Json = error.get("data", {})

    def detail(self, name: str) -> Any:
        """A detail of the error: the contract names it and leaves open whether it stands in `data` or its `params`."""
        return self.data[name] if name in self.data else self.data["params"][name]


class Sidecar:
    """`stdin` and `stdout` are pipes of ours; `framing` is how we speak, and how we expect to be answered."""

    def __init__(
        self,
        argv: list[str],
        env: dict[str, str],
        cwd: Path,
        *,
        framing: str = "lines",
        drain_stderr: bool = True,
    ) -> None:
        self.framing = framing
        self.referee = Referee()
        self.frames: list[Json] = []
        self.replies: list[Json] = []
        self.garbage: list[bytes] = []
        self.killed = False
        self._ids = itertools.count(FIRST_ID)
        self.answering: dict[str, Callable[[Json], Any]] = {}
        """What this client answers when the sidecar asks: a function of the parameters for each method."""
        self.asked: list[Json] = []
        self._answers: dict[Any, list[Json]] = {}
        self._events: dict[str, list[Json]] = {}
        self._changed = threading.Condition()
        self._reading = threading.Event()
        self._reading.set()
        self._ended = False
        self._stderr: deque[bytes] = deque(maxlen=200)
        self._process = subprocess.Popen(
            argv,
            env=env,
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )
        assert self._process.stdin
        self._stdin = self._process.stdin
        os.set_blocking(self._stdin.fileno(), False)
        self._threads = [threading.Thread(target=self._read_stdout, daemon=True)]
        if drain_stderr:
            self._threads.append(threading.Thread(target=self._read_stderr, daemon=True))
        for thread in self._threads:
            thread.start()

    # What a client does.

    def initialize(self, **params: Any) -> Json:
        hello = {"protocol": "sidecar", "versions": [1], "client": {"name": "tests", "version": "1"}}
        return self.call("initialize", **{**hello, **params})

    def call(self, method: str, **params: Any) -> Json:
        """Ask and wait; an error raises `Refusal`."""
        return self.result(self.ask(method, **params))

    def refused(self, method: str, **params: Any) -> Refusal:
        """Ask for something that must be refused, and return how it was."""
        answer = self.answer(self.ask(method, **params))
        assert "error" in answer, f"{method} was not refused: {answer!r:.500}"
        return Refusal(answer["error"])

    def ask(self, method: str, **params: Any) -> int:
        """Send a request and return its id."""
        id = next(self._ids)
        with self._changed:
            self.referee.asked(id, method, params)
        self.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        return id

    def result(self, id: Any, timeout: float = PATIENCE_S) -> Json:
        answer = self.answer(id, timeout)
        if "error" in answer:
            raise Refusal(answer["error"])
        result: Json = answer["result"]
        return result

    def answer(self, id: Any, timeout: float = PATIENCE_S) -> Json:
        """The answer to the request `id`; for `None`, the first answer without an id."""
        self.wait_until(lambda: bool(self._answers.get(id)), timeout, f"answer to {id!r}")
        return self._answers[id][0]

    def answers(self, id: Any) -> list[Json]:
        """All answers to `id` so far; more than one would be one too many."""
        with self._changed:
            return list(self._answers.get(id, []))

    def notify(self, method: str, **params: Any) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def send(self, message: Json) -> None:
        self.send_bytes(encode(json.dumps(message, ensure_ascii=False).encode(), self.framing))

    def send_bytes(self, data: bytes, timeout: float = PATIENCE_S) -> None:
        """Write raw bytes, never blocking for longer than `timeout`."""
        view = memoryview(data)
        end = time.monotonic() + timeout
        while view:
            if not select.select([], [self._stdin], [], max(0.0, end - time.monotonic()))[1]:
                raise AssertionError(self._explain(f"stdin not read: {len(view)} bytes left"))
            view = view[os.write(self._stdin.fileno(), view[: 1 << 20]) :]

    def wait_asked(self, method: str, timeout: float = PATIENCE_S, skip: int = 0) -> Json:
        """The request of the sidecar that comes after `skip` others of this method."""

        def found() -> list[Json]:
            return [request for request in self.asked if request["method"] == method][skip:]

        self.wait_until(lambda: bool(found()), timeout, f"request {method}")
        return found()[0]

    def reply(self, request: Json, result: Any) -> None:
        """Answer a request of the sidecar."""
        self.send({"jsonrpc": "2.0", "id": request["id"], "result": result})

    # What it hears.

    def events(self, session: str, *types: str) -> list[Json]:
        """The events of a chat so far, all or those of `types`."""
        with self._changed:
            seen = list(self._events.get(session, []))
        return [event for event in seen if not types or event["type"] in types]

    def seen(self) -> dict[str, list[Json]]:
        """The events of every chat so far."""
        with self._changed:
            return {session: list(events) for session, events in self._events.items()}

    def wait_event(
        self, session: str, test: EventTest | str, timeout: float = PATIENCE_S, skip: int = 0
    ) -> Json:
        """The first event that is of the type `test` or passes it, beyond the first `skip` ones."""
        passes: EventTest = (lambda event: event["type"] == test) if isinstance(test, str) else test
        start, found = skip, None

        def look() -> bool:
            nonlocal start, found
            seen = self._events.get(session, [])
            while start < len(seen) and found is None:
                found = seen[start] if passes(seen[start]) else None
                start += 1
            return found is not None

        self.wait_until(look, timeout, f"event {test} in {session}")
        assert found is not None
        return found

    def wait_turn(self, session: str, turn: str, timeout: float = PATIENCE_S) -> Json:
        """The `turn.ended` of `turn`."""
        return self.wait_event(session, lambda e: e["type"] == "turn.ended" and e["turnId"] == turn, timeout)

    def wait_frame(self, test: EventTest, timeout: float = PATIENCE_S) -> Json:
        """The first frame of any kind that passes `test`."""
        start, found = 0, None

        def look() -> bool:
            nonlocal start, found
            while start < len(self.frames) and found is None:
                found = self.frames[start] if test(self.frames[start]) else None
                start += 1
            return found is not None

        self.wait_until(look, timeout, "frame")
        assert found is not None
        return found

    def statuses(self, kind: str) -> list[Json]:
        with self._changed:
            return [
                f["params"]
                for f in self.frames
                if f.get("method") == "status" and f["params"]["type"] == kind
            ]

    def wait_until(self, ready: Callable[[], bool], timeout: float, what: str) -> None:
        """Wait until `ready()`, which is called after each read and every `ASK_AGAIN_S`."""
        end = time.monotonic() + timeout
        with self._changed:
            while not (ready() or self._ended) and time.monotonic() < end:
                self._changed.wait(min(ASK_AGAIN_S, max(0.0, end - time.monotonic())))
            if not ready():
                state = "stdout ended" if self._ended else f"{timeout} s passed"
                raise AssertionError(self._explain(f"no {what}: {state}"))

    @property
    def is_gone(self) -> bool:
        """Whether its stdout has ended."""
        return self._ended

    # Common errands.

    def say(self, text: str, *, prompt: str | None = None, **params: Any) -> Json:
        """Send a prompt; `chatId` and the rest are `params`."""
        return self.call(
            "prompt/send", promptId=prompt or f"p{self.pid}-{next(self._ids)}", text=text, **params
        )

    def run(self, text: str, *, prompt: str | None = None, **params: Any) -> Json:
        """Send a prompt, wait for the end of its turn and return the `turn.ended` event."""
        sent = self.say(text, prompt=prompt, **params)
        return self.wait_turn(sent["sessionId"], sent["turnId"])

    def journal(self, session: str, seq: int = 0, epoch: str | None = None) -> list[Json]:
        """All stored events of a chat after `seq`, page by page."""
        cursor = {"epoch": epoch or self.epoch(session), "seq": seq}
        events: list[Json] = []
        for _ in range(10_000):
            page = self.call("events/read", sessionId=session, after=cursor)
            events += page["events"]
            cursor = page["next"]
            if not page["hasMore"]:
                return events
        raise AssertionError(f"events/read of {session} never ends")

    def epoch(self, session: str) -> str:
        """The epoch of a chat that may not be open: a cursor that cannot be is refused with the true one."""
        refusal = self.refused("events/read", sessionId=session, after={"epoch": "?", "seq": 0})
        epoch: str = refusal.detail("epoch")
        return epoch

    # Its life.

    @property
    def pid(self) -> int:
        return self._process.pid

    def pause_reading(self) -> None:
        """Stop reading stdout; what one read already took still counts."""
        self._reading.clear()

    def resume_reading(self) -> None:
        self._reading.set()

    def unread_input(self) -> int:
        """How many bytes of ours wait in the pipe to its stdin."""
        answer = fcntl.ioctl(self._stdin.fileno(), termios.FIONREAD, b"\0\0\0\0")
        size: int = struct.unpack("i", answer)[0]
        return size

    def close_stdin(self) -> None:
        with contextlib.suppress(OSError):
            self._stdin.close()

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def kill(self, *, reap: bool = True) -> None:
        """SIGKILL. Unreaped it stays a zombie, as under a parent that does not look."""
        self.killed = True
        self._process.kill()
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        if reap:
            self.wait()

    def wait(self, timeout: float = PATIENCE_S) -> int:
        """The exit code, once it is gone and all that it wrote has been read."""
        self.resume_reading()
        # Popen.wait with a time limit sleeps between its looks, for up to 50 ms.
        if self._process.poll() is None and not processes.wait_until_gone(self.pid, timeout):
            raise AssertionError(self._explain(f"still running after {timeout} s"))
        code = self._process.wait()
        for thread in self._threads:
            thread.join(PATIENCE_S)
        return code

    def dispose(self) -> None:
        """Leave nothing behind, whatever happened."""
        self.resume_reading()
        self.close_stdin()
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for thread in self._threads:
            thread.join(PATIENCE_S)
        for stream in (self._process.stdout, self._process.stderr):
            if stream:
                stream.close()

    def stray_log_lines(self) -> list[bytes]:
        """Lines of stderr that are not one JSON object."""
        return [line for line in self._stderr if line.strip() and not _is_object(line)]

    def log_lines(self) -> list[Json]:
        return [json.loads(line) for line in self._stderr if _is_object(line)]

    # The machinery.

    def _explain(self, problem: str) -> str:
        log = b"\n".join(line[:1000] for line in list(self._stderr)[-12:]).decode(errors="replace")
        last = "\n".join(f"{frame!r:.300}" for frame in self.frames[-8:])
        return f"{problem} (exit code {self._process.poll()})\n--- last frames\n{last}\n--- stderr\n{log}"

    def _read_stdout(self) -> None:
        assert self._process.stdout
        reader = FrameReader(self.framing)
        for chunk in self._chunks(self._process.stdout.fileno()):
            bodies = reader.feed(chunk)
            with self._changed:
                for body in bodies:
                    self._take(body)
                self._changed.notify_all()
        with self._changed:
            # A process that is killed may leave half a frame; one that exits must not.
            if reader.rest and not self.killed:
                self.garbage.append(reader.rest)
            self._ended = True
            self._changed.notify_all()

    def _chunks(self, fd: int) -> Iterator[bytes]:
        while True:
            self._reading.wait()
            chunk = os.read(fd, 1 << 16)
            if not chunk:
                return
            yield chunk

    def _take(self, body: bytes) -> None:
        try:
            message = json.loads(body.decode("utf-8"), parse_constant=_no_constant)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            self.garbage.append(body)
            return
        self.referee.received(message)
        self.frames.append(message)
        if message.get("method") == "event":
            self._events.setdefault(str(message["params"].get("sessionId")), []).append(message["params"])
        elif "id" in message and "method" in message:
            self.asked.append(message)
            if message["method"] in self.answering:
                self.reply(message, self.answering[message["method"]](message["params"]))
        elif "method" not in message:
            self.replies.append(message)
            self._answers.setdefault(message.get("id"), []).append(message)

    def _read_stderr(self) -> None:
        assert self._process.stderr
        rest = b""
        while chunk := os.read(self._process.stderr.fileno(), 1 << 16):
            *lines, rest = (rest + chunk).split(b"\n")
            self._stderr.extend(lines)
        if rest:
            self._stderr.append(rest)


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")
