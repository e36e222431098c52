"""Reads a prompt once: its structure and its phrases, and which gates hold because of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from ..phrases import rules
from . import structure

if TYPE_CHECKING:
    from .decide import PromptContext

_QUESTION = re.compile(r"[?？]\s*\Z")

SMALL_TALK_WORDS = 12
"""In a prompt of more words, a greeting or thanks accompanies something else."""

_ABOUT_WORK = frozenset({"code", "changes", "points-back", "anchor", "edit", "fails", "continues"})
"""Rules of a prompt that is more than thanks or a greeting."""

MAX_FILES = 64
"""Names that a prompt is searched for; a chat has at most 35 open files and 20 patches."""


class PromptReading:
    """The structure and phrases of one prompt, evaluated for each gate."""

    def __init__(self, context: PromptContext) -> None:
        self._context = context
        files = tuple(dict.fromkeys(context.open_files + context.patched))[:MAX_FILES]
        self._structure = structure.read_structure(context.prompt, files, context.identifiers)
        self._rules = rules.matching_rules(self._structure.prose)
        self.mentioned = tuple(file for file in self._structure.files if file in context.open_files)
        self.off_topic = self._off_topic()

    def open_files(self) -> str | None:
        context = self._context
        if self.mentioned:
            return "mention"
        if not self._matches("refuses-files"):
            if self._code_intent():
                return "code-intent"
            if context.file_tool_in_last_3_turns:
                return "recent-activity"
            if self._matches("explicit-files"):
                return "explicit"
        return "pinned" if context.pinned else None

    def patches(self) -> str | None:
        if self._matches("refuses-diffs"):
            return None
        if self._matches("changes"):
            return "asks-about-changes"
        goes_on = self._matches("edit") or self._matches("continues")
        return "edit-intent" if goes_on and self._patched_involved() else None

    def git_diff(self) -> str | None:
        context = self._context
        if self._matches("refuses-diffs"):
            return None
        if not context.patched and self._matches("changes"):
            return "ledger-empty-my-changes"
        if context.drifted and (gate := self.gate_if_drifted()):
            return gate
        return "explicit" if self._matches("explicit-git") or self._matches_git() else None

    def gate_if_drifted(self) -> str | None:
        """Return the gate of git's diff if a file was changed outside the tools."""
        refused = self._matches("refuses-diffs")
        return "failure-after-drift" if self._tells_of_failure() and not refused else None

    def _tells_of_failure(self) -> bool:
        """Return whether a build or test failed: a command of the last turn did, or the user says so."""
        if self._context.last_command_failed:
            return True
        found = self._structure
        if self.off_topic is not None or self._rules & {"no-failure", "passes"}:
            return False
        return "fails" in self._rules or found.trace or found.exit_code

    def git_diff_wanted(self) -> Literal["stat", "diff"]:
        return "diff" if self._matches("wants-diff") or self._matches_git() else "stat"

    def refers_to_past(self) -> str | None:
        found = self._structure
        # "What did I change just now?" refers to the past too, but the ledger answers it.
        # So does "again", when it is said of an edit or of tests that pass.
        passes = self._matches("passes") and not _QUESTION.search(self._context.prompt)
        elsewhere = passes or self._matches("changes")
        edits = self._matches("edit") and bool(found.files)
        looks_back = self._matches("looks-back") and not elsewhere and not edits
        if (
            looks_back
            or (self._matches("points-back") and not passes)
            or found.log
            or (found.exit_code and self.off_topic is None)
        ):
            return "points-back"
        return "explicit" if self._matches("explicit-search") else None

    def last_edits_matter(self) -> bool:
        """Return whether an open file with patches is named, or the prompt continues what the last turn
        edited."""
        context = self._context
        if not context.patched or self.off_topic is not None or self._matches("refuses-diffs"):
            return False
        if any(file in context.patched for file in self.mentioned):
            return True
        return context.last_turn_edited and (self._goes_on() or self._is_short_reply())

    def _code_intent(self) -> bool:
        found = self._structure
        if found.trace or found.code or found.hunk or found.names or found.place:
            return True
        # Words such as "the parser" alone refer to code, unless the prompt asks for its changes or its
        # output.
        return self._matches("code") or (
            self._matches("about-code") and not self._matches("changes") and self.refers_to_past() is None
        )

    def _patched_involved(self) -> bool:
        context, found = self._context, self._structure
        if any(file in context.patched for file in found.files):
            return True
        if (found.names | found.words) & context.patched_identifiers:
            return True
        return context.last_turn_edited and not found.files and (self._goes_on() or self._code_intent())

    def _goes_on(self) -> bool:
        return self._matches("goes-on") or self._matches("continues")

    def _is_short_reply(self) -> bool:
        """Return whether a prompt is as short as a correction of what was just done: "no, a dict"."""
        if self.mentioned or "points-back" in self._rules or _QUESTION.search(self._context.prompt):
            return False
        return rules.count(self._structure.prose) <= SMALL_TALK_WORDS

    def _matches(self, rule: str) -> bool:
        return self.off_topic is None and rule in self._rules

    def _matches_git(self) -> bool:
        return self.off_topic is None and self._structure.git

    def _off_topic(self) -> Literal["small-talk", "general"] | None:
        found = self._structure
        if found.files or found.code or found.trace or found.hunk or found.names or found.log:
            return None
        if found.words and "code" in self._rules:
            return None
        if "general" in self._rules and "anchor" not in self._rules:
            return "general"
        talk = "small-talk" in self._rules and not self._rules & _ABOUT_WORK
        return "small-talk" if talk and rules.count(found.prose) <= SMALL_TALK_WORDS else None
