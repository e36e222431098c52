"""Renders entries as text for a model within a number of tokens, and finds which entries a request lacks.
Deterministic."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...text.token_estimate import CountTokens
from .shape import PRIORITIES, ResumeEntry

MIN_CUT = 24
"""Tokens: a shorter part of an entry carries no information."""

MIN_PRIORITY = PRIORITIES["prompt"]
"""An entry with less priority is no reason to send a snapshot, but is included in one."""

HEAD = "Where this work stands, the most important first:"
LABELS = {
    "goal": "goal",
    "blocker": "blocked",
    "rule": "rule",
    "plan": "plan",
    "task": "open task",
    "error": "error",
    "decision": "decided",
    "git": "git",
    "file": "file",
    "page": "page",
    "prompt": "the user said",
}

Frame = Callable[[str], str]


def rendered_entries(
    entries: Sequence[ResumeEntry], count: CountTokens, max_tokens: int, spell: Frame = str
) -> str:
    """Render the entries in their order as far as they fit, framed by `spell`; "" when none does.

    One that does not fit is skipped, and a smaller one after it may still fit; the most important ones are
    cut instead.
    """
    lines = [HEAD]
    space = max_tokens - count(spell(HEAD))
    for entry in entries:
        line = f"- {LABELS[entry.kind]}: {entry.text}"
        cost = count(line) + 1
        if cost > space and entry.priority >= PRIORITIES["blocker"]:
            line = _cut(line, count, space - 1)
            cost = count(line) + 1
        if line and cost <= space:
            lines.append(line)
            space -= cost
    # Joined lines can have a token more than the sum of the lines.
    while len(lines) > 1 and count(spell("\n".join(lines))) > max_tokens:
        lines.pop()
    return spell("\n".join(lines)) if len(lines) > 1 else ""


def missing_entries(entries: Sequence[ResumeEntry], sent: Sequence[str]) -> list[ResumeEntry]:
    """Return the entries that none of these texts contains; none at all when what is missing is not worth a
    block."""
    window = " ".join(part for text in sent for part in text.replace('\\"', '"').replace("\\n", " ").split())
    lacking = [entry for entry in entries if not all(words in window for words in _search_texts(entry))]
    return lacking if any(entry.priority >= MIN_PRIORITY for entry in lacking) else []


def _search_texts(entry: ResumeEntry) -> list[str]:
    return entry.seek or [" ".join(entry.text.split())]


def _cut(line: str, count: CountTokens, space: int) -> str:
    """Return the longest beginning of a line that fits, or "" when it would be too short to be useful."""
    if space < MIN_CUT:
        return ""
    low, high = 0, len(line)
    while low < high:
        middle = (low + high + 1) // 2
        if count(line[:middle] + "…") <= space:
            low = middle
        else:
            high = middle - 1
    return line[:low].rstrip() + "…"
