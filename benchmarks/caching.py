"""`python -m benchmarks.caching`: how much of a request is what the one before it was, over a chat of 40 turns.

A model works on files of a project, over the imitation of a provider's API; the requests that it got are compared. The
control is the same blocks in the other order, with what changes on top: files, changes and what was found before the
history. The cost counts a cached token as a tenth of another, as providers charge.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Any

from sidecar.fake_provider import in_thread

from .pipe import Pipe

TURNS = 40
CACHED_PRICE = 0.1
Json = dict[str, Any]


def main() -> int:
    with tempfile.TemporaryDirectory() as folder, in_thread() as fake:
        project = _project(Path(folder))
        with Pipe(f"{folder}/data", "openai:fake", **fake.env) as pipe:
            pipe.call("chat/open", chatId="c", projectPath=str(project), config={"mode": "auto"})
            for number in range(TURNS):
                pipe.run(_prompt(number), chatId="c", promptId=f"p{number}")
        asked = [json.loads(request.body) for request in fake.requests if request.method == "POST"]
    ours = [_spelled(request["messages"]) for request in asked]
    control = [_spelled(_on_top(request["messages"])) for request in asked]
    print("| layout | previous request kept as prefix | cost beside no cache |\n|---|---:|---:|")
    for name, requests in (("ours", ours), ("what changes on top (control)", control)):
        print(f"| {name} | {mean(_kept(requests)):.3f} | {_cost(requests):.3f} |")
    print(f"\n{len(asked)} requests in {TURNS} turns")
    return 0


def _project(folder: Path) -> Path:
    project = folder / "project"
    project.mkdir()
    for number in range(4):
        lines = [f"def part_{number}_{line}(a, b):\n    return a + b * {line}\n" for line in range(60)]
        (project / f"mod{number}.py").write_text("\n".join(lines))
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    return project


def _prompt(number: int) -> str:
    name, line = f"mod{number % 4}.py", number % 60
    read = f'[[tool=read_file:{{"path": "{name}", "start_line": 1, "end_line": 40}}]]'
    edit = json.dumps(
        {"path": name, "old_string": f"b * {line}\n", "new_string": f"b * {line} + 0\n", "replace_all": True}
    )
    change = f"[[next]][[tool=edit_file:{edit}]]" if number % 3 == 0 else ""
    asked = f"Step {number}: explain and fix part_{number % 4}_{line} in {name}."
    return f"{asked} {read}{change}[[next]][[say=Done with {number}.]]"


def _spelled(messages: list[Json]) -> str:
    return "\n".join(json.dumps(message, ensure_ascii=False) for message in messages)


def _on_top(messages: list[Json]) -> list[Json]:
    """The newest prompt's context before everything else."""
    place = max(at for at, message in enumerate(messages) if message["role"] == "user")
    content = messages[place]["content"]
    text = content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)
    context, mark, prompt = text.rpartition("Step ")
    rest = [*messages[:place], {"role": "user", "content": mark + prompt}, *messages[place + 1 :]]
    return [{"role": "user", "content": context}, *rest]


def _kept(requests: list[str]) -> list[float]:
    return [_common(before, after) / max(1, len(before)) for before, after in pairwise(requests)]


def _cost(requests: list[str]) -> float:
    cost = float(len(requests[0]))
    for before, after in pairwise(requests):
        same = _common(before, after)
        cost += same * CACHED_PRICE + len(after) - same
    return cost / sum(map(len, requests))


def _common(left: str, right: str) -> int:
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[:middle] == right[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


if __name__ == "__main__":
    sys.exit(main())
