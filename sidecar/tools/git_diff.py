"""`git_diff`: what has changed in the project since the last commit or the last `git add`."""

from __future__ import annotations

from typing import Any

from ..providers.base import ToolSpec
from ..workspace.diff import clipped
from ..workspace.git import GitDiff, diff
from .base import Hands, Kind, Need, Outcome, Ready, flag, text

MAX_BYTES = 24 * 1024
"""Of the diff: some 6,000 tokens. Who needs more asks for one file."""

MAX_SUMMARY = 100
"""Lines of the summary: a file each."""


class GitDiffTool:
    kind: Kind = "read"
    alone = False
    spec = ToolSpec(
        "git_diff",
        "Show what is changed and not staged in git, or what is staged: a summary, new files, then the diff.",
        {
            "type": "object",
            "properties": {
                "staged": {"type": "boolean", "description": "Show what is staged instead."},
                "path": {"type": "string", "description": "Only this file or folder."},
            },
        },
    )

    def title(self, input: dict[str, Any]) -> str:
        return "Show staged changes" if input.get("staged") else "Show changes"

    async def prepare(self, input: dict[str, Any], hands: Hands) -> Ready:
        staged = flag(input, "staged")
        path = hands.workspace.resolve(text(input, "path", ".")).shown

        async def run() -> Outcome:
            return _told(await diff(hands.workspace, staged=staged, path=path))

        return Ready(Need("read", path), run)


def _told(found: GitDiff) -> Outcome:
    new = [f"New and not known to git: {len(found.untracked)}", *found.untracked] if found.untracked else []
    summary = found.summary.split("\n") if found.summary else ["No changes."]
    if len(summary) > MAX_SUMMARY:
        summary[MAX_SUMMARY - 1 : -1] = [f" … {len(summary) - MAX_SUMMARY} more files"]
    part, cut = clipped(found.text, MAX_BYTES)
    head = "\n".join([*summary, "", *new, ""] if new else [*summary, ""])
    shown = f"{head}\n{part}".rstrip("\n")
    if not cut:
        return Outcome(shown)
    return Outcome(shown, whole=f"{head}\n{found.text}", shown=True)
