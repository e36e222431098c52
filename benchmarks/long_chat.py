"""`python -m benchmarks.long_chat`: what assembling a prompt costs in a chat of 10,000 turns, through the pipe.

Imports a chat and asks `chat/context` for prompts that point back, that need nothing, and that name something rare,
each with another ending: nothing of an answer can be kept. Beside the time that a client waits stands the processor's,
which a busy machine changes less.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles

from .pipe import Pipe

CALLS = 30
BUDGETS = (4000, 16_000, None)
"""Tokens for all but the prompt; None is the model's whole window, 128,000."""

PROMPTS = ("What did I say earlier about topic13?", "Go on", "And topic55 with w1a2b?")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.long_chat", description=__doc__)
    parser.add_argument("--turns", type=int, default=10_000)
    turns = parser.parse_args().turns
    with tempfile.TemporaryDirectory() as data, Pipe(data, "openai:gpt-4o") as pipe:
        pipe.call("chat/import", chatId="c", data="\n".join(_lines(turns)))
        began = time.perf_counter()
        pipe.call("chat/context", chatId="c", text="Go on")
        print(
            f"{turns} turns; the first call, which loads the token table: {_ms(time.perf_counter() - began)}"
        )
        print("\n| budget | median | p95 | processor |\n|---|---:|---:|---:|")
        for budget in BUDGETS:
            print(_row(pipe, budget))
    return 0


def _row(pipe: Pipe, budget: int | None) -> str:
    more = {"budget": budget} if budget else {}
    pipe.call("chat/context", chatId="c", text=PROMPTS[0], **more)
    times: list[float] = []
    used = _processor(pipe.pid)
    for number in range(CALLS):
        began = time.perf_counter()
        text = f"{PROMPTS[number % len(PROMPTS)]} {number}"
        pipe.call("chat/context", chatId="c", text=text, **more)
        times.append(time.perf_counter() - began)
    used = (_processor(pipe.pid) - used) / CALLS
    slow = quantiles(times, n=20)[-1]
    return f"| {budget or 'the window'} | {_ms(median(times))} | {_ms(slow)} | {_ms(used)} |"


def _lines(turns: int) -> Iterator[str]:
    for number in range(turns):
        asked = f"Step {number}: what about {_words(number)} and topic{number % 97}?"
        yield json.dumps({"role": "user", "text": asked})
        answer = f"About topic{number % 97}: {_words(number + 1)} {_words(number + 2)}"
        yield json.dumps({"role": "assistant", "text": answer})


def _words(number: int) -> str:
    return " ".join(f"w{number * 7919 + place * 104729 & 0xFFFF:x}" for place in range(20 + number % 40))


def _processor(pid: int) -> float:
    """Seconds of a processor that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"


if __name__ == "__main__":
    sys.exit(main())
