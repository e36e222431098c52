"""How a turn of the history looks: the prompt, what answered it, and a word on an unusual end. Knows no sidecar."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text
from sidecar_protocol.messages import ErrorObject, FileChange, Item, Turn

from .blocks import print_blocks, printable
from .calls import PLAN_TOOL, call_lines, diff_lines, output_of, plan_lines, title_of
from .errors import explain_object

PROMPT_MARK = "> "

_NOTES = {
    "cancelled": "cancelled",
    "interrupted": "interrupted: the sidecar ended before the answer did",
    "max_tokens": "cut off: the answer reached the model's limit",
    "max_steps": "stopped: the turn reached its limit of steps",
    "refusal": "the model refused",
}


def ending(reason: str | None, error: ErrorObject | None) -> str | None:
    """What to say of a turn's end; None for the usual one."""
    if error is not None:
        return f"error: {explain_object(error.message, error.data)}"
    if reason in (None, "end_turn"):
        return None
    return _NOTES.get(str(reason), str(reason))


def prompt_text(turn: Turn) -> str:
    """What the user wrote; attachments by their names."""
    prompts = [item for item in turn.items if item.type == "user"]
    return "\n".join(_user_text(item) for item in prompts)


class TurnWriter:
    """Writes finished turns: as Markdown on a terminal, as they are elsewhere. With `diffs`, also what changed."""

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
        if note := ending(turn.reason, turn.error):
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

    def _write_lines(self, kind: str, lines: Sequence[Text]) -> None:
        """With a blank line before them, unless they are one more of several calls."""
        if not (kind == self._last == "tool"):
            self._console.print()
        self._last = kind
        for line in lines:
            self._console.print(line, soft_wrap=True)

    def _line(self, text: str, style: str = "") -> None:
        shown = printable(text) if self._console.is_terminal else text
        self._console.print(Text(shown, style=style), soft_wrap=True)


def _user_text(item: Item) -> str:
    if item.content is None:
        return item.text or ""
    return "\n".join(block.text or f"[{block.name or block.uri or block.type}]" for block in item.content)
