"""`list_dir`: what is in a folder of the project."""

from __future__ import annotations

from typing import Any

from ..providers.base import ToolSpec
from ..workspace.paths import Workspace
from .base import Kind, Outcome, text

MAX_ENTRIES = 500


class ListDir:
    kind: Kind = "read"
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

    def run(self, input: dict[str, Any], workspace: Workspace) -> Outcome:
        path = text(input, "path", ".")
        entries = sorted(workspace.list_dir(path), key=lambda entry: entry.name)
        shown = [
            f"{entry.name}/" if entry.kind == "folder" else f"{entry.name}\t{entry.size}"
            for entry in entries[:MAX_ENTRIES]
        ]
        if len(entries) > MAX_ENTRIES:
            shown.append(f"… {len(entries) - MAX_ENTRIES} more")
        return Outcome("\n".join(shown) or "(the folder is empty)", paths=(path,))
