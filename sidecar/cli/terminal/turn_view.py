"""Render a turn of the history: the prompt, what answered it, and a note on an unusual end. Knows no sidecar."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.console import Console, RenderableType
from rich.text import Text
from sidecar_protocol.messages import ErrorObject, FileChange, Item, Turn

from ..errors import error_object_message
from ..parser import PLATFORMS
from .markdown_blocks import print_blocks, printable
from .tool_view import PLAN_TOOL, call_lines, diff_lines, output_of, plan_lines, title_of

PROMPT_MARK = "> "

_NOTES = {
    "cancelled": "cancelled",
    "interrupted": "interrupted: the sidecar ended before the answer did",
    "max_tokens": "cut off: the answer reached the model's limit",
    "max_steps": "stopped: the turn reached its limit of steps",
    "refusal": "the model refused",
}


def end_note(reason: str | None, error: ErrorObject | None, engine: str | None = None) -> str | None:
    """Return a note on the end of a turn; None for the usual one. `engine` says if it ran in another program."""
    if error is not None:
        return f"error: {error_object_message(error.message, error.data)}"
    if reason in (None, "end_turn"):
        return None
    if reason == "interrupted" and engine in PLATFORMS:
        return f"interrupted: {engine} ended before the answer did"
    return _NOTES.get(str(reason), str(reason))


def prompt_text(turn: Turn) -> str:
    """Return what the user wrote; attachments by their names."""
    prompts = [item for item in turn.items if item.type == "user"]
    return "\n".join(_user_text(item) for item in prompts)


class TurnWriter:
    """Writes finished turns: as Markdown on a terminal, unformatted elsewhere. With `diffs`, also the changes."""

    def __init__(self, console: Console, *, diffs: bool = False) -> None:
        self._console = console
        self._diffs = diffs
        self._last = ""

    def write(self, turn: Turn) -> None:
        self._line(PROMPT_MARK + prompt_text(turn), "bold")
        self._last = "user"
        for item in turn.items:
            if item.type != "user":
                self._write_item(item)
        if note := end_note(turn.reason, turn.error, turn.engine):
            self._line(note, "red" if turn.error else "yellow")
        self._console.print()

    def _write_item(self, item: Item) -> None:
        if item.type == "message":
            self._write_message(item.text or "")
        elif item.type == "tool" and not (item.name == PLAN_TOOL and item.status == "completed"):
            self._write_call(item)
        elif item.type == "plan":
            self._write_lines("plan", plan_lines(item))
        elif item.type == "command":
            self._write_lines("command", [Text(f"/{title_of(item)}", "bold")])
            self._write_message(item.text or "")

    def _write_message(self, text: str) -> None:
        self._console.print()
        self._last = "message"
        if self._console.is_terminal:
            print_blocks(self._console, text)
        else:
            self._line(text)

    def _write_call(self, item: Item) -> None:
        self._write_lines("tool", call_lines(item, output_of(item)))
        if self._diffs and item.status != "denied":
            for change in item.changes or []:
                self._write_change(change)

    def _write_change(self, change: FileChange) -> None:
        lines = diff_lines(change)
        if self._console.is_terminal:
            self._write_lines("diff", lines)
            return
        # One backtick more than any line of the file has, so that none of them ends the fence.
        longest = max((len(run) for run in re.findall("`+", change.unified_diff or "")), default=0)
        fence = "`" * max(3, longest + 1)
        self._write_lines("diff", [Text(f"{fence}diff"), *lines, Text(fence)])

    def _write_lines(self, kind: str, lines: Sequence[RenderableType]) -> None:
        """Write lines after a blank line, except between consecutive calls."""
        if not (kind == self._last == "tool"):
            self._console.print()
        self._last = kind
        whole = kind == "diff" or not self._console.is_terminal
        for line in lines:
            self._console.print(line, soft_wrap=whole)

    def _line(self, text: str, style: str = "") -> None:
        shown = printable(text) if self._console.is_terminal else text
        self._console.print(Text(shown, style=style), soft_wrap=not self._console.is_terminal)


def _user_text(item: Item) -> str:
    if item.content is None:
        return item.text or ""
    return "\n".join(block.text or f"[{block.name or block.uri or block.type}]" for block in item.content)
