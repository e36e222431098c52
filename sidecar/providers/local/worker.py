"""The process that runs a model, which isolates its CPU use and its crashes. Knows llama.cpp and lines of JSON.

It is run as a script and imports nothing of the program. Lines in: first `load`, then `ask` and `stop`. Lines out:
`ready` or `failed`, then for each ask `taken`, any number of `delta` and `alive`, and one `end` or `error`; `idle`
before it exits by itself. After a stop it is silent within a second, or exits. It exits when its stdin ends, and on
Linux in any case when its parent does.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import queue
import secrets
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Mapping
from typing import Any, NoReturn

import msgspec

if sys.platform == "linux":
    import ctypes

MAX_LINE_BYTES = 16 * 1024 * 1024
"""More text than any window holds; the parent refuses longer requests before it sends them."""

MAX_ASKS = 4
"""The parent has one ask in flight at a time; more than a few waiting ones are a bug."""

BATCH = 32
"""Prompt tokens per batch. A stop takes effect between two batches: on one busy core the small model takes 0.4 s for
32. Larger batches are a tenth faster and delay a stop for longer than it may take.
"""

CACHE_MIB = 256
"""Memory for cached prompts of other chats, so that switching back to one need not process it again."""

STOP_S = 1.0
"""How long an answer may continue after a stop; between two tokens it takes milliseconds. Then the process exits."""

TOOL_MARK, TALK_MARK = "TOOL ", "TALK "
"""What an answer begins with that is a tool call, and one that is text. A small model that has to begin with one of
two words decides better than one that begins with a brace or any other character.
"""

MAX_SOCKET_PATH = 100
"""The limit of operating systems is 104 to 108 bytes."""


Json = dict[str, Any]
"""A JSON object in the format of another program."""


class LoadOptions(msgspec.Struct, frozen=True):
    """Which model to load and how; `folder` is private to this process, and `parent` the process that it ends with."""

    path: str
    window: int
    threads: int
    idle_seconds: float
    parent: int
    folder: str


class WorkerQuestion(msgspec.Struct, frozen=True):
    """A request in the format of OpenAI's chat API; `calls` is a JSON Schema that a tool call must match."""

    id: int
    body: Mapping[str, object]
    calls: Json | None = None


class ParentLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message of the parent; exactly one field is set."""

    load: LoadOptions | None = None
    ask: WorkerQuestion | None = None
    stop: int | None = None


class ParentReader:
    """Reads the parent's lines on a thread: a stop must be read while the model generates."""

    def __init__(self) -> None:
        self.asks: queue.Queue[WorkerQuestion] = queue.Queue(MAX_ASKS)
        self.stopped = 0
        self.ended = 0
        self._decode = msgspec.json.Decoder(ParentLine).decode

    def first(self) -> LoadOptions:
        options = self._decode(self._line()).load
        if options is None:
            raise ValueError("the first line must be `load`")
        return options

    def follow(self) -> None:
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        try:
            while True:
                line = self._decode(self._line())
                if line.stop is not None:
                    self.stopped = line.stop
                    # The library may hang inside one batch, where it never asks whether to stop.
                    insist = threading.Timer(STOP_S, self._exit_unless_stopped, [line.stop])
                    insist.daemon = True
                    insist.start()
                if line.ask is not None:
                    self.asks.put(line.ask)
        finally:
            # Without this thread the end of stdin would not be noticed.
            os._exit(1)

    def _exit_unless_stopped(self, id: int) -> None:
        if self.ended < id:
            os._exit(1)

    def _line(self) -> bytes:
        line = sys.stdin.buffer.readline(MAX_LINE_BYTES + 1)
        # The end of stdin, or a line that the parent would never send: nobody to answer either way.
        if not line.endswith(b"\n"):
            os._exit(0)
        return line


class EventWriter:
    """Writes lines to the original stdout. From then on stdout is stderr, so that no library can write between them."""

    def __init__(self) -> None:
        self._fd = os.dup(1)
        os.dup2(2, 1)

    def write_event(self, event: str, **members: Any) -> None:
        data = msgspec.json.encode({"event": event, **members}) + b"\n"
        try:
            while data:
                data = data[os.write(self._fd, data) :]
        except OSError:
            os._exit(0)


class WorkerFailure(Exception):
    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def main() -> NoReturn:
    inbox, outbox = ParentReader(), EventWriter()
    options = inbox.first()
    _die_with_parent(options.parent)
    # Before the model is loaded, which takes minutes on a slow disk: the end of the parent must be
    # noticed.
    inbox.follow()
    try:
        server = _load(options)
    except WorkerFailure as failure:
        outbox.write_event("failed", kind=failure.kind, message=str(failure))
        os._exit(1)
    outbox.write_event("ready")
    try:
        while True:
            _answer(server, inbox.asks.get(timeout=options.idle_seconds), inbox, outbox)
    except queue.Empty:
        outbox.write_event("idle")
    finally:
        # Not sys.exit: it would wait for the threads of the library.
        os._exit(0)


def _die_with_parent(parent: int) -> None:
    """The end of stdin is not noticed while the library loads a model, because it holds the GIL."""
    if sys.platform != "linux":
        return
    set_parent_death_signal = 1
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)
    # It may have ended before `prctl`: then no signal will come.
    if os.getppid() != parent:
        os._exit(0)


def _load(options: LoadOptions) -> Any:
    try:
        library = importlib.import_module("xllamacpp")
    except ImportError as error:
        raise WorkerFailure("no_library", str(error)) from error
    with tempfile.TemporaryFile() as log:
        # The library prints its reason to stderr; the exception does not have it.
        os.dup2(log.fileno(), 2)
        os.dup2(2, 1)
        try:
            return library.Server(_params(library, options))
        except (RuntimeError, ValueError, OSError, MemoryError) as error:
            raise WorkerFailure("load", _reason(log) or str(error)) from error
        finally:
            shutil.rmtree(options.folder, ignore_errors=True)
            silent = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silent, 2)
            os.dup2(silent, 1)


def _params(library: Any, options: LoadOptions) -> Any:
    params = library.CommonParams()
    params.model.path = options.path
    params.n_ctx = options.window
    params.n_parallel = 1
    params.n_batch = params.n_ubatch = BATCH
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options.threads
    params.cache_ram_mib = CACHE_MIB
    params.warmup = False
    params.fit_params = False
    params.verbosity = 1
    _disable_http(params, options.folder)
    return params


def _disable_http(params: Any, folder: str) -> None:
    """The library always serves HTTP too. Nobody knows the key, and the folder of the socket is deleted once it
    listens.
    """
    params.api_keys = [secrets.token_hex(32)]
    params.ui = params.endpoint_slots = params.endpoint_props = params.endpoint_metrics = False
    params.cors_origins = "null"
    params.n_threads_http = 1
    path = os.path.join(folder, "http.sock")
    if sys.platform != "win32" and len(os.fsencode(path)) <= MAX_SOCKET_PATH:
        params.hostnames = [path]


def _reason(log: Any) -> str:
    """Return the library's own message why a model cannot be loaded."""
    log.seek(0)
    lines = log.read(64 * 1024).decode(errors="replace").splitlines()
    for mark in ("error loading model: ", " E "):
        for line in lines:
            if mark in line:
                return str(line.partition(mark)[2].strip())
    return ""


def _answer(server: Any, ask: WorkerQuestion, inbox: ParentReader, outbox: EventWriter) -> None:
    end: Json = {}

    def take(data: bytes) -> bool:
        """Return True to stop the model. The library would swallow an exception, so none may escape."""
        chunk = msgspec.json.decode(data)
        if "choices" not in chunk:
            end["error"] = chunk.get("error") or chunk
            return True
        if usage := chunk.get("usage"):
            end["usage"] = usage
        if timings := chunk.get("timings"):
            end["rate"] = timings.get("predicted_per_second")
        for choice in chunk["choices"]:
            _write_delta(ask.id, choice.get("delta") or {}, outbox)
            end["finish"] = choice.get("finish_reason") or end.get("finish")
        return inbox.stopped >= ask.id

    outbox.write_event("taken", id=ask.id)
    # The stop may have come before its question was taken from the queue.
    if inbox.stopped < ask.id:
        body = {**ask.body, **({"grammar": grammar} if (grammar := _grammar(ask.calls)) else {})}
        server.handle_chat_completions(msgspec.json.encode(body), take)
    # Before the last event is written, so that a pending timer does not end the process after a stop that
    # worked.
    inbox.ended = ask.id
    if "error" in end:
        error = end["error"] if isinstance(end["error"], dict) else {"message": str(end["error"])}
        kind, message, tokens = (error.get(key) for key in ("type", "message", "n_prompt_tokens"))
        outbox.write_event("error", id=ask.id, kind=str(kind), message=str(message), tokens=tokens)
    else:
        outbox.write_event(
            "end", id=ask.id, finish=end.get("finish"), usage=end.get("usage") or {}, rate=end.get("rate")
        )


def _write_delta(id: int, delta: Json, outbox: EventWriter) -> None:
    """Write a piece of the answer or, while the prompt is processed, the progress."""
    text, thought, calls = delta.get("content"), delta.get("reasoning_content"), delta.get("tool_calls")
    if text or thought or calls:
        outbox.write_event("delta", id=id, text=text or "", thought=thought or "", calls=calls or [])
    else:
        outbox.write_event("alive", id=id)


def _grammar(calls: Json | None) -> str | None:
    """Return a grammar for text, or for a call that matches the schema: each begins with its mark. Text does not begin
    with a brace or a fence, where a call was meant.
    """
    if calls is None:
        return None
    library = importlib.import_module("xllamacpp")
    try:
        made: str = library.json_schema_to_grammar(calls)
    except (RuntimeError, ValueError, TypeError):
        return None
    if made.startswith("%llguidance"):
        schema = msgspec.json.encode(calls).decode()
        return (
            f'%llguidance {{}}\nstart: "{TOOL_MARK}" call | "{TALK_MARK}" text\ncall: %json {schema}\n'
            "text: /[^{` \\t\\n](.|\\n)*/\n"
        )
    return (
        made.replace("root ::=", "call ::=", 1)
        + f'\nroot ::= "{TOOL_MARK}" call | "{TALK_MARK}" text\ntext ::= [^{{` \\t\\n] [^\\x00]*\n'
    )


if __name__ == "__main__":
    main()
