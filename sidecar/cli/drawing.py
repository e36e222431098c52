"""How a turn looks: the prompt, the answer, and a word on an unusual end. Knows no sidecar."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text
from sidecar_protocol.messages import ErrorObject, Item, Turn

from .blocks import print_blocks, printable
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
    """Writes finished turns: as Markdown on a terminal, as they are elsewhere."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def write(self, turn: Turn) -> None:
        self._line(PROMPT_MARK + prompt_text(turn), "bold")
        for item in turn.items:
            if item.type != "user":
                self._write_item(item)
        if note := ending(turn.reason, turn.error):
            self._line(note, "red" if turn.error else "yellow")
        self._console.print()

    def _write_item(self, item: Item) -> None:
        if item.type == "message":
            self._write_message(item.text or "")
        elif item.type in ("tool", "command"):
            self._line(f"[{item.title or item.name or item.type}]", "dim")

    def _write_message(self, text: str) -> None:
        self._console.print()
        if self._console.is_terminal:
            print_blocks(self._console, text)
        else:
            self._line(text)

    def _line(self, text: str, style: str = "") -> None:
        shown = printable(text) if self._console.is_terminal else text
        self._console.print(Text(shown, style=style), soft_wrap=True)


def _user_text(item: Item) -> str:
    if item.content is None:
        return item.text or ""
    return "\n".join(block.text or f"[{block.name or block.uri or block.type}]" for block in item.content)
