"""`get_output`: return the text behind a reference, in full or some lines."""

from __future__ import annotations

from ...model.figures import CallSavings
from ...model.index import SourceText
from ...providers.base import ToolSpec
from ..base import Intent, PlannedCall, ToolContext, ToolError, ToolInput, ToolKind, ToolOutcome

MAX_OUTPUT = 30 * 1024
"""In characters: the most that is returned of the lines that a call asks for."""

DEFAULT_OUTPUT = 6 * 1024
"""In characters: the most that is returned when a call asks for no lines. It was long enough to be stored."""


class GetOutput:
    kind: ToolKind = "read"
    runs_alone = False
    spec = ToolSpec(
        "get_output",
        "Show the text behind a reference out:…; long ones in part, so ask for lines.",
        {
            "type": "object",
            "properties": {
                "id": {"type": "string"},
                "start_line": {"type": "integer"},
                "end_line": {"type": "integer"},
            },
            "required": ["id"],
        },
    )

    def title(self, input: ToolInput) -> str:
        return f"Look at {input.get('id', '')}"

    async def prepare(self, input: ToolInput, context: ToolContext) -> PlannedCall:
        id = input.text("id").strip()
        start = input.number("start_line", 1)
        has_range = input.get("start_line") is not None or input.get("end_line") is not None
        end = input.number("end_line", start + 100_000)
        if end < start:
            raise ToolError("`end_line` must not be before `start_line`.")
        library = context.library

        async def run() -> ToolOutcome:
            found = await library.read(id, (start, end) if has_range else None)
            text = fit_lines(found, MAX_OUTPUT if has_range else DEFAULT_OUTPUT)
            return ToolOutcome(text, shown=True, measured=CallSavings(returned=library.count(text)))

        return PlannedCall(Intent("read", "."), run)


def fit_lines(found: SourceText, max_characters: int) -> str:
    """Return as many lines as fit, and a note on the others."""
    lines: list[str] = []
    size = 0
    first, last = found.lines
    for line in found.text.split("\n"):
        size += len(line) + 1
        if lines and size > max_characters:
            break
        lines.append(line if len(line) <= max_characters else f"{line[:max_characters]}… (the line goes on)")
    shown_to = min(last, first + len(lines) - 1)
    head = f"[{found.source.id} {found.source.label}, lines {first}-{shown_to} of {found.source.lines}]"
    rest = f"\n… ask for lines {shown_to + 1}-{last}, or search it" if shown_to < last else ""
    return f"{head}\n" + "\n".join(lines) + rest
