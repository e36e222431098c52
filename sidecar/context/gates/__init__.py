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

from . import phrases, structure
from .terms import uncovered

__all__ = ["Gates", "Scene", "Switch", "Switches", "decide", "opens", "uncovered"]

Switch = Literal["auto", "always", "never"]

SMALL_TALK_WORDS = 12
"""A greeting or thanks within more words than these comes with something else."""

MAX_FILES = 64
"""Names that a prompt is searched for; the chat keeps at most 35 open files and 20 patches."""


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
    in twenty questions about people is taken for common knowledge. Terms that are not covered (`uncovered`) are then
    a weak reason to search, which needs a past that holds them."""

    mentioned: tuple[str, ...] = ()
    """The open files that the prompt names."""


def opens(gate: str | None) -> bool:
    return gate is not None and gate != "never"


def decide(scene: Scene, switches: Switches = AUTO) -> Gates:
    look = _Look(scene)
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


class _Look:
    """A prompt, looked at once; each gate asks it."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        files = tuple(dict.fromkeys(scene.open_files + scene.patched))[:MAX_FILES]
        self._made_of = structure.read(scene.prompt, files, scene.identifiers)
        self._said = phrases.heard(self._made_of.prose)
        self.mentioned = tuple(file for file in self._made_of.files if file in scene.open_files)
        self.aside = self._aside()

    def open_files(self) -> str | None:
        scene = self._scene
        if self.mentioned:
            return "mention"
        if self._code_intent():
            return "code-intent"
        if scene.file_tool_in_last_3_turns:
            return "recent-activity"
        if self._hears("explicit-files"):
            return "explicit"
        return "pinned" if scene.pinned else None

    def patches(self) -> str | None:
        if self._hears("changes"):
            return "asks-about-changes"
        return "edit-intent" if self._hears("edit") and self._patched_involved() else None

    def git_diff(self) -> str | None:
        scene = self._scene
        if not scene.patched and self._hears("changes"):
            return "ledger-empty-my-changes"
        if scene.last_command_failed and scene.drifted:
            return "failure-after-drift"
        return "explicit" if self._hears("explicit-git") or self._hears_git() else None

    def git_diff_wanted(self) -> Literal["stat", "diff"]:
        return "diff" if self._hears("wants-diff") or self._hears_git() else "stat"

    def points_back(self) -> str | None:
        made_of = self._made_of
        # "What did I change just now?" looks back too, but the ledger answers it.
        looks_back = self._hears("looks-back") and not self._hears("changes")
        if (
            looks_back
            or self._hears("points-back")
            or made_of.log
            or (made_of.exit_code and self.aside is None)
        ):
            return "points-back"
        return "explicit" if self._hears("explicit-search") else None

    def last_edits_matter(self) -> bool:
        """An open file with patches is named, or the prompt goes on with what the last turn edited."""
        scene = self._scene
        if any(file in scene.patched for file in self.mentioned):
            return True
        return scene.last_turn_edited and not self.mentioned and self._hears("goes-on")

    def _code_intent(self) -> bool:
        made_of = self._made_of
        if made_of.trace or made_of.code or made_of.hunk or made_of.known_name or made_of.place:
            return True
        # Words such as "the parser" alone speak of code, unless it is of its changes or of what it printed.
        return self._hears("code") or (
            self._hears("about-code") and not self._hears("changes") and self.points_back() is None
        )

    def _patched_involved(self) -> bool:
        scene = self._scene
        if any(file in scene.patched for file in self._made_of.files):
            return True
        return scene.last_turn_edited and not self._made_of.files and self._hears("goes-on")

    def _hears(self, rule: str) -> bool:
        return self.aside is None and rule in self._said

    def _hears_git(self) -> bool:
        return self.aside is None and self._made_of.git

    def _aside(self) -> Literal["small-talk", "general"] | None:
        made_of = self._made_of
        if (
            made_of.files
            or made_of.code
            or made_of.trace
            or made_of.hunk
            or made_of.known_name
            or made_of.log
        ):
            return None
        if "general" in self._said and "anchor" not in self._said:
            return "general"
        talk = "small-talk" in self._said and not self._said & {"code", "changes", "points-back", "anchor"}
        return "small-talk" if talk and phrases.count(made_of.prose) <= SMALL_TALK_WORDS else None


def _switched(switch: Switch, there: bool, gate: Callable[[], str | None]) -> str | None:
    if switch == "never":
        return "never"
    if not there:
        return None
    return "always" if switch == "always" else gate()
