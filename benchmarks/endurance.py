"""`python -m benchmarks.endurance`: thousands of turns over HTTP in one process, and what they leave behind in it.

Chats side by side ask a fake provider, which runs in a process of its own. One turn in ten calls a tool, is cancelled,
meets a fault that passes, or one that does not, or its chat is left and opened again; now and then a chat is closed and
another begun. After the warm-up, memory, file descriptors and threads must stay as they are, and the log small.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CHATS = 8
TURNS_A_CHAT = 60
"""Then the chat is closed, and another one begun."""

WINDOW = 4000
"""Tokens: requests stay small, so that it is turns that are measured."""

MAX_GROWTH_MB = 20.0
"""Of resident memory after the warm-up: 12 for the turns that the store keeps in memory (`store/recent`), which come by
and by, and 8 for what fragments, other caches, SQLite's pages."""

MAX_MORE = CHATS
"""File descriptors more than after the warm-up: each chat may have a connection to the provider."""

MAX_MORE_THREADS = 3
"""They come and go, too."""

PATIENCE_S = 60.0

SPECIAL = {
    0: '[[tool=look:{"at": "it"}]] [[next]] [[say=seen]]',
    1: "[[n=400]] [[delay=15]]",
    3: "[[say=one two three]] [[fault=rate_limit_ms*1]]",
    4: "[[say=one two three]] [[fault=reset_mid]]",
    6: "[[say=one two three]] [[fault=cut_event]]",
    7: "[[say=one two three]] [[fault=bad_request]]",
    9: "[[think=Hm]] [[n=30]]",
}
"""By the last digit of a turn's number; all others are plain. The second is cancelled."""

CANCELLED, REOPENED = 1, 5

MAX_LOG_MB = 64.0
"""What the log is cut back to."""


@dataclass(frozen=True)
class Sample:
    turns: int
    seconds: float
    rss_mb: float
    descriptors: int
    threads: int
    log_mb: float


@dataclass
class Result:
    """The first sample is that of the warm-up's end."""

    samples: list[Sample] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def growth_mb(self) -> float:
        return self.samples[-1].rss_mb - self.samples[0].rss_mb

    @property
    def troubles(self) -> list[str]:
        first, last = self.samples[0], self.samples[-1]
        found = []
        if self.growth_mb > MAX_GROWTH_MB:
            found.append(f"memory has grown by {self.growth_mb:.1f} MB")
        if last.descriptors > first.descriptors + MAX_MORE:
            found.append(f"file descriptors: {first.descriptors}, and then {last.descriptors}")
        if last.threads > first.threads + MAX_MORE_THREADS:
            found.append(f"threads: {first.threads}, and then {last.threads}")
        if (log := max(sample.log_mb for sample in self.samples)) > MAX_LOG_MB:
            found.append(f"the log has grown to {log:.1f} MB")
        return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.endurance", description=__doc__)
    parser.add_argument("--turns", type=int, default=3000)
    parser.add_argument("--provider", default="openai", help="openai, openai-responses, anthropic, …")
    parser.add_argument("--every", type=int, default=250, help="turns between two samples")
    arguments = parser.parse_args()
    print(f"{'turns':>7} {'seconds':>8} {'RSS MB':>8} {'fds':>5} {'threads':>8} {'log MB':>7}")
    result = run(arguments.turns, arguments.provider, arguments.every, _print)
    print(", ".join(f"{count} {reason}" for reason, count in sorted(result.reasons.items())))
    print(f"memory since the warm-up: {result.growth_mb:+.1f} MB")
    print("; ".join(result.troubles) or "nothing is left behind")
    return 1 if result.troubles else 0


def run(
    turns: int, provider: str, every: int = 250, tell: Callable[[Sample], None] = lambda sample: None
) -> Result:
    """Run so many turns; the first `every` ones are the warm-up."""
    with tempfile.TemporaryDirectory(prefix="endurance-") as folder, _fake() as env:
        app = App(Path(folder), f"{provider}:fake", env)
        try:
            return _measured(app, turns, every, tell)
        finally:
            app.stop()


def _measured(app: App, turns: int, every: int, tell: Callable[[Sample], None]) -> Result:
    result, start = Result(), time.monotonic()
    for done in range(every, turns + 1, every):
        result.reasons += app.run(every)
        process = Path(f"/proc/{app.pid}")
        status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
        sample = Sample(
            done,
            time.monotonic() - start,
            int(status["VmRSS"].split()[0]) / 1024,
            len(list((process / "fd").iterdir())),
            int(status["Threads"]),
            app.log.stat().st_size / 1e6,
        )
        result.samples.append(sample)
        tell(sample)
    return result


class App:
    """A chat app with several chats: each sends its next prompt as soon as it was answered."""

    def __init__(self, folder: Path, model: str, env: dict[str, str]) -> None:
        config = folder / "config.toml"
        config.write_text(f"[providers.{model.partition(':')[0]}]\nretries = 2\ntimeout = 20\n")
        ours = {"HOME": str(folder), "SIDECAR_MODEL": model, "SIDECAR_DATA_DIR": str(folder / "data")}
        keyring = {"PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring"}
        kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
        self._child = subprocess.Popen(
            [sys.executable, "-m", "sidecar", "serve", "--config", str(config), "--log-level", "error"],
            env={**kept, **ours, **keyring, **env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.pid = self._child.pid
        self.log = folder / "data" / "sidecar.db-wal"
        self._ids = itertools.count(1)
        self._numbers = itertools.count(1)
        self._answers: dict[int, Callable[[Any], None]] = {}
        self._chats = {f"sidebar-{number}": 0 for number in range(CHATS)}
        self._names: dict[str, str] = {}
        self._cancels: set[str] = set()
        self._left = self._wanted = 0
        self._reasons: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._idle = threading.Event()
        self._failed: str | None = None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        hello = {"protocol": "sidecar", "versions": [1], "client": {"name": "endurance", "version": "1"}}
        self._ask("initialize", hello)

    def run(self, turns: int) -> Counter[str]:
        """So many turns, spread over the chats; how many ended for which reason."""
        with self._lock:
            self._left = self._wanted = turns
            self._reasons = Counter()
            self._idle.clear()
            for chat in list(self._chats):
                self._next(chat)
        if not self._idle.wait(PATIENCE_S):
            raise TimeoutError(f"no turn has ended for long: {self._reasons}")
        if self._failed:
            raise RuntimeError(self._failed)
        return self._reasons

    def stop(self) -> None:
        assert self._child.stdin
        assert self._child.stdout
        self._child.stdin.close()
        self._child.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        self._child.stdout.close()

    def _next(self, chat: str) -> None:
        """Send the chat's next prompt, or begin another chat in its place."""
        if self._left == 0:
            if self._reasons.total() == self._wanted:
                self._idle.set()
            return
        self._left -= 1
        number = next(self._numbers)
        count = self._chats.pop(chat)
        if count == TURNS_A_CHAT:
            self._ask("chat/close", {"chatId": chat})
            chat, count = f"chat-{number}", 0
        if count and number % 10 == REOPENED:
            self._ask("chat/close", {"chatId": chat})
            self._ask("chat/open", {"chatId": chat})
        if count == 0:
            self._ask("chat/open", {"chatId": chat, "config": {"window": WINDOW}})
        self._chats[chat] = count + 1
        text = f"Prompt {number}. {SPECIAL.get(number % 10, '[[say=This is a short answer]]')}"
        prompt = {"chatId": chat, "promptId": f"p{number}", "text": text}

        def sent(result: Any) -> None:
            self._names[result["sessionId"]] = chat
            if number % 10 == CANCELLED:
                self._cancels.add(result["turnId"])

        self._ask("prompt/send", prompt, sent)

    def _ask(self, method: str, params: Any, then: Callable[[Any], None] = lambda result: None) -> None:
        id = next(self._ids)
        self._answers[id] = then
        message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        assert self._child.stdin
        self._child.stdin.write(json.dumps(message).encode() + b"\n")
        self._child.stdin.flush()

    def _read(self) -> None:
        assert self._child.stdout
        for line in self._child.stdout:
            message = json.loads(line)
            with self._lock:
                if "method" not in message:
                    self._answered(message)
                elif message["method"] == "event":
                    self._happened(message["params"])
        self._failed = self._failed or (f"it left, with {self._left} turns to go" if self._left else None)
        self._idle.set()

    def _answered(self, message: Any) -> None:
        then = self._answers.pop(message["id"])
        if "error" in message:
            self._failed = str(message["error"])
            self._idle.set()
        else:
            then(message["result"])

    def _happened(self, event: Any) -> None:
        turn = event.get("turnId")
        if event["type"] == "message.delta" and turn in self._cancels:
            self._cancels.discard(turn)
            self._ask("turn/cancel", {"sessionId": event["sessionId"]})
        elif event["type"] == "turn.ended":
            self._cancels.discard(turn)
            self._reasons[event["data"]["reason"]] += 1
            self._next(self._names[event["sessionId"]])


@contextmanager
def _fake() -> Iterator[dict[str, str]]:
    """The fake provider in a process of its own, and the variables that lead to it."""
    command = [sys.executable, "-m", "sidecar", "fake-provider", "--quiet"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert child.stdout
    try:
        _, *variables = child.stdout.readline().split()
        yield dict(variable.split("=", 1) for variable in variables)
    finally:
        child.terminate()
        child.wait(PATIENCE_S)
        child.stdout.close()


def _print(sample: Sample) -> None:
    print(
        f"{sample.turns:7} {sample.seconds:8.1f} {sample.rss_mb:8.1f} {sample.descriptors:5} {sample.threads:8}"
        f" {sample.log_mb:7.1f}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
