"""The stored state of a session between snapshots, the entries derived from it, and the scale of priorities."""

from __future__ import annotations

from typing import Literal

from ...model.content import JournalValue
from ..summary.shape import Summary

MAX_ACTIONS = 24
"""Of git operations, answers and refusals each: more than a snapshot can show."""

MAX_VISITS = 12
"""The last visited files and pages: what a developer would have open."""

MAX_STEPS = 40
"""Stored steps of a plan; the planning tool accepts no more."""

EntryKind = Literal[
    "goal", "blocker", "rule", "plan", "task", "error", "decision", "git", "file", "page", "prompt"
]

PRIORITIES = {
    "goal": 100,
    "wish": 95,
    "blocker": 90,
    "plan.in_progress": 88,
    "rule": 85,
    "error.open": 80,
    "plan.pending": 75,
    "task": 70,
    "decision": 65,
    "file.changed": 60,
    "git": 55,
    "error.solved": 45,
    "prompt": 35,
    "plan.completed": 30,
    "page": 25,
    "file.read": 20,
}
"""The scale of priorities: higher entries are sent when not all fit. Above 60 is what leads to mistakes if
forgotten; below, what can be looked up again."""


class PlanStep(JournalValue, kw_only=True, frozen=True):
    """A step of the newest plan."""

    text: str
    status: str


class SessionAction(JournalValue, kw_only=True, frozen=True):
    """An action of the session: a new one replaces those with the same `key`."""

    key: str
    text: str
    turn_id: str
    parts: list[str] = []
    """The words that identify it in a text that describes it differently."""


class FileVisit(JournalValue, kw_only=True, frozen=True):
    """A file or page that was read."""

    place: str
    turn_id: str
    page: bool = False


class SessionState(JournalValue, kw_only=True, frozen=True):
    """The state of a session up to a turn. All lists are in the chat's order.

    `wish` is the user's last request; `stopped` says how the last turn ended if it did not complete.
    """

    summary: Summary = Summary()
    wish: str = ""
    stopped: str = ""
    rules: list[str] = []
    plan: list[PlanStep] = []
    git: list[SessionAction] = []
    answers: list[SessionAction] = []
    refusals: list[SessionAction] = []
    looks: list[FileVisit] = []
    turns: int = 0
    up_to: str = ""


class ResumeEntry(JournalValue, kw_only=True, frozen=True):
    """One thing to remember. `path` is that of a file or page; `resolution` says how an error was resolved;
    `seek` are words that occur in every text that contains it."""

    kind: EntryKind
    text: str
    priority: int
    turn_id: str | None = None
    path: str | None = None
    resolution: str | None = None
    seek: list[str] = []
