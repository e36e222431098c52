"""`python -m benchmarks.work`: what tools cost, each figure beside a control that was measured in the same run.

A real sidecar with a scripted model, which answers at once, so that all that is measured is ours. What is timed
is what a client sees: from the bytes that it sends to the bytes that it reads.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import sidecar_protocol

import sidecar

from . import machine
from .ours import COMMAND, Lines

STEPS = 200
"""Calls in one turn, each in a request of its own."""

EDITED_LINES = 400
"""Of the file that is edited: 8 KB, as source files are."""

FOLDERS, FILES_EACH = 100, 100
"""Ten thousand files of some 2 KB; one in a hundred has the word that is looked for."""

RUNS_OF_CODE = 20
"""Programs in one turn: each takes as long as an interpreter needs to start."""

PATCHES = 2000
CALLS_A_TURN = 100
READS = 20
"""Of the ledger, in each run."""

PATIENCE_S = 300.0

Json = dict[str, Any]
Samples = dict[str, list[float]]


@dataclass(frozen=True)
class Row:
    """What is measured, in milliseconds, and by which control."""

    name: str
    title: str
    control: str


ROWS = [
    Row("look", "a step with `list_dir` or `read_file`", "a turn of plain text"),
    Row("edit", "a step with `edit_file`, 8 KB", "the 8 KB written and synced"),
    Row("write", "a step with `write_file`, 4 KB", "the 4 KB written and synced"),
    Row("glob", "`glob` in 10,000 files", "`rg --files`, or `find`"),
    Row("grep", "`grep` in 10,000 files", "`rg`, or `grep -r`"),
    Row("grep-without", "`grep` without ripgrep", "`grep -r`"),
    Row("code", "a step with `run_code`, `print(1)` in Python", "`run_command` with the same"),
    Row("list", "`patches/list` of 2,000", "`chat/list`"),
    Row("show", "`patches/show` of one in 2,000", "`chat/list`"),
]


@dataclass
class Measured:
    """The samples of each row, ours and its control's."""

    ours: Samples = field(default_factory=dict)
    control: Samples = field(default_factory=dict)

    def add(self, row: str, ours: float, control: float) -> None:
        """A sample in seconds."""
        self.ours.setdefault(row, []).append(ours * 1e3)
        self.control.setdefault(row, []).append(control * 1e3)


class Client:
    """One sidecar, its script, and the chat `c` in a project where everything is allowed."""

    def __init__(self, home: Path, project: Path, replies: list[Json], path: str | None = None) -> None:
        home.mkdir(parents=True, exist_ok=True)
        script = home / "script.json"
        script.write_text(json.dumps({"replies": replies}))
        self._ended: dict[str, tuple[float, str]] = {}
        self._changed = threading.Condition()
        environment = _environment(home, f"scripted:{script}", path)
        self._io = Lines(COMMAND, environment, home, self._take)
        hello = {"protocol": "sidecar", "versions": [1], "client": {"name": "bench"}}
        self.call("initialize", hello | {"processId": os.getpid()})
        config = {"mode": "auto", "maxSteps": 10_000}
        self.call("chat/open", {"chatId": "c", "projectPath": str(project), "config": config})

    def call(self, method: str, params: Json) -> tuple[Any, float]:
        """The result, and how long it took."""
        sent = time.monotonic()
        result, when = self._io.call(method, params, PATIENCE_S)
        return result, when - sent

    def turn(self, text: str, chat: str = "c") -> float:
        """How long the turn took that this prompt began."""
        sent = time.monotonic()
        prompt = {"chatId": chat, "promptId": f"{text} {sent}", "text": text}
        result, _ = self._io.call("prompt/send", prompt, PATIENCE_S)
        turn = result["turnId"]
        with self._changed:
            if not self._changed.wait_for(lambda: turn in self._ended, PATIENCE_S):
                raise TimeoutError(f"{text}: the turn does not end")
            when, reason = self._ended.pop(turn)
        if reason != "end_turn":
            raise RuntimeError(f"{text}: the turn ended by {reason}")
        return when - sent

    def done(self, count: int) -> None:
        """Check that so many calls were made in the last turn, all of them well: else nothing was measured."""
        history, _ = self.call("chat/history", {"chatId": "c"})
        items = [item for item in history["turns"][-1]["items"] if item["type"] == "tool"]
        bad = [item["output"]["text"] for item in items if item["status"] != "completed"]
        if bad or len(items) != count:
            raise RuntimeError(f"{len(items)} calls, {len(bad)} of them failed: {bad[:1]}")

    def stop(self) -> None:
        self._io.stop()

    def _take(self, method: str, event: Any, when: float) -> None:
        if method == "event" and event["type"] == "turn.ended":
            with self._changed:
                self._ended[event["turnId"]] = (when, event["data"]["reason"])
                self._changed.notify_all()


def main() -> int:
    arguments = _arguments()
    for package in (sidecar, sidecar_protocol):
        compileall.compile_dir(Path(package.__path__[0]), quiet=2, workers=0)
    print(f"machine: {machine.description()}\nload before: {machine.load()}", flush=True)
    measured = Measured()
    with _folder() as folder:
        for name in arguments.only:
            print(f"{name} …", file=sys.stderr, flush=True)
            EXPERIMENTS[name](folder / name, arguments.runs, measured)
    print(f"load after: {machine.load()}\nmedians of {arguments.runs} runs\n\n{table(measured)}")
    if arguments.json:
        samples = {"ours": measured.ours, "control": measured.control}
        arguments.json.write_text(json.dumps(samples, indent=1) + "\n")
    return 0


def steps(folder: Path, runs: int, measured: Measured) -> None:
    """A new project and a new database each time; the first round only warms up."""
    for run in range(runs + 1):
        project = folder / str(run) / "project"
        _small_project(project)
        client = Client(folder / str(run) / "home", project, _step_replies())
        try:
            plain = median(client.turn("plain") for _ in range(20))
            samples = {}
            for name in ("look", "edit", "write"):
                machine.wait_until_quiet()
                samples[name] = client.turn(name) / STEPS
                client.done(STEPS + (name == "edit"))
        finally:
            client.stop()
        if run:
            measured.add("look", samples["look"], plain)
            measured.add("edit", samples["edit"], _synced(project, (project / "edited.txt").read_bytes()))
            measured.add("write", samples["write"], _synced(project, _text(0, 4096).encode()))


def searches(folder: Path, runs: int, measured: Measured) -> None:
    """One call in a turn; the same with the programs in the same folder right before it."""
    project = folder / "project"
    _large_project(project)
    replies = [
        {"match": "glob", "steps": [_call("glob", pattern="**/*7.txt"), {"text": "done"}]},
        {"match": "grep", "steps": [_call("grep", pattern="needle [0-9]+"), {"text": "done"}]},
    ]
    client = Client(folder / "home", project, replies)
    without = Client(folder / "without", project, replies, path=str(folder / "nothing"))
    try:
        for run in range(runs + 1):
            machine.wait_until_quiet()
            controls = {row: _ran(command, project) for row, command in _controls().items()}
            samples = {"glob": client.turn("glob"), "grep": client.turn("grep")}
            samples["grep-without"] = without.turn("grep")
            for row, seconds in samples.items() if run else ():
                measured.add(row, seconds, controls[row])
        client.done(1)
        without.done(1)
    finally:
        client.stop()
        without.stop()


def code(folder: Path, runs: int, measured: Measured) -> None:
    """The same programs by either tool, one after the other; the first round only warms up."""
    project = folder / "project"
    project.mkdir(parents=True)
    client = Client(folder / "home", project, _code_replies())
    try:
        for run in range(runs + 1):
            machine.wait_until_quiet()
            samples = {}
            for name in ("by command", "by code"):
                samples[name] = client.turn(name) / RUNS_OF_CODE
                client.done(RUNS_OF_CODE)
            if run:
                measured.add("code", samples["by code"], samples["by command"])
    finally:
        client.stop()


def ledger(folder: Path, runs: int, measured: Measured) -> None:
    """Two thousand changes made by the model, a hundred a turn; then the list is read again and again."""
    project = folder / "project"
    project.mkdir(parents=True)
    client = Client(folder / "home", project, _ledger_replies())
    try:
        for turn in range(PATCHES // CALLS_A_TURN):
            client.turn(f"turn {turn:03}")
        client.done(CALLS_A_TURN)
        key = {"chatId": "c"}
        for run in range(runs + 1):
            machine.wait_until_quiet()
            for number in range(READS if run else 1):
                control = client.call("chat/list", {})[1]
                listed, seconds = client.call("patches/list", key)
                id = listed["items"][number % len(listed["items"])]["id"]
                shown, took = client.call("patches/show", key | {"id": id})
                assert shown["items"][0]["unifiedDiff"]
                if run:
                    measured.add("list", seconds, control)
                    measured.add("show", took, control)
    finally:
        client.stop()


EXPERIMENTS = {"steps": steps, "searches": searches, "code": code, "ledger": ledger}


def table(measured: Measured) -> str:
    """Medians, and how many times the control's cost ours is."""
    lines = ["|  | ours | control | times control |", "| --- | ---: | ---: | ---: |"]
    for row in ROWS:
        if row.name in measured.ours:
            ours, control = median(measured.ours[row.name]), median(measured.control[row.name])
            title = f"{row.title}; control: {row.control}"
            lines.append(f"| {title} | {_figure(ours)} | {_figure(control)} | {ours / control:.1f}x |")
    return "\n".join(lines)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.work", description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="samples of each row (default 5)")
    names = list(EXPERIMENTS)
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="only these experiments")
    parser.add_argument("--json", type=Path, help="write the raw samples here")
    return parser.parse_args()


def _figure(milliseconds: float) -> str:
    return f"{milliseconds:,.0f} ms" if milliseconds >= 100 else f"{milliseconds:.2f} ms"


def _call(name: str, **input: Any) -> Json:
    return {"toolCall": {"name": name, "input": input}}


def _step_replies() -> list[Json]:
    look = [
        _call("read_file", path=f"f{number}.txt") if number % 2 else _call("list_dir", path=f"d{number}")
        for number in range(STEPS)
    ]
    edit = [
        _call(
            "edit_file", path="edited.txt", old_string=f"line {number:03} ", new_string=f"LINE {number:03} "
        )
        for number in range(STEPS)
    ]
    write = [
        _call("write_file", path=f"new{number}.txt", content=_text(number, 4096)) for number in range(STEPS)
    ]
    end = {"text": "done"}
    return [
        {"match": "plain", "steps": [{"text": "This is a short answer."}]},
        {"match": "look", "steps": [*look, end]},
        {"match": "edit", "steps": [_call("read_file", path="edited.txt"), *edit, end]},
        {"match": "write", "steps": [*write, end]},
    ]


def _code_replies() -> list[Json]:
    numbers = range(RUNS_OF_CODE)
    ours = [_call("run_code", language="python", code=f"print({number})") for number in numbers]
    plain = [_call("run_command", command=f'python3 -c "print({number})"') for number in numbers]
    end = {"text": "done"}
    return [
        {"match": "by code", "steps": [*ours, end]},
        {"match": "by command", "steps": [*plain, end]},
    ]


def _ledger_replies() -> list[Json]:
    return [
        {
            "match": f"turn {turn:03}",
            "steps": [
                {
                    "toolCalls": [
                        {
                            "name": "write_file",
                            "input": {"path": f"t{turn}/f{n}.txt", "content": _text(n, 400)},
                        }
                        for n in range(CALLS_A_TURN)
                    ]
                },
                {"text": "done"},
            ],
        }
        for turn in range(PATCHES // CALLS_A_TURN)
    ]


def _small_project(project: Path) -> None:
    project.mkdir(parents=True)
    for number in range(STEPS):
        (project / f"f{number}.txt").write_text(_text(number, 2048))
        (project / f"d{number}").mkdir()
        for name in range(5):
            (project / f"d{number}" / f"{name}.txt").touch()
    lines = "".join(f"line {number:03} of the file\n" for number in range(EDITED_LINES))
    (project / "edited.txt").write_text(lines)


def _large_project(project: Path) -> None:
    for folder in range(FOLDERS):
        (project / f"folder{folder}").mkdir(parents=True)
        for number in range(FILES_EACH):
            found = f"a needle {folder}\n" if number == folder else ""
            (project / f"folder{folder}" / f"file{number}.txt").write_text(_text(number, 2048) + found)


def _text(seed: int, size: int) -> str:
    line = f"{seed} words of a file that somebody wrote, and some more of them\n"
    return (line * (size // len(line) + 1))[: size - 1] + "\n"


def _controls() -> dict[str, list[str]]:
    """What the same search costs a program that is made for it."""
    plain = ["grep", "-rnE", "needle [0-9]+", "."]
    if shutil.which("rg") is None:
        return {"glob": ["find", ".", "-name", "*7.txt"], "grep": plain, "grep-without": plain}
    return {
        "glob": ["rg", "--files", "--hidden", "--glob", "*7.txt"],
        "grep": ["rg", "--hidden", "--line-number", "needle [0-9]+", "."],
        "grep-without": plain,
    }


def _ran(command: list[str], folder: Path) -> float:
    began = time.monotonic()
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began


def _synced(folder: Path, data: bytes) -> float:
    """Seconds to write the bytes to a new file and have them on the disk: the median of as many as there are steps."""
    samples = []
    for number in range(STEPS):
        began = time.monotonic()
        with open(folder / f"control{number}", "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        samples.append(time.monotonic() - began)
    return median(samples)


def _environment(home: Path, model: str, path: str | None) -> dict[str, str]:
    """Nothing of the tester's own; `path` in the place of PATH hides the programs that are there."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    ours = {"HOME": str(home), "SIDECAR_DATA_DIR": str(home / "data"), "SIDECAR_MODEL": model}
    return kept | ours | {"LANG": "C.UTF-8"} | ({"PATH": path} if path else {})


@contextmanager
def _folder() -> Iterator[Path]:
    """On the disk that holds the user's home, where a real project would be: /tmp may be memory."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="sidecar-bench-", dir=cache) as folder:
        yield Path(folder)


if __name__ == "__main__":
    sys.exit(main())
