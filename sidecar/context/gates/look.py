"""A prompt, looked at once: what it is made of and what it says, and which gates hold by that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from . import phrases, structure

if TYPE_CHECKING:
    from . import Scene

SMALL_TALK_WORDS = 12
"""A greeting or thanks within more words than these comes with something else."""

MAX_FILES = 64
"""Names that a prompt is searched for; the chat keeps at most 35 open files and 20 patches."""


class Look:
    """Each gate asks it."""

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
