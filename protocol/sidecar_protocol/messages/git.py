"""The state of the project's working tree."""

from __future__ import annotations

from typing import Literal

from .base import ChatRef, Key, Wire

__all__ = ["GitDiffFile", "GitDiffParams", "GitDiffResult"]


class GitDiffParams(Key, kw_only=True, frozen=True):
    staged: bool = False
    """What is staged, instead of what differs from the last commit."""
    max_tokens: int | None = None
    """At most so many tokens of diff, cut between hunks; the sidecar's own bound when absent."""


class GitDiffFile(Wire, kw_only=True, frozen=True):
    """A file of a diff."""

    path: str
    """Relative to the project."""
    status: Literal["added", "modified", "deleted", "type_changed", "unmerged"]
    """What became of it."""
    added: int | None = None
    """Lines added; absent for a binary file."""
    removed: int | None = None
    """Lines removed; absent for a binary file."""


class GitDiffResult(ChatRef, kw_only=True, frozen=True):
    summary: str
    """Files and lines, as counted by `git diff --stat`."""
    diff: str
    """The unified diff."""
    truncated: bool
    """Whether the diff is truncated."""
    files: list[GitDiffFile]
    """The files of the whole diff."""
    untracked: list[str]
    """New files that git does not track yet."""
