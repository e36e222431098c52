"""What a session has come to, for whoever goes on with it: events found in the structure of turns, one scale of
priorities over them, and the snapshot that is drawn of them within some tokens. Pure.

What a summary already finds (goal, decisions, constraints, tasks, files, errors) is `context/summary`'s; here is what
only structure tells: plans, answers, refusals, git, rules, what was looked at, how the last turn ended.
"""

from __future__ import annotations

from .course import brought_up, with_summary
from .drawing import drawn, missing
from .entries import entries, navigation, workflow
from .shape import PRIORITIES, Course, Entry, Kind

__all__ = [
    "PRIORITIES",
    "Course",
    "Entry",
    "Kind",
    "brought_up",
    "drawn",
    "entries",
    "missing",
    "navigation",
    "with_summary",
    "workflow",
]
