"""`python -m benchmarks.agent_servers`: `sidecar mcp` beside context-mode from npm, over the same pipe in one run.

Spawn to the answer of `tools/list`, memory, the tokens of the definitions, hooks, ten megabytes indexed and searched,
and how often the words of an answer are in the first 600 tokens of a result. Samples alternate, so that other load on
the machine affects both. The client, the texts and the questions are the same.

context-mode must be installed (`make bench-agents` does that): `SIDECAR_CONTEXT_MODE` names the folder.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from typing import TypeVar

import msgspec

from sidecar.context.tokens.counting import TokenCounter
from sidecar.index.index import PLAIN_FAMILY

from . import machine
from .agent_contestants import AgentServer, ContextMode, Ours, Process, what_context_mode_lacks
from .index_data import Text, labelled, ours, ten_megabytes

BUDGET = 600
"""Tokens of a result that count; context-mode has no such limit of its own, so both are cut."""

FILES = 3
"""For ten megabytes: Sidecar takes files of at most 4 MiB."""

RARE_WORDS = 16
SETTLED_S = 1.0

TOKENS = TokenCounter()

Samples = dict[str, list[float]]

T = TypeVar("T")


class Found(msgspec.Struct, frozen=True):
    """Whether the answer is in the first tokens of a result, in the whole of it, and how long that is."""

    cut: bool
    whole: bool
    tokens: int


def main() -> None:
    arguments = _arguments()
    folder = Path(tempfile.mkdtemp(prefix="agent-servers-", dir=Path.home() / ".cache"))
    servers: list[AgentServer] = [Ours(folder), ContextMode(folder, arguments.context_mode)]
    samples: dict[str, Samples] = {}
    print(f"{machine.description()}; load before {machine.load()}", file=sys.stderr)
    try:
        for measure in (_measure_starts, _measure_hooks, _measure_index):
            for row, server, values in measure(servers, arguments.runs):
                samples.setdefault(row, {}).setdefault(server.name, []).extend(values)
            print(f"{measure.__name__}: done, load {machine.load()}", file=sys.stderr, flush=True)
        found = {server.name: _answers_found(server, _texts()) for server in servers}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(_table(servers, samples, found))
    print(f"\n{machine.description()}; load after {machine.load()}")


def _measure_starts(
    servers: Sequence[AgentServer], runs: int
) -> Iterator[tuple[str, AgentServer, list[float]]]:
    """Each with a handshake; the first start of each, in a new home, is not counted."""
    for server in servers:
        with server.start() as process:
            tools = process.request("tools/list")
            yield "tokens", server, [TOKENS.count(json.dumps(tools, ensure_ascii=False), PLAIN_FAMILY)]
            yield "tools", server, [len(tools["tools"])]
    for server in _rounds(servers, runs):
        with server.start() as process:
            process.request("tools/list")
            yield "start", server, [process.age_ms()]
            process.rest(SETTLED_S)
            yield "memory", server, [machine.rss_mb([process.pid])]


def _measure_hooks(
    servers: Sequence[AgentServer], runs: int
) -> Iterator[tuple[str, AgentServer, list[float]]]:
    """What Claude Code waits for: the same events through both."""
    for server in _rounds(servers, 3 * runs):
        for event in server.hook_events:
            yield f"hook {event}", server, [server.run_hook(event)]


def _measure_index(
    servers: Sequence[AgentServer], runs: int
) -> Iterator[tuple[str, AgentServer, list[float]]]:
    text = ten_megabytes(_texts())
    rare = [word for word in dict.fromkeys(text.split()) if word.isalnum() and len(word) > 6]
    words = rare[:: max(1, len(rare) // RARE_WORDS)][:RARE_WORDS]
    size = len(text) // FILES + 1
    files = {f"ten-{number}.log": text[number * size : (number + 1) * size] for number in range(FILES)}
    for server in servers:
        for name, part in files.items():
            server.write_file(name, part)
    for server in _rounds(servers, max(1, runs // 3)):
        server.forget()
        with server.start() as process:
            yield "index", server, [sum(_time_index(server, process, name) for name in files)]
            yield "memory after", server, [machine.rss_mb([process.pid])]
    for server in servers:
        for few in _by(words, server.searches_per_process):
            with server.start() as process:
                server.search(process, "unmeasured", None)
                yield "search", server, [_time_search(server, process, word) for word in few]


def _time_index(server: AgentServer, process: Process, name: str) -> float:
    return process.timed(lambda: server.index(process, name))


def _time_search(server: AgentServer, process: Process, word: str) -> float:
    return process.timed(lambda: server.search(process, word, None))


def _answers_found(server: AgentServer, texts: Sequence[Text]) -> dict[str, list[Found]]:
    """What came back for each question: asked within its own text, and in all of them."""
    server.forget()
    with server.start() as process:
        for text in texts:
            server.write_file(text.name, text.text)
            server.index(process, text.name)
    found: dict[str, list[Found]] = {"scoped": [], "pooled": []}
    asked = [(text.name, *question) for text in texts for question in text.questions]
    for where in found:
        for few in _by(asked, server.searches_per_process):
            with server.start() as process:
                for name, question, answer in few:
                    shown = server.search(process, question, name if where == "scoped" else None)
                    found[where].append(_look(shown, answer))
    return found


def _look(shown: str, answer: str) -> Found:
    cut = TOKENS.cut(shown, BUDGET, PLAIN_FAMILY)
    wanted = _folded(answer)
    return Found(wanted in _folded(cut), wanted in _folded(shown), TOKENS.count(shown, PLAIN_FAMILY))


def _texts() -> list[Text]:
    folder = Path(os.environ.get("SIDECAR_EVALS") or Path(__file__).parents[2] / "shared" / "evals")
    return labelled(folder) or ours()


def _rounds(servers: Sequence[AgentServer], runs: int) -> Iterator[AgentServer]:
    """Each once in each round; the order turns."""
    for number in range(runs):
        for place in range(len(servers)):
            machine.wait_until_quiet()
            yield servers[(number + place) % len(servers)]


def _by(values: Sequence[T], size: int) -> Iterable[Sequence[T]]:
    return (values[at : at + size] for at in range(0, len(values), size))


def _folded(text: str) -> str:
    return " ".join(text.lower().split())


def _table(
    servers: Sequence[AgentServer], samples: dict[str, Samples], found: dict[str, dict[str, list[Found]]]
) -> str:
    def row(title: str, show: Callable[[AgentServer], str]) -> str:
        return f"| {title} | {' | '.join(show(server) for server in servers)} |"

    def p50(name: str, unit: str) -> Callable[[AgentServer], str]:
        return lambda server: f"{median(samples[name][server.name]):,.1f} {unit}"

    def spread(name: str) -> Callable[[AgentServer], str]:
        return lambda server: _spread(samples.get(name, {}).get(server.name, []))

    events = list(dict.fromkeys(event for server in servers for event in server.hook_events))
    lines = [
        f"| | {' | '.join(f'{server.name} {server.version}' for server in servers)} |",
        f"|---|{'---:|' * len(servers)}",
        row("spawn to `tools/list` answered, p50 and p95", spread("start")),
        row("memory after it", p50("memory", "MB")),
        row("tokens of the tool definitions", lambda server: f"{samples['tokens'][server.name][0]:,.0f}"),
        row("tools", lambda server: f"{samples['tools'][server.name][0]:.0f}"),
        *(row(f"hook `{event}`, p50 and p95", spread(f"hook {event}")) for event in events),
        row("ten megabytes in three files indexed", p50("index", "ms")),
        row("memory after it", p50("memory after", "MB")),
        row("search for a rare word in them, p50 and p95", spread("search")),
        *(
            row(f"{title}, {where}", partial(_show_found, found, where, show))
            for where in ("scoped", "pooled")
            for title, show in _ANSWERS.items()
        ),
    ]
    return "\n".join(lines)


def _spread(values: Sequence[float]) -> str:
    if not values:
        return "none"
    worst = quantiles(values, n=20)[18] if len(values) > 1 else values[0]
    return f"{median(values):.0f}, {worst:.0f} ms"


def _show_found(
    found: dict[str, dict[str, list[Found]]],
    where: str,
    show: Callable[[list[Found]], str],
    server: AgentServer,
) -> str:
    return show(found[server.name][where])


_ANSWERS: dict[str, Callable[[list[Found]], str]] = {
    f"answers in the first {BUDGET} tokens": lambda all: f"{sum(one.cut for one in all)} of {len(all)}",
    "answers in the whole result": lambda all: f"{sum(one.whole for one in all)} of {len(all)}",
    "tokens of a result, p50": lambda all: f"{median(one.tokens for one in all):,.0f}",
}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.agent_servers", description=__doc__)
    home = Path(os.environ.get("SIDECAR_CONTEXT_MODE") or Path.home() / ".cache" / "sidecar-context-mode")
    parser.add_argument("--context-mode", type=Path, default=home, help="where npm has installed it")
    parser.add_argument("--runs", type=int, default=15, help="starts of each (default 15)")
    arguments = parser.parse_args()
    if lacking := what_context_mode_lacks(arguments.context_mode):
        parser.error(
            f"context-mode in {arguments.context_mode} lacks {lacking}; `make bench-agents` installs it"
        )
    return arguments


if __name__ == "__main__":
    main()
