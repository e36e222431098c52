"""The lines at the start of a conversation, and the token meter after each answer. Pure."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from rich.cells import cell_len

from .safe_text import one_line

METER_CELLS = 10
FULL, EMPTY = "█", "░"


def start_lines(model: str, project: str | None, mode: str, home: str, width: int) -> list[str]:
    """Return model, project and mode on as few lines as fit. A path wider than that loses its beginning."""
    parts = [one_line(model), _shortened(_folder(project, home), width), f"mode {mode}"]
    lines = [parts.pop(0)]
    for part in parts:
        joined = f"{lines[-1]} · {part}"
        if cell_len(joined) <= width:
            lines[-1] = joined
        else:
            lines.append(part)
    return lines


def token_meter(data: Mapping[str, Any], width: int) -> str:
    """Return how full the context window is and what the answer took, from a `usage.updated`.

    On a narrow screen what matters least is left out.
    """
    parts = [*_window_parts(data.get("window")), *_turn_parts(data.get("turn") or {})]
    while len(parts) > 1 and cell_len(" · ".join(parts)) > width:
        parts.pop()
    return " · ".join(parts)


def short_count(tokens: int) -> str:
    """Return a number of tokens in a few characters: 950, 1.2k, 34k, 1.5M."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if tokens >= size - size // 2000:  # 999,500 and more are rounded to 1M
            share = tokens / size
            return f"{share:.1f}{unit}".replace(".0", "") if share < 10 else f"{share:.0f}{unit}"
    return str(tokens)


def _window_parts(window: object) -> list[str]:
    if not isinstance(window, Mapping) or not window.get("budget"):
        return []
    used, budget = int(window.get("used") or 0), int(window["budget"])
    full = min(METER_CELLS, -(-METER_CELLS * used // budget))
    bar = FULL * full + EMPTY * (METER_CELLS - full)
    return [f"{bar} {100 * used // budget} % of {short_count(budget)} tokens"]


def _turn_parts(turn: Mapping[str, Any]) -> list[str]:
    read, written, cost = (turn.get(name) for name in ("inputTokens", "outputTokens", "cost"))
    parts = [f"{short_count(read or 0)} in, {short_count(written or 0)} out"] if read or written else []
    return [*parts, f"${cost:.4f}" if cost < 0.01 else f"${cost:.2f}"] if cost else parts


def _folder(project: str | None, home: str) -> str:
    if project is None:
        return "no project"
    if not _is_within(project, home):
        return one_line(project)
    inside = os.path.relpath(project, home)
    return one_line("~" if inside == "." else f"~/{inside}")


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _shortened(path: str, cells: int) -> str:
    while cell_len(path) > cells:
        path = "…" + path[2:] if path.startswith("…") else "…" + path[1:]
    return path
