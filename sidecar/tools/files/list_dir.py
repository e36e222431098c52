"""`list_dir`: list the entries of a folder of the project."""

from __future__ import annotations

from functools import partial

from ...providers.base import ToolSpec
from ...workspace.paths import Workspace
from ..base import Intent, PlannedCall, ToolContext, ToolInput, ToolKind, ToolOutcome

MAX_ENTRIES = 500
"""Lines of one result; in a larger folder, `glob` is the better tool."""


class ListDir:
    kind: ToolKind = "read"
    runs_alone = False
    spec = ToolSpec(
        "list_dir",
        "List a folder of the project: names, folders with a slash behind them, files with their size in bytes.",
        {
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": 'The folder; "." is the project itself.'}
            },
        },
    )

    def title(self, input: ToolInput) -> str:
        return f"List {input.get('path', '.')}"

    async def prepare(self, input: ToolInput, context: ToolContext) -> PlannedCall:
        path = context.workspace.resolve(input.text("path", ".")).shown
        return PlannedCall(
            Intent("read", path), partial(context.block, _list_folder, context.workspace, path)
        )


def _list_folder(workspace: Workspace, path: str) -> ToolOutcome:
    entries = workspace.list_dir(path)
    shown = [
        f"{entry.name}/" if entry.kind == "folder" else f"{entry.name}\t{entry.size}"
        for entry in entries[:MAX_ENTRIES]
    ]
    if len(entries) > MAX_ENTRIES:
        shown.append(f"… {len(entries) - MAX_ENTRIES} more")
    return ToolOutcome("\n".join(shown) or "(the folder is empty)", paths=(path,))
