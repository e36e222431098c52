"""What was found for a prompt beside the chat itself. `gathering` fills it from a project; a chat may have none."""

from __future__ import annotations

import msgspec

from ..context.gates import Gates, Scene, Switches, decide
from ..context.materials import Material
from ..model.files import OpenFile

RECENT_TURNS = 3
"""A file tool in so many of the last turns is activity."""


class Opened(msgspec.Struct, frozen=True):
    """An open file with its text; `path` is as the model knows it."""

    file: OpenFile
    path: str
    text: str
    hash: str
    data: bytes


class Gathered(msgspec.Struct, frozen=True):
    """Materials of the project, and the files among them by the id of their block."""

    gates: Gates
    pinned: list[Material] = []
    files: list[Material] = []
    patch_summary: Material | None = None
    diffs: list[Material] = []
    git_diff: Material | None = None
    opened: dict[str, Opened] = {}
    bases: dict[str, str] = {}
    """Of the files that are sent as what has changed: the hash of the version that the model has."""
    relies_on: frozenset[str] = frozenset()
    """Turns without which the model would not have a file that this prompt needs."""


def without_project(prompt: str, switches: Switches, has_past: bool) -> Gathered:
    scene = Scene(prompt=prompt, has_outputs=has_past)
    return Gathered(decide(scene, msgspec.structs.replace(switches, git_diff="never")))
