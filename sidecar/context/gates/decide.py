"""Decides which blocks a prompt needs, each by a named gate: open files, diffs of the ledger, the git diff,
retrieval.

Pure: uses the prompt and what is known of the chat, runs nothing and searches nothing. The assembly decides
how much of a block is sent and whether it fits. The structure of the prompt comes first (`structure`, any
language), its phrases second (`phrases`, six languages), the recent activity of the chat third. When several
gates of a block hold, `PromptReading` names the first one in the order of its conditions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import msgspec

from ...model.chats import GateSwitch, GateSwitches
from ...system.lazy import lazy_module

if TYPE_CHECKING:
    from . import prompt_reading as reading
else:
    reading = lazy_module("sidecar.context.gates.prompt_reading")


class PromptContext(msgspec.Struct, frozen=True):
    """What is known when a prompt arrives, without reading a file."""

    prompt: str
    open_files: tuple[str, ...] = ()
    """Relative paths, pinned ones first."""

    pinned: frozenset[str] = frozenset()
    identifiers: frozenset[str] = frozenset()
    """Those that occur in the open files; may be empty."""

    patched: tuple[str, ...] = ()
    """Paths of the ledger's entries, newest first."""

    patched_identifiers: frozenset[str] = frozenset()
    """Those of the identifiers that occur in a patched file."""

    last_turn_edited: bool = False
    file_tool_in_last_3_turns: bool = False
    drifted: bool = False
    """A file of the ledger, or an open one, was changed outside the tools."""

    last_command_failed: bool = False
    """A build or test failed in the last turn."""

    has_outputs: bool = False
    """There are tool outputs or older turns to search."""


AUTO = GateSwitches()


class Gates(msgspec.Struct, frozen=True):
    """The gate of each block: its name, `never` when it is switched off, or None when none holds (`opens`)."""

    open_files: str | None = None
    pinned_only: bool = False
    """Only the pinned files are sent: no gate but `pinned` holds."""

    patches: str | None = None
    patches_if_space: bool = False
    """The diffs are worth sending if they fit unused budget: the caller then names the gate `budget-allows`."""

    git_diff: str | None = None
    git_diff_if_drifted: str | None = None
    """The gate if git knows of a file that was changed outside the tools: a build or test failed, and no drift is
    known."""

    git_diff_wanted: Literal["stat", "diff"] | None = None
    retrieval_points_back: str | None = None
    off_topic: Literal["small-talk", "general"] | None = None
    """The prompt does not seem to concern this chat: thanks, a greeting, or general knowledge. A hint, not a
    gate: one in twenty questions about people is taken for general knowledge. Terms that are not covered
    (`terms.uncovered_terms`) are then a weak reason to search, which requires a past that contains them. Not
    determined when there is nothing to open."""

    mentioned: tuple[str, ...] = ()
    """The open files that the prompt names."""


def is_open(gate: str | None) -> bool:
    return gate is not None and gate != "never"


def decide_gates(context: PromptContext, switches: GateSwitches = AUTO) -> Gates:
    if switches.git_diff == "never" and not (context.open_files or context.patched or context.has_outputs):
        return _closed_gates(switches)
    # The first prompt of a chat without a project does not wait for word lists and expressions that decide
    # nothing.
    prompt = reading.PromptReading(context)
    open_files = _apply_switch(switches.open_files, bool(context.open_files), prompt.open_files)
    patches = _apply_switch(switches.patches, bool(context.patched), prompt.patches)
    git_diff = _apply_switch(switches.git_diff, True, prompt.git_diff)
    return Gates(
        open_files=open_files,
        pinned_only=open_files == "pinned",
        patches=patches,
        patches_if_space=patches is None and prompt.last_edits_matter(),
        git_diff=git_diff,
        git_diff_if_drifted=prompt.gate_if_drifted() if git_diff is None else None,
        git_diff_wanted=prompt.git_diff_wanted() if is_open(git_diff) else None,
        # The index may have something for the first prompt of a chat: what there is to find, its search tells.
        retrieval_points_back=_apply_switch(
            switches.retrieval, context.has_outputs or switches.retrieval == "always", prompt.refers_to_past
        ),
        off_topic=prompt.off_topic,
        mentioned=prompt.mentioned,
    )


def _closed_gates(switches: GateSwitches) -> Gates:
    def never(switch: GateSwitch) -> str | None:
        return "never" if switch == "never" else None

    return Gates(
        open_files=never(switches.open_files),
        patches=never(switches.patches),
        git_diff="never",
        retrieval_points_back=None if switches.retrieval == "auto" else switches.retrieval,
    )


def _apply_switch(switch: GateSwitch, there: bool, gate: Callable[[], str | None]) -> str | None:
    if switch == "never":
        return "never"
    if not there:
        return None
    return "always" if switch == "always" else gate()
