"""Render an answer while it streams: unformatted for files and pipes, as Markdown on a terminal.

A renderer is entered for one turn and gets its events. It does not know where they come from.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Literal, Protocol, Self, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text
from sidecar_client import Event, Item

from .markdown_blocks import MarkdownBlock, printable, split_blocks
from .safe_text import Tail
from .tool_view import OUTPUT_LINES, PLAN_TOOL, call_lines, output_lines, plan_lines, title_of

REFRESHES_PER_SECOND = 12
"""Fast enough to look continuous, slow enough for a terminal over a slow line."""

SETTLE_SECONDS = 1 / REFRESHES_PER_SECOND
"""How often finished blocks are printed: the whole unfinished one is parsed each time."""

MAX_RUNNING = 8
"""Running calls that are shown, each with the end of its output; a screen has space for few."""

OutputKind = Literal["text", "call", "plan"]


class Renderer(Protocol):
    def __enter__(self) -> Self: ...

    def __exit__(self, *exc_info: object) -> None: ...

    def take(self, event: Event) -> None: ...

    def pause(self) -> None:
        """Stop drawing until `resume`, so that others can use the screen."""

    def resume(self) -> None: ...


class PlainRenderer:
    """The exact text of the answer, and a newline at its end."""

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
        elif event.type in ("message.delta", "command.result") and event.text:
            self._last = event.text
            self._write(event.text)
        elif event.type == "error":
            print(f"sidecar: {event.data.get('message', '')}; trying again", file=sys.stderr)

    def pause(self) -> None:
        """Do nothing: questions are shown elsewhere, and what is written here is complete."""

    def resume(self) -> None:
        pass

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


class MarkdownRenderer:
    """Finished blocks and calls are printed for good, into the scrollback; only what is unfinished is redrawn.

    While it is paused nothing is drawn at all, so that others can use the screen. `below` returns lines that stay
    below the answer: what the user types for the next prompt.
    """

    def __init__(self, console: Console, below: Callable[[], list[Text]] = list) -> None:
        self._console = console
        self._below = below
        self._pending = ""
        self._last: OutputKind | None = None
        self._held: list[tuple[OutputKind, RenderableType]] | None = None
        self._settled_at = 0.0
        self._waiting = Spinner("dots", Text("thinking", style="dim"))
        self._running: dict[str, _Running] = {}
        self._reasons: dict[str, str] = {}
        self._live: Live | None = None
        self._entered = False
        self._handlers: dict[str, Callable[[Event], None]] = {
            "message.started": self._message_started,
            "message.delta": self._message_delta,
            "command.result": self._command_result,
            "tool.started": self._tool_started,
            "tool.output": self._tool_output,
            "tool.ended": self._tool_ended,
            "plan.updated": self._plan_updated,
            "permission.resolved": self._permission_resolved,
            "error": self._error,
        }

    def __enter__(self) -> Self:
        self._entered = True
        self._start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._entered = False
        self._stop()
        self._settle(final=True)
        for running in self._running.values():
            self._print("call", Text.assemble(("● ", "dim"), title_of(running.item), (" –", "dim")))
        self._running.clear()

    def pause(self) -> None:
        """Stop drawing after showing everything that is known."""
        self._settle(final=True)
        self._stop()
        self._held = []

    def resume(self) -> None:
        held, self._held = self._held or [], None
        self._last = "call"  # the text above is about one
        for kind, what in held:
            self._print(kind, what)
        if self._entered:
            self._start()

    def take(self, event: Event) -> None:
        handle = self._handlers.get(event.type)
        if handle is not None:
            handle(event)

    def _message_started(self, event: Event) -> None:
        self._settle(final=True)

    def _message_delta(self, event: Event) -> None:
        self._pending += printable(event.text)
        self._settle()

    def _command_result(self, event: Event) -> None:
        self._pending += printable(event.text)
        self._settle(final=True)

    def _tool_started(self, event: Event) -> None:
        self._settle(final=True)
        if event.item is not None:
            self._running[event.item.id] = _Running(event.item)

    def _tool_output(self, event: Event) -> None:
        running = self._running.get(str(event.data.get("itemId")))
        if running is not None:
            running.output.add(event.text)

    def _tool_ended(self, event: Event) -> None:
        if event.item is None:
            return
        running = self._running.pop(event.item.id, None)
        why = self._reasons.pop(event.item.id, None)
        if event.item.name == PLAN_TOOL and event.item.status == "completed":
            return  # its effect is on the screen: the plan
        self._print("call", Group(*call_lines(event.item, running.output if running else None, why)))

    def _plan_updated(self, event: Event) -> None:
        self._settle(final=True)
        if event.item is not None:
            self._print("plan", Group(*plan_lines(event.item)))

    def _permission_resolved(self, event: Event) -> None:
        if reason := denial(event):
            self._reasons[str(event.data.get("itemId"))] = reason

    def _error(self, event: Event) -> None:
        self._waiting.update(text=Text(printable(f"retrying: {event.data.get('message', '')}"), style="dim"))

    def _start(self) -> None:
        # Live asks the renderer itself what to draw (`__rich__`), so that a block that is printed for good is never
        # drawn beside its last unfinished state.
        self._live = Live(
            self,
            console=self._console,
            refresh_per_second=REFRESHES_PER_SECOND,
            transient=True,
            vertical_overflow="crop",
        )
        self._live.start()

    def _stop(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _settle(self, final: bool = False) -> None:
        """Print what can no longer change."""
        now = time.monotonic()
        if not final and now - self._settled_at < SETTLE_SECONDS:
            return
        self._settled_at = now
        finished, rest = (self._pending, "") if final else split_finished(self._pending)
        # The pending text changes first: printing redraws what is unfinished below.
        self._pending = rest
        for block in split_blocks(finished):
            if block.strip():
                self._print("text", MarkdownBlock(block))

    def _print(self, kind: OutputKind, what: RenderableType) -> None:
        """Print for good, after a blank line, except between consecutive calls."""
        if self._held is not None:
            self._held.append((kind, what))
            return
        if self._last is not None and not (kind == self._last == "call"):
            self._console.print()
        self._last = kind
        self._console.print(what)

    def __rich__(self) -> RenderableType:
        below = self._below()
        below = [Text(), *below] if below else []
        parts = [self._render_pending(len(below))] if self._pending.strip() else list(self._calls())
        parts = [*(parts or [self._waiting]), *below]
        flush = self._last is None or (self._last == "call" and self._running and not self._pending.strip())
        return Group(*parts) if flush else Group(Text(), *parts)

    def _render_pending(self, below: int) -> RenderableType:
        # Two lines less than the screen has: the gap, and the line of the cursor.
        return MarkdownBlock(self._pending, end_of=max(1, self._console.height - 2 - below))

    def _calls(self) -> Iterator[RenderableType]:
        for running in list(self._running.values())[:MAX_RUNNING]:
            yield running.spinner
            yield from output_lines(running.output)
        if len(self._running) > MAX_RUNNING:
            yield Text(f"… and {len(self._running) - MAX_RUNNING} more", "dim")


class _Running:
    """A running call."""

    def __init__(self, item: Item) -> None:
        self.item = item
        self.output = Tail(OUTPUT_LINES)
        self.spinner = Spinner("dots", Text(title_of(item)))


def denial(event: Event) -> str | None:
    """Return why a call was denied without asking the user; None for everything else."""
    data = event.data
    if event.type != "permission.resolved" or not str(data.get("decision")).startswith("deny"):
        return None
    return None if data.get("by") == "user" else str(data.get("reason") or data.get("by") or "") or None


def split_finished(text: str) -> tuple[str, str]:
    """Return the blocks that no further text can change, and the rest: the last block may always continue."""
    *finished, last = split_blocks(text)
    return "".join(finished), last
