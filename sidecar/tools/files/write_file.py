"""`write_file`: write the content of a file, new or replaced."""

from __future__ import annotations

from ...providers.base import ToolSpec
from ..base import PlannedCall, ToolContext, ToolInput, ToolKind
from .editing import change_summary, encode_edit, find_target, plan_edits


class WriteFile:
    kind: ToolKind = "edit"
    runs_alone = True
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

    def title(self, input: ToolInput) -> str:
        return f"Write {input.get('path', '')}"

    async def prepare(self, input: ToolInput, context: ToolContext) -> PlannedCall:
        content = input.text("content", empty=True)
        found = await find_target(input.text("path"), context)
        if found.file.bom:
            content = content.removeprefix("\ufeff")
        # A model that writes `\r` means it; one that does not has not seen the line ends of the file.
        own = content if "\r" in content else found.file.with_ends(content)
        edit = found.edit(await context.block(encode_edit, found, own))
        return plan_edits([edit], f"Wrote {await context.block(change_summary, edit)}")
