"""Makes entries of a course: one for each thing to remember, each once, the highest priority first. Knows no tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..summary.shape import READ, File, Trouble, one_line
from ..summary.troubles import call_of
from .shape import PRIORITIES, Course, Deed, Entry, Kind, Look, Step

LIMITS: dict[Kind, int] = {
    "goal": 2,
    "blocker": 5,
    "rule": 8,
    "plan": 16,
    "task": 10,
    "error": 8,
    "decision": 12,
    "git": 8,
    "file": 16,
    "page": 4,
    "prompt": 6,
}
"""Entries of one kind, the newest: a hundred files must not push out what was decided."""

MAX_GOAL_BYTES = 600
MAX_PROMPT_BYTES = 160


def entries(course: Course) -> list[Entry]:
    """All that there is to remember, by priority, and of the same priority the newest first."""
    found = [
        *_goals(course),
        *_blockers(course),
        *_plan(course.plan),
        *(_entry("rule", "rule", rule) for rule in _newest([*course.summary.constraints, *course.rules])),
        *(_entry("task", "task", task) for task in _newest(_tasks(course))),
        *map(_error, reversed(course.summary.errors)),
        *map(_decision, reversed(course.answers)),
        *(_entry("decision", "decision", text) for text in _newest(course.summary.decisions)),
        *(_deed("git", "git", deed) for deed in reversed(course.git)),
        *map(_file, reversed(course.summary.files)),
        *(_look(look) for look in reversed(course.looks) if look.page),
        *_prompts(course),
    ]
    return _once(sorted(found, key=lambda entry: -entry.priority))


def workflow(course: Course) -> list[Entry]:
    """What is under way: the goal, what blocks it, the plan and the open tasks."""
    return [entry for entry in entries(course) if entry.kind in ("goal", "blocker", "plan", "task")]


def navigation(course: Course) -> list[Entry]:
    """The files and pages that were looked at last, the newest first."""
    return [_look(look) for look in reversed(course.looks)]


def _goals(course: Course) -> list[Entry]:
    first, now = one_line(course.summary.goal, MAX_GOAL_BYTES), course.wish
    found = [_entry("goal", "goal", first)] if first else []
    if now and now != first:
        found.append(_entry("goal", "wish", f"asked for last: {now}", seek=[now], turn_id=course.up_to))
    return found


def _blockers(course: Course) -> list[Entry]:
    stopped = [_entry("blocker", "blocker", course.stopped, turn_id=course.up_to)] if course.stopped else []
    return stopped + [_deed("blocker", "blocker", deed) for deed in reversed(course.refusals)]


def _plan(steps: Sequence[Step]) -> list[Entry]:
    """In the plan's own order: its steps follow each other."""
    if all(step.status == "completed" for step in steps):
        return []  # a plan that was carried out is no longer one
    return [
        _entry(
            "plan", f"plan.{step.status}", f"[{step.status.replace('_', ' ')}] {step.text}", seek=[step.text]
        )
        for step in steps
    ]


def _tasks(course: Course) -> list[str]:
    planned = {step.text for step in course.plan}
    return [task for task in course.summary.tasks if task not in planned]


def _error(trouble: Trouble) -> Entry:
    solved = trouble.resolution
    text = f"{trouble.error} → {solved}" if solved else trouble.error
    call = call_of(trouble.error)
    words = trouble.error.rpartition(": ")[2]
    return _entry(
        "error",
        "error.solved" if solved else "error.open",
        text,
        seek=[call, words] if call else [trouble.error],
        resolution=solved,
    )


def _decision(deed: Deed) -> Entry:
    return _deed("decision", "decision", deed)


def _file(file: File) -> Entry:
    rank = "file.read" if file.why.startswith(READ) else "file.changed"
    text = f"`{file.path}` {file.why}" if file.why else f"`{file.path}`"
    return _entry("file", rank, text, seek=[file.path], path=file.path)


def _look(look: Look) -> Entry:
    kind: Kind = "page" if look.page else "file"
    rank = "page" if look.page else "file.read"
    return _entry(kind, rank, look.place, turn_id=look.turn_id, path=look.place)


def _prompts(course: Course) -> list[Entry]:
    """What else the user said, in any language."""
    return [
        _entry("prompt", "prompt", one_line(said.text, MAX_PROMPT_BYTES), turn_id=said.turn_id)
        for said in reversed(course.summary.said)
        if one_line(said.text, len(course.wish.encode()) or 1) != course.wish
    ]


def _deed(kind: Kind, rank: str, deed: Deed) -> Entry:
    return _entry(kind, rank, deed.text, seek=deed.parts or [deed.text], turn_id=deed.turn_id)


def _entry(
    kind: Kind,
    rank: str,
    text: str,
    *,
    seek: Iterable[str] | None = None,
    turn_id: str | None = None,
    path: str | None = None,
    resolution: str | None = None,
) -> Entry:
    words = [found for part in (seek if seek is not None else [text]) if (found := _kept(part))]
    return Entry(
        kind=kind,
        text=text,
        priority=PRIORITIES.get(rank, PRIORITIES["plan.pending"]),
        turn_id=turn_id or None,
        path=path,
        resolution=resolution,
        seek=words,
    )


def _kept(text: str) -> str:
    """The part of a text that was not cut."""
    return " ".join(text.partition("[…]")[0].rstrip("…").split())


def _newest(texts: Sequence[str]) -> list[str]:
    return list(reversed(texts))


def _once(found: Iterable[Entry]) -> list[Entry]:
    """Each thing once, by what it says, and no more of a kind than its limit."""
    seen: set[str] = set()
    counts: dict[str, int] = {}
    kept: list[Entry] = []
    for entry in found:
        said = " ".join(entry.seek).casefold() or entry.text.casefold()
        if not entry.text.strip() or said in seen or counts.get(entry.kind, 0) == LIMITS[entry.kind]:
            continue
        seen.add(said)
        counts[entry.kind] = counts.get(entry.kind, 0) + 1
        kept.append(entry)
    return kept
