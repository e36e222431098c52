"""Kills an app that records a chat, or its sidecar, at random points, and compares what it has with the journal."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from . import processes
from .patience import PATIENCE_S
from .spawner import COMMAND, Spawner

Json = dict[str, Any]

PROMPTS = 120
"""A kill of the sidecar ends a turn, and a turn that is left alone has some 50 events: enough for 50 kills."""

FURTHEST = 40
"""So many events at most come between one kill and the next: it may hit any point of a turn, or between two."""


def kill_and_compare(
    spawn: Spawner, program: list[str], kills: int, seed: int, *, omits_nulls: bool = False
) -> int:
    """Run `program` to its end through `kills` kills, of itself and of its sidecar by turns; how many came in time.
    `omits_nulls`: the client writes a member that is null as absent.
    """
    file, chance = spawn.folder / "events.jsonl", random.Random(seed)
    killed = 0
    app = _start(spawn, program, file)
    for number in range(kills):
        if not _wait_for_lines(file, _lines(file) + chance.randint(1, FURTHEST), app):
            break
        victims = {app.pid} if number % 2 else _sidecars(spawn, app.pid)
        for pid in victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        killed += bool(victims)
        if number % 2:
            app.wait(PATIENCE_S)
            _cut_unfinished_line(file)
            app = _start(spawn, program, file)
    assert app.wait(4 * PATIENCE_S) == 0, "the app failed"
    recorded = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    shown, stored = flat(recorded), flat(spawn().journal("sc-tab-7-bf133f99bd6e5d06"))
    if omits_nulls:
        shown, stored = _without_nulls(shown), _without_nulls(stored)
    assert shown == stored[: len(shown)]
    _assert_each_prompt_ran_once(recorded)
    return killed


def flat(events: list[Json]) -> list[Json]:
    """The events with runs of deltas joined: how many share a frame depends on the moment."""
    joined: list[Json] = []
    for event in events:
        last = joined[-1] if joined else None
        if (
            last
            and last["type"] == event["type"] == "message.delta"
            and last["data"]["itemId"] == event["data"]["itemId"]
        ):
            assert event.get("from", event["seq"]) == last["seq"] + 1
            text = last["data"]["text"] + event["data"]["text"]
            joined[-1] = {**last, "seq": event["seq"], "data": {**last["data"], "text": text}}
        else:
            joined.append({key: value for key, value in event.items() if key not in ("from", "ts")})
    return joined


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(member) for name, member in value.items() if member is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _assert_each_prompt_ran_once(events: list[Json]) -> None:
    accepted = [event["data"]["promptId"] for event in events if event["type"] == "prompt.accepted"]
    assert accepted == [f"p-{number}" for number in range(1, PROMPTS + 1)]
    reasons = {event["data"]["reason"] for event in events if event["type"] == "turn.ended"}
    assert reasons <= {"end_turn", "interrupted"}


def _start(spawn: Spawner, program: list[str], file: Path) -> subprocess.Popen[bytes]:
    words = [*program, json.dumps(COMMAND), str(file), str(PROMPTS)]
    return subprocess.Popen(words, env=spawn.environment(), cwd=spawn.folder, stdout=sys.stderr)


def _wait_for_lines(file: Path, count: int, app: subprocess.Popen[bytes]) -> bool:
    """Whether the file has so many lines before the app ends."""
    processes.poll_until(lambda: _lines(file) >= count or app.poll() is not None, 4 * PATIENCE_S)
    return app.poll() is None


def _lines(file: Path) -> int:
    return file.read_bytes().count(b"\n") if file.exists() else 0


def _cut_unfinished_line(file: Path) -> None:
    data = file.read_bytes()
    file.write_bytes(data[: data.rfind(b"\n") + 1])


def _sidecars(spawn: Spawner, app: int) -> set[int]:
    """The processes of this test that are no app: its sidecar, at most one of them starting."""
    return processes.pids_with_mark(spawn.mark) - {app}
