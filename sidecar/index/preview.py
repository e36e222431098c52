"""The short head that stands for a text which is kept out of the window: its first and last lines, and how to get the
rest. Pure."""

from __future__ import annotations

from collections.abc import Callable


def preview(
    text: str, *, label: str, id: str, intent: str | None = None, max_tokens: int, count: Callable[[str], int]
) -> str:
    """At most `max_tokens` by `count`; the line that says how to get the rest is always there."""
    lines = text.split("\n")
    how = f"[{label}: {len(lines)} lines kept as {id}; search_context finds words in it, get_output shows lines of it]"
    best = how
    for shown in range(1, len(lines) + 1):
        head, tail = lines[: (shown + 1) // 2], lines[len(lines) - shown // 2 :]
        left = len(lines) - shown
        parts = [how, *head, *([f"… {left} lines …"] if left else []), *tail]
        made = "\n".join(parts)
        if count(made) > max_tokens:
            break
        best = made
    return best
