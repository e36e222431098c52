"""Stands in for xllamacpp in the worker, so that its process can be tested without a model.

It is copied as `xllamacpp.py` to where the worker finds it first. The last message says what it does.
"""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any


class CommonParams(SimpleNamespace):
    def __init__(self) -> None:
        super().__init__(
            model=SimpleNamespace(), cpuparams=SimpleNamespace(), cpuparams_batch=SimpleNamespace()
        )


class Server:
    def __init__(self, params: CommonParams) -> None:
        self.params = params
        name = os.path.basename(params.model.path)
        for socket in getattr(params, "hostnames", []):
            open(socket, "x").close()
        if name == "holds.gguf":
            open(f"{params.model.path}.loading", "x").close()
            sum(range(10**12))  # In C, with the interpreter's lock held, as the real library loads.
        if name == "dies.gguf":
            os.kill(os.getpid(), signal.SIGKILL)

    def handle_chat_completions(self, body: bytes, callback: Callable[[bytes], bool]) -> None:
        request = json.loads(body)
        said = request["messages"][-1]["content"]
        for chunk in self._chunks(request, said):
            if callback(json.dumps(chunk).encode()) and said not in ("deaf", "stuck"):
                return

    def _chunks(self, request: dict[str, Any], said: str) -> Any:
        if said == "die":
            yield _delta(content="half")
            os.kill(os.getpid(), signal.SIGKILL)
        elif said == "deaf":
            yield _delta(content="…")
            time.sleep(600)
        elif said == "stuck":
            yield _delta(content="…")
            sum(range(10**12))
        elif said == "reads long":
            for _ in range(20):
                time.sleep(0.1)
                yield _delta()
            yield from _reply(request, "read")
        elif said == "too long":
            yield {"error": {"type": "exceed_context_size_error", "message": "no", "n_prompt_tokens": 9000}}
        elif said == "broken":
            yield {"error": {"code": 500, "type": "server_error", "message": "it broke"}}
        elif said == "endless":
            while True:
                time.sleep(0.01)
                yield _delta(content="more ")
        else:
            os.write(1, b"the library prints\n")
            yield from _reply(request, said)


def _reply(request: dict[str, Any], said: str) -> Any:
    if said == "environment":
        said = " ".join(sorted(os.environ))
    if said == "call in pieces":
        yield _delta(
            tool_calls=[{"index": 0, "id": "c1", "function": {"name": "look", "arguments": '{"at"'}}]
        )
        yield _delta(tool_calls=[{"index": 0, "function": {"arguments": ':"sea"}'}}])
    else:
        yield _delta(reasoning_content="hm") if said == "think" else _delta()
        for word in re.findall("[^ ]+ ?", said):
            yield _delta(content=word)
    yield {"choices": [{"delta": {}, "finish_reason": "length" if request["max_tokens"] == 1 else "stop"}]}
    # Of words alone, so that a test can have an answer that is long enough for its speed to count.
    written = max(3, len(said.split())) if said.startswith("words") else 3
    usage = {"prompt_tokens": 7, "completion_tokens": written, "prompt_tokens_details": {"cached_tokens": 2}}
    yield {"choices": [], "usage": usage, "timings": {"predicted_per_second": 42.0}}


def _delta(**delta: Any) -> dict[str, Any]:
    return {"choices": [{"delta": delta, "finish_reason": None}]}


def json_schema_to_grammar(schema: dict[str, Any]) -> str:
    return "%llguidance {}\nstart: %json " + json.dumps(schema)
