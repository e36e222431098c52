"""`get_output`: the text behind a reference, whole or some lines of it."""

from __future__ import annotations

from typing import Any

from ..model.figures import Measured
from ..model.index import Whole
from ..providers.base import ToolSpec
from .base import Hands, Kind, Need, Outcome, Ready, Wrong, number, text

MAX_OUTPUT = 30 * 1024
"""Characters of asked for lines: what a model is given whole."""

UNASKED_OUTPUT = 6 * 1024
"""Characters when no lines were asked for: the text was kept out of the window for its size."""


class GetOutput:
    kind: Kind = "read"
    alone = False
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

    def title(self, input: dict[str, Any]) -> str:
        return f"Look at {input.get('id', '')}"

    async def prepare(self, input: dict[str, Any], hands: Hands) -> Ready:
        id = text(input, "id").strip()
        start = number(input, "start_line", 1)
        asked = input.get("start_line") is not None or input.get("end_line") is not None
        end = number(input, "end_line", start + 100_000)
        if end < start:
            raise Wrong("`end_line` must not be before `start_line`.")
        library = hands.library

        async def run() -> Outcome:
            whole = await library.read(id, (start, end) if asked else None)
            text = shown(whole, MAX_OUTPUT if asked else UNASKED_OUTPUT)
            return Outcome(text, shown=True, measured=Measured(returned=library.count(text)))

        return Ready(Need("read", "."), run)


def shown(whole: Whole, room: int) -> str:
    """As many lines as fit, and a word on the others."""
    lines: list[str] = []
    size = 0
    first, last = whole.lines
    for line in whole.text.split("\n"):
        size += len(line) + 1
        if lines and size > room:
            break
        lines.append(line if len(line) <= room else f"{line[:room]}… (the line goes on)")
    shown_to = min(last, first + len(lines) - 1)
    head = f"[{whole.source.id} {whole.source.label}, lines {first}-{shown_to} of {whole.source.lines}]"
    rest = f"\n… ask for lines {shown_to + 1}-{last}, or search it" if shown_to < last else ""
    return f"{head}\n" + "\n".join(lines) + rest
