"""The process that runs a model, so that neither its work nor its crash is ours. Knows llama.cpp and lines of JSON.

It is run as a file of its own and imports nothing of the house. Lines in: first `load`, then `ask` and `stop`. Lines
out: `ready` or `failed`, then for each ask `taken`, any number of `delta` and `alive`, and one `end` or `error`;
`idle` before it leaves of its own accord. After a stop it is silent within a second, or gone. It ends when its stdin
does, and on Linux in any case when its parent does.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import queue
import secrets
import shutil
import sys
import tempfile
import threading
from typing import Any, NoReturn

import msgspec

MAX_LINE_BYTES = 16 * 1024 * 1024
"""More text than any window takes; the other end refuses longer requests before it sends them."""

MAX_ASKS = 4
"""The other end has one ask under way at a time; more than a few waiting is a fault of ours."""

BATCH = 32
"""Tokens of a prompt read at a time. A stop is heeded between two batches: on one busy core the small model takes
0.4 s for 32. Larger batches gain a tenth in speed and are deaf for longer than a stop may take."""

CACHE_MIB = 256
"""What prompts of other chats may take while this one is answered, so that going back to one need not read it anew."""

STOP_S = 1.0
"""How long an answer may go on after a stop; between two tokens it takes milliseconds. Then the process ends."""

MAX_SOCKET_PATH = 100
"""The operating systems' bound is 104 to 108 bytes."""


class Ask(msgspec.Struct, frozen=True):
    """A request in the words of OpenAI's chat API; `calls` is a JSON Schema that a tool call must fit."""

    id: int
    body: dict[str, Any]
    calls: dict[str, Any] | None = None


class Line(msgspec.Struct, frozen=True):
    """What the parent says; exactly one member is there."""

    load: dict[str, Any] | None = None
    ask: Ask | None = None
    stop: int | None = None


class Inbox:
    """Reads the parent's lines on a thread of its own: a stop must be heard while the model speaks."""

    def __init__(self) -> None:
        self.asks: queue.Queue[Ask] = queue.Queue(MAX_ASKS)
        self.stopped = 0
        self.ended = 0
        self._decode = msgspec.json.Decoder(Line).decode

    def first(self) -> dict[str, Any]:
        return self._decode(self._line()).load or {}

    def follow(self) -> None:
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        try:
            while True:
                line = self._decode(self._line())
                if line.stop is not None:
                    self.stopped = line.stop
                    insist = threading.Timer(STOP_S, self._insist, [line.stop])
                    insist.daemon = True
                    insist.start()
                if line.ask is not None:
                    self.asks.put(line.ask)
        finally:
            # Without this thread the end of stdin would not be heard.
            os._exit(1)

    def _insist(self, id: int) -> None:
        if self.ended < id:
            os._exit(1)

    def _line(self) -> bytes:
        line = sys.stdin.buffer.readline(MAX_LINE_BYTES + 1)
        if not line.endswith(b"\n"):
            os._exit(0)
        return line


class Outbox:
    """Writes lines to what was stdout. From then on stdout is stderr, so that no library can write between them."""

    def __init__(self) -> None:
        self._fd = os.dup(1)
        os.dup2(2, 1)

    def say(self, event: str, **members: Any) -> None:
        data = msgspec.json.encode({"event": event, **members}) + b"\n"
        try:
            while data:
                data = data[os.write(self._fd, data) :]
        except OSError:
            os._exit(0)


class Failure(Exception):
    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def main() -> NoReturn:
    inbox, outbox = Inbox(), Outbox()
    options = inbox.first()
    _die_with_parent(options["parent"])
    inbox.follow()
    try:
        server = _load(options)
    except Failure as failure:
        outbox.say("failed", kind=failure.kind, message=str(failure))
        os._exit(1)
    outbox.say("ready")
    try:
        while True:
            _answer(server, inbox.asks.get(timeout=options["idle_seconds"]), inbox, outbox)
    except queue.Empty:
        outbox.say("idle")
    finally:
        # Not sys.exit: the library's threads would have to be waited for.
        os._exit(0)


def _die_with_parent(parent: int) -> None:
    """The end of stdin is not heard while the library loads a model, for it keeps the interpreter's lock."""
    if sys.platform != "linux":
        return
    import ctypes
    import signal

    set_parent_death_signal = 1
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


def _load(options: dict[str, Any]) -> Any:
    try:
        library = importlib.import_module("xllamacpp")
    except ImportError as error:
        raise Failure("no_library", str(error)) from error
    with tempfile.TemporaryFile() as log:
        os.dup2(log.fileno(), 2)
        os.dup2(2, 1)
        try:
            return library.Server(_params(library, options))
        except (RuntimeError, ValueError, OSError, MemoryError) as error:
            raise Failure("load", _reason(log) or str(error)) from error
        finally:
            shutil.rmtree(options["folder"], ignore_errors=True)
            silent = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silent, 2)
            os.dup2(silent, 1)


def _params(library: Any, options: dict[str, Any]) -> Any:
    params = library.CommonParams()
    params.model.path = options["path"]
    params.n_ctx = options["window"]
    params.n_parallel = 1
    params.n_batch = params.n_ubatch = BATCH
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options["threads"]
    params.cache_ram_mib = CACHE_MIB
    params.warmup = False
    params.fit_params = False
    params.verbosity = 1
    _close_door(params, options["folder"])
    return params


def _close_door(params: Any, folder: str) -> None:
    """The library insists on serving HTTP too. Nobody knows the key, and the socket's folder goes once it listens."""
    params.api_keys = [secrets.token_hex(32)]
    params.ui = params.endpoint_slots = params.endpoint_props = params.endpoint_metrics = False
    params.cors_origins = "null"
    params.n_threads_http = 1
    path = os.path.join(folder, "http.sock")
    if sys.platform != "win32" and len(os.fsencode(path)) <= MAX_SOCKET_PATH:
        params.hostnames = [path]


def _reason(log: Any) -> str:
    """The library's own words for why a model cannot be loaded."""
    log.seek(0)
    lines = log.read(64 * 1024).decode(errors="replace").splitlines()
    for mark in ("error loading model: ", " E "):
        for line in lines:
            if mark in line:
                return str(line.partition(mark)[2].strip())
    return ""


def _answer(server: Any, ask: Ask, inbox: Inbox, outbox: Outbox) -> None:
    end: dict[str, Any] = {}

    def take(data: bytes) -> bool:
        """True stops the model. An exception would be lost in the library, so none must leave here."""
        chunk = msgspec.json.decode(data)
        if "choices" not in chunk:
            end["error"] = chunk.get("error") or chunk
            return True
        if usage := chunk.get("usage"):
            end["usage"] = usage
        for choice in chunk["choices"]:
            _say(ask.id, choice.get("delta") or {}, outbox)
            end["finish"] = choice.get("finish_reason") or end.get("finish")
        return inbox.stopped >= ask.id

    outbox.say("taken", id=ask.id)
    if inbox.stopped < ask.id:
        body = ask.body | ({"grammar": grammar} if (grammar := _grammar(ask.calls)) else {})
        server.handle_chat_completions(msgspec.json.encode(body), take)
    inbox.ended = ask.id
    if "error" in end:
        error = end["error"] if isinstance(end["error"], dict) else {"message": str(end["error"])}
        kind, message, tokens = (error.get(key) for key in ("type", "message", "n_prompt_tokens"))
        outbox.say("error", id=ask.id, kind=str(kind), message=str(message), tokens=tokens)
    else:
        outbox.say("end", id=ask.id, finish=end.get("finish"), usage=end.get("usage") or {})


def _say(id: int, delta: dict[str, Any], outbox: Outbox) -> None:
    """A piece of the answer; or, while the prompt is read, that another batch of it was."""
    text, thought, calls = delta.get("content"), delta.get("reasoning_content"), delta.get("tool_calls")
    if text or thought or calls:
        outbox.say("delta", id=id, text=text or "", thought=thought or "", calls=calls or [])
    else:
        outbox.say("alive", id=id)


def _grammar(calls: dict[str, Any] | None) -> str | None:
    """Free text, or a call that fits the schema: what begins with a brace must become a call."""
    if calls is None:
        return None
    library = importlib.import_module("xllamacpp")
    try:
        made: str = library.json_schema_to_grammar(calls)
    except (RuntimeError, ValueError, TypeError):
        return None
    if made.startswith("%llguidance"):
        schema = msgspec.json.encode(calls).decode()
        return f"%llguidance {{}}\nstart: call | text\ncall: %json {schema}\ntext: /[^{{ \\t\\n](.|\\n)*/\n"
    return (
        made.replace("root ::=", "call ::=", 1) + "\nroot ::= call | text\ntext ::= [^{ \\t\\n] [^\\x00]*\n"
    )


if __name__ == "__main__":
    main()
