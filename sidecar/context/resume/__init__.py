"""The state of a session for a model that continues it: events found in the structure of turns, one scale of
priorities, and a snapshot rendered within a number of tokens. Pure.

`context/summary` finds goal, decisions, constraints, tasks, files and errors; this package adds what only the
structure shows: plans, answers, refusals, git, rules, visited files, how the last turn ended.
"""

from __future__ import annotations

from .entries import entries, navigation_entries, workflow_entries
from .rendering import missing_entries, rendered_entries
from .shape import PRIORITIES, EntryKind, ResumeEntry, SessionState
from .state import update_state, with_summary

__all__ = [
    "PRIORITIES",
    "EntryKind",
    "ResumeEntry",
    "SessionState",
    "entries",
    "missing_entries",
    "navigation_entries",
    "rendered_entries",
    "update_state",
    "with_summary",
    "workflow_entries",
]
