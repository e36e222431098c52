"""`write_file`: a file with this content, new or in the place of the old one."""

from __future__ import annotations

from typing import Any

from ..providers.base import ToolSpec
from .base import Edit, Hands, Kind, Ready, text
from .editing import change_in_words, encode, find, planned


class WriteFile:
    kind: Kind = "edit"
    alone = True
    spec = ToolSpec(
        "write_file",
        "Make a file with this content, or replace all of one that you have read. To change a part, use edit_file.",
        {
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "The file, relative to the project."},
                "content": {"type": "string", "description": "All of its text."},
            },
            "required": ["path", "content"],
        },
    )

    def title(self, input: dict[str, Any]) -> str:
        return f"Write {input.get('path', '')}"

    async def prepare(self, input: dict[str, Any], hands: Hands) -> Ready:
        content = text(input, "content", empty=True)
        found = await find(text(input, "path"), hands)
        if found.file.bom:
            content = content.removeprefix("\ufeff")
        # Who writes `\r` himself means it; who does not has not seen the file's line ends.
        own = content if "\r" in content else found.file.with_ends(content)
        edit = Edit(found.path, found.data, await hands.block(encode, found, own))
        return planned([edit], f"Wrote {await hands.block(change_in_words, edit)}")
