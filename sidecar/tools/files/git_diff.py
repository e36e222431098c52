"""`git_diff`: show what has changed in the project since the last commit or the last `git add`."""

from __future__ import annotations

from ...policy.read_rules import excluded_summary
from ...providers.base import ToolSpec
from ...workspace.diff_shares import clip_files
from ...workspace.git import GitDiff, diff
from ..base import Intent, PlannedCall, ToolContext, ToolInput, ToolKind, ToolOutcome

MAX_BYTES = 24 * 1024
"""Bytes of the diff: some 6,000 tokens. A call for one file shows more."""

MAX_SUMMARY = 100
"""Lines of the summary: one per file."""


class GitDiffTool:
    kind: ToolKind = "read"
    runs_alone = False
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

    def title(self, input: ToolInput) -> str:
        return "Show staged changes" if input.get("staged") else "Show changes"

    async def prepare(self, input: ToolInput, context: ToolContext) -> PlannedCall:
        staged = input.flag("staged")
        path = context.workspace.resolve(input.text("path", ".")).shown

        async def run() -> ToolOutcome:
            left_out = await context.read_filter(path)
            return _outcome(await diff(context.workspace, staged=staged, path=path, left_out=left_out))

        return PlannedCall(Intent("read", path), run)


def _outcome(found: GitDiff) -> ToolOutcome:
    new = [f"New and not known to git: {len(found.untracked)}", *found.untracked] if found.untracked else []
    summary = found.summary.split("\n") if found.summary else ["No changes." if not found.left_out else ""]
    if len(summary) > MAX_SUMMARY:
        summary[MAX_SUMMARY - 1 : -1] = [f" … {len(summary) - MAX_SUMMARY} more files"]
    if found.left_out:
        summary.append(f"({excluded_summary(found.left_out)})")
    part, cut = clip_files(found.text, MAX_BYTES)
    head = "\n".join([*summary, "", *new, ""] if new else [*summary, ""])
    shown = f"{head}\n{part}".rstrip("\n")
    if not cut:
        return ToolOutcome(shown)
    return ToolOutcome(shown, whole=f"{head}\n{found.text}", shown=True)
