"""The samples as a Markdown table, and as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median

from .peers import PEERS
from .rows import ROWS, Bench, Row


def table(bench: Bench, only: list[str]) -> str:
    """The rows `only`: medians, how far ours is ahead of Codex and of the best peer, and how many times the null
    program's cost ours is.
    """
    names = [one.name for one in bench.contestants]
    head = ["", *names, "ahead of codex", "ahead of the best", "times null"]
    lines = [line(head), line(["---"] + ["---:"] * (len(head) - 1))]
    for row in ROWS:
        medians = {name: median(values) for name, values in bench.samples[row.name].items()}
        if medians and row.name in only:
            figures = [figure(row, medians.get(name)) for name in names]
            ratios = [
                _ratio(row, medians, "codex", "ours"),
                _ratio(row, medians, _best_peer(row, medians), "ours"),
                _ratio(row, medians, "ours", "null"),
            ]
            lines.append(line([row.title, *figures, *ratios]))
    return "\n".join(lines)


def write_json(bench: Bench, path: Path, facts: dict[str, str]) -> None:
    path.write_text(json.dumps({"facts": facts, "samples": bench.samples}, indent=1) + "\n")


def _best_peer(row: Row, medians: dict[str, float]) -> str:
    best = max if row.better == "more" else min
    return best((name for name in medians if name in PEERS), key=medians.__getitem__, default="")


def line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def figure(row: Row, value: float | None) -> str:
    if value is None:
        return "-"
    digits = f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
    return f"{digits} {row.unit}"


def _ratio(row: Row, medians: dict[str, float], over: str, under: str) -> str:
    """How many times `over` costs what `under` costs; for rows where more is better, the other way round."""
    if over not in medians or under not in medians:
        return "-"
    if row.better == "more":
        over, under = under, over
    return f"{medians[over] / medians[under]:.1f}x"
