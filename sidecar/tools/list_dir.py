"""`list_dir`: what is in a folder of the project."""

from __future__ import annotations

from functools import partial
from typing import Any

from ..providers.base import ToolSpec
from ..workspace.paths import Workspace
from .base import Hands, Kind, Need, Outcome, Ready, text

MAX_ENTRIES = 500
"""Lines of one answer; who looks for something in a larger folder is served better by `glob`."""


class ListDir:
    kind: Kind = "read"
    alone = False
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

    def title(self, input: dict[str, Any]) -> str:
        return f"List {input.get('path', '.')}"

    async def prepare(self, input: dict[str, Any], hands: Hands) -> Ready:
        path = hands.workspace.resolve(text(input, "path", ".")).shown
        return Ready(Need("read", path), partial(hands.block, _listed, hands.workspace, path))


def _listed(workspace: Workspace, path: str) -> Outcome:
    entries = workspace.list_dir(path)
    shown = [
        f"{entry.name}/" if entry.kind == "folder" else f"{entry.name}\t{entry.size}"
        for entry in entries[:MAX_ENTRIES]
    ]
    if len(entries) > MAX_ENTRIES:
        shown.append(f"… {len(entries) - MAX_ENTRIES} more")
    return Outcome("\n".join(shown) or "(the folder is empty)", paths=(path,))
