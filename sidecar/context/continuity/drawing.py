"""Draws entries as a text for a model within some tokens, and tells which of them a window lacks. Deterministic."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .shape import PRIORITIES, Entry

MIN_CUT = 24
"""Tokens: a shorter beginning of an entry tells nothing."""

WORTH = PRIORITIES["prompt"]
"""An entry of less priority is no reason to send a snapshot; where there is another reason, it comes along."""

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

Count = Callable[[str], int]
Spell = Callable[[str], str]


def drawn(entries: Sequence[Entry], count: Count, max_tokens: int, spell: Spell = str) -> str:
    """The entries in their order as far as they fit, as `spell` frames them; "" when none does.

    One that does not fit is left out, and a smaller one after it may still fit; what matters most is cut instead.
    """
    lines = [HEAD]
    room = max_tokens - count(spell(HEAD))
    for entry in entries:
        line = f"- {LABELS[entry.kind]}: {entry.text}"
        cost = count(line) + 1
        if cost > room and entry.priority >= PRIORITIES["blocker"]:
            line = _cut(line, count, room - 1)
            cost = count(line) + 1
        if line and cost <= room:
            lines.append(line)
            room -= cost
    # Tokens of joined lines may be one more here and there than those of each alone.
    while len(lines) > 1 and count(spell("\n".join(lines))) > max_tokens:
        lines.pop()
    return spell("\n".join(lines)) if len(lines) > 1 else ""


def missing(entries: Sequence[Entry], sent: Sequence[str]) -> list[Entry]:
    """The entries that none of these texts tells of; none at all when what is missing is not worth a block."""
    window = " ".join(part for text in sent for part in text.replace('\\"', '"').replace("\\n", " ").split())
    lacking = [entry for entry in entries if not all(words in window for words in _sought(entry))]
    return lacking if any(entry.priority >= WORTH for entry in lacking) else []


def _sought(entry: Entry) -> list[str]:
    return entry.seek or [" ".join(entry.text.split())]


def _cut(line: str, count: Count, room: int) -> str:
    """The longest beginning of a line that fits, or "" when it would be too short to tell anything."""
    if room < MIN_CUT:
        return ""
    low, high = 0, len(line)
    while low < high:
        middle = (low + high + 1) // 2
        if count(line[:middle] + "…") <= room:
            low = middle
        else:
            high = middle - 1
    return line[:low].rstrip() + "…"
