"""How an answer appears while it streams: as it is for files and pipes, as Markdown on a terminal.

A painter is entered for one turn and given its events. It knows nothing of where they come from.
"""

from __future__ import annotations

import sys
import time
from typing import Protocol, Self, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text
from sidecar_client import Event

from .blocks import Block, blocks, print_blocks, printable

REFRESHES_PER_SECOND = 12
"""Fast enough to look continuous, slow enough for a terminal at the end of a slow line."""

SETTLE_SECONDS = 1 / REFRESHES_PER_SECOND
"""How often finished blocks are looked for: the whole unfinished one is parsed each time."""


class Painter(Protocol):
    def __enter__(self) -> Self: ...

    def __exit__(self, *exc_info: object) -> None: ...

    def take(self, event: Event) -> None: ...


class PlainPainter:
    """The text of the answer exactly, and a newline at its end."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._last = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._last and not self._last.endswith("\n"):
            self._write("\n")

    def take(self, event: Event) -> None:
        if event.type == "message.started" and self._last:
            self._write("\n\n")
        elif event.type == "message.delta" and event.text:
            self._last = event.text
            self._write(event.text)
        elif event.type == "error":
            print(f"sidecar: {event.data.get('message', '')}; trying again", file=sys.stderr)

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


class MarkdownPainter:
    """Finished blocks are printed for good, into the scrollback; only the unfinished one is redrawn."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._pending = ""
        self._printed = False
        self._settled_at = 0.0
        self._waiting = Spinner("dots", Text("thinking", style="dim"))
        # Live asks the painter itself what to draw (`__rich__`), so that a block that is printed for good is
        # never drawn beside its last unfinished state.
        self._live = Live(
            self,
            console=console,
            refresh_per_second=REFRESHES_PER_SECOND,
            transient=True,
            vertical_overflow="crop",
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._live.stop()
        self._print(self._pending)
        self._pending = ""

    def take(self, event: Event) -> None:
        if event.type == "message.started":
            self._settle(final=True)
        elif event.type == "message.delta":
            self._pending += printable(event.text)
            self._settle()
        elif event.type == "tool.started" and event.item is not None:
            self._settle(final=True)
            self._wait_for(event.item.title or event.item.name or "working")
        elif event.type == "error":
            self._wait_for(f"retrying: {event.data.get('message', '')}")

    def _settle(self, final: bool = False) -> None:
        """Print what can no longer change."""
        now = time.monotonic()
        if not final and now - self._settled_at < SETTLE_SECONDS:
            return
        self._settled_at = now
        finished, rest = (self._pending, "") if final else split_finished(self._pending)
        # The pending text changes first: printing draws what is unfinished below.
        self._pending = rest
        self._print(finished)

    def _wait_for(self, what: str) -> None:
        self._waiting.update(text=Text(printable(what), style="dim"))

    def _print(self, text: str) -> None:
        self._printed = print_blocks(self._console, text, gap=self._printed)

    def __rich__(self) -> RenderableType:
        text = self._pending
        if not text.strip():
            return self._waiting
        # Two lines less than the screen has: the gap, and the line that the cursor stands on.
        block = Block(text, end_of=max(1, self._console.height - 2))
        return Group(Text(), block) if self._printed else block


def split_finished(text: str) -> tuple[str, str]:
    """The blocks that no further text can change, and the rest: the last block may always go on."""
    *finished, last = blocks(text)
    return "".join(finished), last
