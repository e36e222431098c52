"""What was collected from a project for a prompt. `project` fills it; it is empty for a chat without a project."""

from __future__ import annotations

import msgspec

from ...context.gates.decide import Gates, PromptContext, decide_gates
from ...context.materials import Candidate
from ...model.chats import GateSwitches
from ...model.files import OpenFile

RECENT_TURNS = 3
"""A file tool in one of this many last turns counts as activity."""


class OpenedFile(msgspec.Struct, frozen=True):
    """An open file with its text; `path` is as the model knows it."""

    file: OpenFile
    path: str
    text: str
    hash: str
    data: bytes


class ProjectContext(msgspec.Struct, frozen=True):
    """The project's candidates, and the files among them by the id of their block."""

    gates: Gates
    pinned: list[Candidate] = []
    files: list[Candidate] = []
    patch_summary: Candidate | None = None
    diffs: list[Candidate] = []
    git_diff: Candidate | None = None
    opened: dict[str, OpenedFile] = {}
    diff_bases: dict[str, str] = {}
    """For files that are sent as a diff: the hash of the version that the model has."""
    needed_turns: frozenset[str] = frozenset()
    """Turns without which the model would not have a file that this prompt needs."""


def without_project(prompt: str, switches: GateSwitches, has_past: bool) -> ProjectContext:
    context = PromptContext(prompt=prompt, has_outputs=has_past)
    return ProjectContext(decide_gates(context, msgspec.structs.replace(switches, git_diff="never")))
