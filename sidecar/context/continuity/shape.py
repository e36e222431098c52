"""What is kept of a session between snapshots, the entries that are made of it, and the one scale of priorities."""

from __future__ import annotations

from typing import Literal

from ...model.content import Value
from ..summary.shape import Summary

MAX_DEEDS = 24
"""Of git operations, answers and refusals each: more than a snapshot can show."""

MAX_LOOKS = 12
"""Files and pages that were looked at last: what a person would have open beside the work."""

MAX_STEPS = 40
"""Of a plan that are kept; the tool that makes plans takes no more."""

Kind = Literal[
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
"""The one scale: what is higher is kept when there is not room for all. Above 60 stands what a mistake would follow
from if it were forgotten; below, what can be looked up again."""


class Step(Value, kw_only=True, frozen=True):
    """An entry of the newest plan."""

    text: str
    status: str


class Deed(Value, kw_only=True, frozen=True):
    """Something that happened: `key` is the same for what takes its place."""

    key: str
    text: str
    turn_id: str
    parts: list[str] = []
    """The words by which it is found in a text that tells of it otherwise."""


class Look(Value, kw_only=True, frozen=True):
    """A file or a page that was looked at."""

    place: str
    turn_id: str
    page: bool = False


class Course(Value, kw_only=True, frozen=True):
    """What a session has come to, up to a turn. All lists are in the chat's order.

    `wish` is what the user asked for last; `stopped` says how the last turn ended when it did not end well.
    """

    summary: Summary = Summary()
    wish: str = ""
    stopped: str = ""
    rules: list[str] = []
    plan: list[Step] = []
    git: list[Deed] = []
    answers: list[Deed] = []
    refusals: list[Deed] = []
    looks: list[Look] = []
    turns: int = 0
    up_to: str = ""


class Entry(Value, kw_only=True, frozen=True):
    """One thing to remember. `path` is a file's or a page's; `resolution` says how an error went away; `seek` are words
    that all stand in any text that tells of it."""

    kind: Kind
    text: str
    priority: int
    turn_id: str | None = None
    path: str | None = None
    resolution: str | None = None
    seek: list[str] = []
