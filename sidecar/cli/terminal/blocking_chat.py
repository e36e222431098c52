"""A chat as the main thread uses it: ask, wait, interrupt. The client's event loop runs in another thread.

Knows where a person can be asked and how an answer is shown; which prompts are sent is decided by its callers.
"""

from __future__ import annotations

import secrets
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future
from types import FrameType
from typing import TYPE_CHECKING, Any, TextIO

import anyio
from anyio.from_thread import BlockingPortal
from rich.console import Console
from sidecar_client import Answer, Chat, Event, InputRequest, Sidecar

from sidecar.system.lazy import lazy_module

from ..client import ChatStart, open_chat
from .denials import Denials
from .questions import OpenQuestion, Questions, RequestAnswer
from .renderers import MarkdownRenderer, PlainRenderer, Renderer
from .typed_ahead import NothingTyped, TypedAhead

if TYPE_CHECKING:
    from . import forms, permission
else:
    forms = lazy_module("sidecar.cli.terminal.forms")
    permission = lazy_module("sidecar.cli.terminal.permission")

POLL_SECONDS = 0.1
"""How soon an interrupt and what is typed are noticed."""

TYPING_PAUSE_SECONDS = 0.5
"""A question waits until nobody has typed for so long: a key that was meant for the next prompt answers nothing."""

CATCH_UP_SECONDS = 1.0
"""How long a question waits for the events before it; then it is asked, as what it says stands for itself."""

RECENT_TURNS = 3
"""How many turns are shown of a chat that is resumed."""

StartTurn = Callable[[Chat], Answer]


class BlockingChat:
    """A chat as the main thread sees it: ask, wait, interrupt. The chat is opened when it is first needed."""

    def __init__(
        self,
        portal: BlockingPortal,
        app: Sidecar,
        name: str,
        start: ChatStart,
        questions: Questions | None = None,
    ) -> None:
        self.name = name
        self.console = Console(highlight=False)
        self.app = app
        self.call = portal.call
        self.denied: list[str] = []
        self.usage: dict[str, Any] = {}
        self.typing: TypedAhead = NothingTyped()
        self._portal = portal
        self._start = start
        self._questions = questions or Questions()
        self._chat: Chat | None = None

    @property
    def opened(self) -> bool:
        return self._chat is not None

    @property
    def chat(self) -> Chat:
        if self._chat is None:
            self._chat = self._portal.call(open_chat, self.app, self.name, RECENT_TURNS, self._start)
        return self._chat

    @property
    def project(self) -> str | None:
        """The project of the chat, or the one that it will begin with."""
        return self._start.project if self._chat is None else self._chat.project_path

    def start_over(self) -> None:
        """The next prompt begins another chat."""
        self.name, self._chat = new_chat_id(), None

    def ask(self, make: StartTurn) -> Answer:
        """Show an answer as it streams, to its end. Ctrl-C cancels the turn; a second one leaves."""
        turn = _StreamedTurn(self.chat, make, self._renderer())
        with _Interrupts() as interrupts:
            playing: Future[Answer] = self._portal.start_task_soon(turn.play)
            # Otherwise the end of the answer would be noticed up to a tenth of a second late.
            playing.add_done_callback(lambda _: self._questions.wake())
            while not playing.done():
                question = self._questions.next(POLL_SECONDS)
                self.typing.take_typed()
                if question is not None:
                    self._await_pause(question, interrupts)
                    self._ask_person(question, turn, interrupts)
                if interrupts.pending and not playing.done():
                    self._portal.start_task_soon(turn.cancel)
                    interrupts.acknowledge()
        if interrupts.pending:
            raise KeyboardInterrupt  # it came too late to cancel anything: it was meant for what follows
        self.typing.take_typed()
        self.denied, self.usage = turn.denials.lines, turn.usage
        return playing.result()

    def model_and_mode(self) -> tuple[str, str]:
        """Return the model and the mode of the chat, or those that it will begin with."""
        if self._chat is not None:
            config = self.call(self._chat.configure)
            model, mode = str(config["model"]), str(config["mode"])
        else:
            values = self.call(self.app.settings, self.project).values
            model, mode = str(values["model"].value), self._start.mode or str(values["mode"].value)
        if model == "auto":
            chosen = (each.id for each in self.call(self.app.models) if each.default)
            model = next(chosen, "no model is ready")
        return model, mode

    def _await_pause(self, question: OpenQuestion, interrupts: _Interrupts) -> None:
        """Wait until nobody types."""
        while not (question.over or interrupts.pending) and self.typing.quiet_seconds < TYPING_PAUSE_SECONDS:
            self.typing.take_typed(POLL_SECONDS)

    def _ask_person(self, question: OpenQuestion, turn: _StreamedTurn, interrupts: _Interrupts) -> None:
        """Put a question to the person. Without an answer the turn is being cancelled, or needs none any more."""
        console = asking_console()
        assert console is not None, "nothing is asked where there is no terminal"
        # The text before the question explains it.
        self._portal.call(turn.catch_up, question.id)
        self._portal.call(turn.renderer.pause)
        try:
            with self.typing.release():
                reply = self._answer(console, question, turn, lambda: question.over or interrupts.pending)
            if reply is not None:
                self._portal.call(question.settle, reply)
        except KeyboardInterrupt:
            interrupts.press()
        finally:
            self._portal.call(turn.renderer.resume)

    def _answer(
        self, console: Console, question: OpenQuestion, turn: _StreamedTurn, over: Callable[[], bool]
    ) -> RequestAnswer | None:
        request = question.request
        if isinstance(request, InputRequest):
            return forms.ask_input(console, request, over)
        return permission.ask_permission(console, request, self.project, over)

    def _renderer(self) -> Renderer:
        if self.console.is_terminal and not self.console.is_dumb_terminal:
            return MarkdownRenderer(self.console, self.typing.draft_rows)
        return PlainRenderer(as_utf8(sys.stdout))


class _Interrupts:
    """Ctrl-C while an answer streams: the first is taken by the loop that waits, a second one leaves.

    Counted by a handler instead of raised: an exception may come out in a callback, where Python drops it.
    """

    def __init__(self) -> None:
        self._count = 0
        self._heard = False

    def __enter__(self) -> _Interrupts:
        # Only in the main thread, where Python runs signal handlers.
        self._before = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    @property
    def pending(self) -> bool:
        """Whether one has come that nobody has acted on."""
        return self._count > 0 and not self._heard

    def acknowledge(self) -> None:
        self._heard = True

    def press(self) -> None:
        """Ctrl-C came as a key."""
        self._count += 1
        # Raised at the second one: by then the cancel has had its chance, and the person wants out.
        if self._count > 1:
            raise KeyboardInterrupt

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self.press()


class _StreamedTurn:
    """One answer in the loop's thread."""

    def __init__(self, chat: Chat, make: StartTurn, renderer: Renderer) -> None:
        self.renderer = renderer
        self.denials = Denials()
        self.usage: dict[str, Any] = {}
        self._chat = chat
        self._make = make
        self._answer: Answer | None = None
        self._asked: set[str] = set()
        self._moved = anyio.Event()

    async def play(self) -> Answer:
        async with self._make(self._chat) as self._answer:
            with self.renderer as renderer:
                async for event in self._answer:
                    renderer.take(event)
                    self._note(event)
            return self._answer

    async def catch_up(self, id: str) -> None:
        """Show what came before a question: it travels beside the events, and may be ahead of them."""
        with anyio.move_on_after(CATCH_UP_SECONDS):
            while id not in self._asked:
                await self._moved.wait()

    async def cancel(self) -> None:
        if self._answer is not None:
            await self._answer.cancel()

    def _note(self, event: Event) -> None:
        self.denials.take(event)
        if event.type == "usage.updated":
            self.usage = event.data
        if event.type in ("permission.requested", "input.requested"):
            self._asked.add(str(event.data.get("permissionId") or event.data.get("inputId")))
            self._moved.set()
            self._moved = anyio.Event()


def asking_console() -> Console | None:
    """Where a person can be asked; None where there is no terminal to show the question."""
    if sys.stdin is None or not sys.stdin.isatty():
        return None
    consoles = (Console(highlight=False), Console(highlight=False, stderr=True))
    return next((console for console in consoles if console.file.isatty()), None)


def new_chat_id() -> str:
    return f"terminal-{time.strftime('%Y%m%d')}-{secrets.token_hex(3)}"


def as_utf8(stream: TextIO) -> TextIO:
    """The same stream, without a locale in which half the world's text is an error."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None and not stream.isatty():
        reconfigure(encoding="utf-8", errors="replace")
    return stream
