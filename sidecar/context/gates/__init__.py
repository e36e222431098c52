"""Which blocks a prompt needs, each by a named gate: open files, diffs of the ledger, the git diff, retrieval.

Pure: looks at the prompt and at what is known of the chat, runs nothing and finds nothing. How much of a block is
sent, and whether there is room for it, is decided by who assembles. What the prompt is made of comes first
(`structure`, any language), what it says second (`phrases`, six languages), what the chat has been doing third. When
several gates hold, the first in the design's order gives its name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

Switch = Literal["auto", "always", "never"]


class Scene(msgspec.Struct, frozen=True):
    """What is known when a prompt comes; all of it is at hand without reading a file."""

    prompt: str
    open_files: tuple[str, ...] = ()
    """Relative paths, pinned ones first."""

    pinned: frozenset[str] = frozenset()
    identifiers: frozenset[str] = frozenset()
    """Those that occur in the open files; may be empty."""

    patched: tuple[str, ...] = ()
    """Paths of the ledger's entries, newest first."""

    last_turn_edited: bool = False
    file_tool_in_last_3_turns: bool = False
    drifted: bool = False
    """A file changed outside the tools."""

    last_command_failed: bool = False
    """A build or test did, in the last turn."""

    has_outputs: bool = False
    """There are tool outputs or older turns that could be searched."""


class Switches(msgspec.Struct, frozen=True, rename="camel"):
    open_files: Switch = "auto"
    patches: Switch = "auto"
    git_diff: Switch = "auto"
    retrieval: Switch = "auto"


AUTO = Switches()


class Gates(msgspec.Struct, frozen=True):
    """The gate of each block: its name, `never` when it is switched off, or None when none holds (`opens`)."""

    open_files: str | None = None
    pinned_only: bool = False
    """Only the pinned files are injected: nothing but `pinned` holds."""

    patches: str | None = None
    patches_if_room: bool = False
    """The diffs are worth sending when they fit unused budget: the caller then names the gate `budget-allows`."""

    git_diff: str | None = None
    git_diff_wanted: Literal["stat", "diff"] | None = None
    retrieval_points_back: str | None = None
    aside: Literal["small-talk", "general"] | None = None
    """The prompt seems to ask nothing of this chat: thanks, a greeting, or common knowledge. A hint, and no gate: one
    in twenty questions about people is taken for common knowledge. Terms that are not covered (`terms.uncovered`) are
    then a weak reason to search, which needs a past that holds them. Not looked for when there is nothing to open."""

    mentioned: tuple[str, ...] = ()
    """The open files that the prompt names."""


def opens(gate: str | None) -> bool:
    return gate is not None and gate != "never"


def decide(scene: Scene, switches: Switches = AUTO) -> Gates:
    if switches.git_diff == "never" and not (scene.open_files or scene.patched or scene.has_outputs):
        return _nothing_to_open(switches)
    # The first prompt of a chat without a project is not kept waiting for words and expressions that decide nothing.
    from .look import Look

    look = Look(scene)
    open_files = _switched(switches.open_files, bool(scene.open_files), look.open_files)
    patches = _switched(switches.patches, bool(scene.patched), look.patches)
    git_diff = _switched(switches.git_diff, True, look.git_diff)
    return Gates(
        open_files=open_files,
        pinned_only=open_files == "pinned",
        patches=patches,
        patches_if_room=patches is None and look.last_edits_matter(),
        git_diff=git_diff,
        git_diff_wanted=look.git_diff_wanted() if opens(git_diff) else None,
        retrieval_points_back=_switched(switches.retrieval, scene.has_outputs, look.points_back),
        aside=look.aside,
        mentioned=look.mentioned,
    )


def _nothing_to_open(switches: Switches) -> Gates:
    def never(switch: Switch) -> str | None:
        return "never" if switch == "never" else None

    return Gates(
        open_files=never(switches.open_files),
        patches=never(switches.patches),
        git_diff="never",
        retrieval_points_back=never(switches.retrieval),
    )


def _switched(switch: Switch, there: bool, gate: Callable[[], str | None]) -> str | None:
    if switch == "never":
        return "never"
    if not there:
        return None
    return "always" if switch == "always" else gate()
