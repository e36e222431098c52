"""`python -m benchmarks`: measure, print the table, and keep the raw samples if asked."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from . import installed, machine, ours, peers, report
from .contestant import Contestant
from .rows import EXPERIMENTS, ROWS, Bench

EVERYONE = ["ours", "ours with a tool", *peers.PEERS, peers.NULL]


def main() -> int:
    arguments = _arguments()
    missing = None if os.environ.get(peers.INSIDE) else peers.missing()
    if not os.environ.get(peers.INSIDE) and not os.environ.get("SIDECAR_COMMAND"):
        return installed.run("benchmarks", sys.argv[1:])
    if not arguments.alone and not missing and not os.environ.get(peers.INSIDE):
        return peers.run_inside("benchmarks", sys.argv[1:])
    if missing and not arguments.alone:
        print(f"Only ours is measured: {missing}.", file=sys.stderr)
    contestants = _contestants(arguments)
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
    print(f"medians of {arguments.runs} runs\n\n{report.table(bench, arguments.only)}")
    if arguments.json:
        report.write_json(bench, arguments.json, facts)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    names = [row.name for row in ROWS]
    parser.add_argument("--runs", type=int, default=7, help="samples of each row (default 7)")
    parser.add_argument("--quick", action="store_true", help="two runs: to see that it works")
    parser.add_argument(
        "--only", type=_names, default=names, help=f"rows, separated by commas: {', '.join(names)}"
    )
    parser.add_argument("--peers", type=_names, default=EVERYONE, help=f"of {','.join(EVERYONE)}")
    parser.add_argument("--alone", action="store_true", help="only ours, and no network namespace")
    parser.add_argument("--json", type=Path, help="write the raw samples here")
    arguments = parser.parse_args()
    if unknown := set(arguments.only) - set(names):
        parser.error(f"no such row: {', '.join(sorted(unknown))}")
    if arguments.quick:
        arguments.runs = 2
    return arguments


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _contestants(arguments: argparse.Namespace) -> list[Contestant]:
    found = [one for one in ours.contestants(peers.url()) if one.name in arguments.peers]
    if os.environ.get(peers.INSIDE):
        found += peers.contestants(arguments.peers)
    return found


def home_folder() -> Path:
    """On the disk that holds the user's home, where a real database would be: /tmp may be memory."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    cache.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix="sidecar-bench-", dir=cache))


def run(bench: Bench, only: list[str]) -> None:
    for experiment, rows in EXPERIMENTS.items():
        if set(rows) & set(only):
            print(f"{experiment.__name__}: {', '.join(rows)}", file=sys.stderr, flush=True)
            experiment(bench)


if __name__ == "__main__":
    sys.exit(main())
