"""Derives entries from a session's state: one for each thing to remember, without repeats, highest priority
first. Knows no tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..summary.shape import READ, KnownError, TouchedFile, one_line
from ..summary.troubles import failed_call
from .shape import PRIORITIES, EntryKind, FileVisit, PlanStep, ResumeEntry, SessionAction, SessionState

LIMITS: dict[EntryKind, int] = {
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
"""Entries per kind, the newest: a hundred files must not displace decisions."""

MAX_GOAL_BYTES = 600
MAX_PROMPT_BYTES = 160


def entries(state: SessionState) -> list[ResumeEntry]:
    """Return everything to remember by priority, and newest first within a priority."""
    found = [
        *_goals(state),
        *_blockers(state),
        *_plan(state.plan),
        *(_entry("rule", "rule", rule) for rule in _newest([*state.summary.constraints, *state.rules])),
        *(_entry("task", "task", task) for task in _newest(_tasks(state))),
        *map(_error_entry, reversed(state.summary.errors)),
        *map(_decision_entry, reversed(state.answers)),
        *(_entry("decision", "decision", text) for text in _newest(state.summary.decisions)),
        *(_action_entry("git", "git", action) for action in reversed(state.git)),
        *map(_file_entry, reversed(state.summary.files)),
        *(_visit_entry(look) for look in reversed(state.looks) if look.page),
        *_prompts(state),
    ]
    return _without_repeats(sorted(found, key=lambda entry: -entry.priority))


def workflow_entries(state: SessionState) -> list[ResumeEntry]:
    """Return what is in progress: the goal, what blocks it, the plan and the open tasks."""
    return [entry for entry in entries(state) if entry.kind in ("goal", "blocker", "plan", "task")]


def navigation_entries(state: SessionState) -> list[ResumeEntry]:
    """Return the last visited files and pages, newest first."""
    return [_visit_entry(look) for look in reversed(state.looks)]


def _goals(state: SessionState) -> list[ResumeEntry]:
    first, now = one_line(state.summary.goal, MAX_GOAL_BYTES), state.wish
    found = [_entry("goal", "goal", first)] if first else []
    if now and now != first:
        found.append(_entry("goal", "wish", f"asked for last: {now}", seek=[now], turn_id=state.up_to))
    return found


def _blockers(state: SessionState) -> list[ResumeEntry]:
    stopped = [_entry("blocker", "blocker", state.stopped, turn_id=state.up_to)] if state.stopped else []
    return stopped + [_action_entry("blocker", "blocker", action) for action in reversed(state.refusals)]


def _plan(steps: Sequence[PlanStep]) -> list[ResumeEntry]:
    """Return the steps in the order of the plan, because they depend on each other."""
    if all(step.status == "completed" for step in steps):
        return []  # a finished plan is not repeated
    return [
        _entry(
            "plan", f"plan.{step.status}", f"[{step.status.replace('_', ' ')}] {step.text}", seek=[step.text]
        )
        for step in steps
    ]


def _tasks(state: SessionState) -> list[str]:
    planned = {step.text for step in state.plan}
    return [task for task in state.summary.tasks if task not in planned]


def _error_entry(trouble: KnownError) -> ResumeEntry:
    solved = trouble.resolution
    text = f"{trouble.error} → {solved}" if solved else trouble.error
    call = failed_call(trouble.error)
    words = trouble.error.rpartition(": ")[2]
    return _entry(
        "error",
        "error.solved" if solved else "error.open",
        text,
        seek=[call, words] if call else [trouble.error],
        resolution=solved,
    )


def _decision_entry(action: SessionAction) -> ResumeEntry:
    return _action_entry("decision", "decision", action)


def _file_entry(file: TouchedFile) -> ResumeEntry:
    rank = "file.read" if file.why.startswith(READ) else "file.changed"
    text = f"`{file.path}` {file.why}" if file.why else f"`{file.path}`"
    return _entry("file", rank, text, seek=[file.path], path=file.path)


def _visit_entry(look: FileVisit) -> ResumeEntry:
    kind: EntryKind = "page" if look.page else "file"
    rank = "page" if look.page else "file.read"
    return _entry(kind, rank, look.place, turn_id=look.turn_id, path=look.place)


def _prompts(state: SessionState) -> list[ResumeEntry]:
    """Return the other messages of the user, in any language."""
    return [
        _entry("prompt", "prompt", one_line(said.text, MAX_PROMPT_BYTES), turn_id=said.turn_id)
        for said in reversed(state.summary.said)
        if one_line(said.text, len(state.wish.encode()) or 1) != state.wish
    ]


def _action_entry(kind: EntryKind, rank: str, action: SessionAction) -> ResumeEntry:
    return _entry(kind, rank, action.text, seek=action.parts or [action.text], turn_id=action.turn_id)


def _entry(
    kind: EntryKind,
    rank: str,
    text: str,
    *,
    seek: Iterable[str] | None = None,
    turn_id: str | None = None,
    path: str | None = None,
    resolution: str | None = None,
) -> ResumeEntry:
    words = [found for part in (seek if seek is not None else [text]) if (found := _uncut_part(part))]
    return ResumeEntry(
        kind=kind,
        text=text,
        priority=PRIORITIES.get(rank, PRIORITIES["plan.pending"]),
        turn_id=turn_id or None,
        path=path,
        resolution=resolution,
        seek=words,
    )


def _uncut_part(text: str) -> str:
    """Return the part of a text that was not cut."""
    return " ".join(text.partition("[…]")[0].rstrip("…").split())


def _newest(texts: Sequence[str]) -> list[str]:
    return list(reversed(texts))


def _without_repeats(found: Iterable[ResumeEntry]) -> list[ResumeEntry]:
    """Return each entry once, by its text, and at most the limit of its kind."""
    seen: set[str] = set()
    counts: dict[str, int] = {}
    kept: list[ResumeEntry] = []
    for entry in found:
        said = " ".join(entry.seek).casefold() or entry.text.casefold()
        if not entry.text.strip() or said in seen or counts.get(entry.kind, 0) == LIMITS[entry.kind]:
            continue
        seen.add(said)
        counts[entry.kind] = counts.get(entry.kind, 0) + 1
        kept.append(entry)
    return kept
