"""`python -m benchmarks.editors`: what an editor waits for, beside our own protocol and other agents for editors.

`sidecar acp`, `sidecar serve`, codex-acp, Gemini CLI, opencode and a null program take turns in one run, with the same
fake model, on a network that has only loopback. `make bench-editors` installs the agents first.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path
from statistics import median

from . import installed, machine, ours, peers, report
from .__main__ import home_folder, run
from .contestant import Contestant
from .rows import ROWS, Bench, Row

MEASURED = ("init", "first", "warm-first", "warm-end", "stream")


def main() -> int:
    arguments = _arguments()
    if not os.environ.get(peers.INSIDE):
        if not os.environ.get("SIDECAR_COMMAND"):
            return installed.run("benchmarks.editors", sys.argv[1:])
        missing = peers.missing()
        if not missing:
            return peers.run_inside("benchmarks.editors", sys.argv[1:])
        print(f"Only ours are measured: {missing}.", file=sys.stderr)
    contestants = [one for one in _contestants() if one.name in arguments.agents]
    facts = {"machine": machine.description(), "load before": machine.load()}
    facts |= {one.name: one.version for one in contestants}
    folder = home_folder()
    try:
        bench = Bench(contestants, folder, arguments.runs)
        run(bench, arguments.only)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    facts["load after"] = machine.load()
    print("\n".join(f"{name}: {value}" for name, value in facts.items()))
    print(f"medians of {arguments.runs} runs\n\n{table(bench)}")
    if arguments.json:
        report.write_json(bench, arguments.json, facts)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.editors", description=__doc__)
    names = ["acp", "native", "codex-acp", "gemini", "opencode", "null"]
    parser.add_argument("--runs", type=int, default=7, help="samples of each row (default 7)")
    parser.add_argument("--only", type=_names, default=list(MEASURED), help=f"rows: {', '.join(MEASURED)}")
    parser.add_argument("--agents", type=_names, default=names, help=f"contestants: {', '.join(names)}")
    parser.add_argument("--json", type=Path, help="write the raw samples here")
    arguments = parser.parse_args()
    if unknown := set(arguments.only) - set(MEASURED):
        parser.error(f"no such row: {', '.join(sorted(unknown))}")
    return arguments


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _contestants() -> list[Contestant]:
    found = ours.editor_contestants(peers.url())
    return found + (peers.editor_agents() if os.environ.get(peers.INSIDE) else [])


def table(bench: Bench) -> str:
    """Medians of each program, and how ours for editors compares with our own protocol."""
    rows = [row for row in ROWS if bench.samples[row.name]]
    medians = {
        row.name: {name: median(samples) for name, samples in bench.samples[row.name].items()} for row in rows
    }
    head = ["", *(row.title for row in rows)]
    lines = [report.line(head), report.line(["---"] + ["---:"] * len(rows))]
    for name in (one.name for one in bench.contestants):
        lines.append(report.line([name, *(report.figure(row, medians[row.name].get(name)) for row in rows)]))
    lines.append(report.line(["acp beside native", *(_beside(row, medians[row.name]) for row in rows)]))
    return "\n".join(lines)


def _beside(row: Row, medians: dict[str, float]) -> str:
    """How much more or less than by our own protocol: in the row's unit, and as a share."""
    if "acp" not in medians or "native" not in medians:
        return "-"
    more = medians["acp"] - medians["native"]
    return f"{more:+,.1f} {row.unit}, {more / medians['native']:+.1%}"


if __name__ == "__main__":
    sys.exit(main())
