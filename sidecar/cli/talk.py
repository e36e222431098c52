"""`sidecar chat`: one question, piped lines, or a conversation. Joins the terminal to the client.

The main thread belongs to the terminal (it reads lines and gets Ctrl-C); the client's event loop runs in a
thread beside it. That way a line editor works as usual and an interrupt is never lost in a blocked loop.
"""

from __future__ import annotations

import os
import secrets
import signal
import sys
import time
from argparse import Namespace
from collections.abc import Callable
from concurrent.futures import Future
from types import FrameType
from typing import TextIO

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal
from rich.console import Console
from sidecar_client import Answer, Chat, Event, InputRequest, Sidecar

from .client import Start, check_chat_id, folder, open_chat, spawn
from .denials import Denials
from .drawing import ending
from .errors import Failed
from .painters import MarkdownPainter, Painter, PlainPainter
from .questions import Question, Questions, Reply

INTERRUPT_POLL_SECONDS = 0.1
"""How soon an interrupt is noticed."""

CATCH_UP_SECONDS = 1.0
"""How long a question waits for the events before it; then it is asked, as what it says stands for itself."""

EXIT_CODES = {"error": 1, "interrupted": 1, "cancelled": 130}

Ask = Callable[[Chat], Answer]


def talk(options: Namespace) -> int:
    start = _start(options)
    name = fresh_id() if options.chat is None else options.chat
    check_chat_id(name, "--chat")
    piped = None if sys.stdin is None or sys.stdin.isatty() else _utf8(sys.stdin)
    question = _question(options.question, piped)
    questions = Questions() if piped is None and _asking_console() is not None else None
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(spawn(options, questions)) as app,
    ):
        line = Line(portal, app, name, start, questions)
        if question is not None:
            return _answer(line, question)
        if piped is not None:
            return _answer_lines(line, piped)
        from .terminal import Terminal

        return Terminal(line, options).run()


class Line:
    """A chat as the main thread sees it: ask, wait, interrupt. The chat is opened when it is first needed."""

    def __init__(
        self,
        portal: BlockingPortal,
        app: Sidecar,
        name: str,
        start: Start,
        questions: Questions | None = None,
    ) -> None:
        self.name = name
        self.console = Console(highlight=False)
        self.app = app
        self.call = portal.call
        self.denied: list[str] = []
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
        self.name, self._chat = fresh_id(), None

    def ask(self, make: Ask) -> Answer:
        """Show an answer as it streams, to its end. Ctrl-C cancels the turn; a second one leaves."""
        turn = _Turn(self.chat, make, self._painter())
        with _Interrupts() as interrupts:
            playing: Future[Answer] = self._portal.start_task_soon(turn.play)
            playing.add_done_callback(lambda _: self._questions.wake())
            while not playing.done():
                question = self._questions.next(INTERRUPT_POLL_SECONDS)
                if question is not None:
                    self._put(question, turn, interrupts)
                if interrupts.pending and not playing.done():
                    self._portal.start_task_soon(turn.cancel)
                    interrupts.heard()
        if interrupts.pending:
            raise KeyboardInterrupt  # it came too late to cancel anything: it was meant for what follows
        self.denied = turn.denials.lines
        return playing.result()

    def _put(self, question: Question, turn: _Turn, interrupts: _Interrupts) -> None:
        """Put a question to the person. Without an answer the turn is being cancelled, or needs none any more."""
        console = _asking_console()
        assert console is not None, "nothing is asked where there is no terminal"
        self._portal.call(turn.catch_up, question.id)
        self._portal.call(turn.painter.pause)
        try:
            reply = self._answer(console, question, turn, lambda: question.over or interrupts.pending)
            if reply is not None:
                self._portal.call(question.settle, reply)
        except KeyboardInterrupt:
            interrupts.press()
        finally:
            self._portal.call(turn.painter.resume)

    def _answer(
        self, console: Console, question: Question, turn: _Turn, over: Callable[[], bool]
    ) -> Reply | None:
        from .forms import ask_input
        from .permission import ask_permission

        request = question.request
        if isinstance(request, InputRequest):
            return ask_input(console, request, over)
        return ask_permission(console, request, self.project, over)

    def _painter(self) -> Painter:
        if self.console.is_terminal and not self.console.is_dumb_terminal:
            return MarkdownPainter(self.console)
        return PlainPainter(_utf8(sys.stdout))


class _Interrupts:
    """Ctrl-C while an answer streams: the first is taken by the loop that waits, a second one leaves.

    Counted by a handler instead of raised: an exception may come out in a callback, where Python drops it.
    """

    def __init__(self) -> None:
        self._count = 0
        self._heard = False

    def __enter__(self) -> _Interrupts:
        self._before = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    @property
    def pending(self) -> bool:
        """Whether one has come that nobody has acted on."""
        return self._count > 0 and not self._heard

    def heard(self) -> None:
        self._heard = True

    def press(self) -> None:
        """Ctrl-C came as a key."""
        self._count += 1
        if self._count > 1:
            raise KeyboardInterrupt

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self.press()


class _Turn:
    """One answer in the loop's thread."""

    def __init__(self, chat: Chat, make: Ask, painter: Painter) -> None:
        self.painter = painter
        self.denials = Denials()
        self._chat = chat
        self._make = make
        self._answer: Answer | None = None
        self._asked: set[str] = set()
        self._moved = anyio.Event()

    async def play(self) -> Answer:
        async with self._make(self._chat) as self._answer:
            with self.painter as painter:
                async for event in self._answer:
                    painter.take(event)
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
        if event.type in ("permission.requested", "input.requested"):
            self._asked.add(str(event.data.get("permissionId") or event.data.get("inputId")))
            self._moved.set()
            self._moved = anyio.Event()


RECENT_TURNS = 3
"""How many turns are shown of a chat that is gone on with."""


def _start(options: Namespace) -> Start:
    """The project is the folder that one is in, unless another or none is chosen."""
    given = folder(options.project, "--project")
    here = None if options.no_project else given or _here()
    return Start(here, chosen=given is not None or options.chat is None, mode=options.mode)


def _here() -> str | None:
    try:
        return os.getcwd()
    except FileNotFoundError:
        return None  # somebody has removed it


def _asking_console() -> Console | None:
    """Where a person can be asked; None where there is no terminal to show the question."""
    if sys.stdin is None or not sys.stdin.isatty():
        return None
    consoles = (Console(highlight=False), Console(highlight=False, stderr=True))
    return next((console for console in consoles if console.file.isatty()), None)


def fresh_id() -> str:
    return f"terminal-{time.strftime('%Y%m%d')}-{secrets.token_hex(3)}"


def _question(given: str | None, piped: TextIO | None) -> str | None:
    """What to ask; text that comes through a pipe is put below a question."""
    if given is None and sys.stdin is None:
        raise Failed("question: give one, as there is no stdin to read any from.")
    if given is None:
        return None
    if not given.strip():
        raise Failed("question: it is empty; give some text, or none at all for a conversation.")
    context = piped.read().rstrip("\n") if piped is not None else ""
    return f"{given}\n\n{context}" if context.strip() else given


def _answer_lines(line: Line, piped: TextIO) -> int:
    code = 0
    for text in piped:
        if text.strip():
            code = max(code, _answer(line, text.rstrip("\r\n")))
        if code == EXIT_CODES["cancelled"]:
            break
    return code


def _answer(line: Line, prompt: str) -> int:
    return _report(line.ask(lambda chat: chat.prompt(prompt, commands="off")), line.denied)


def _report(answer: Answer, denied: list[str]) -> int:
    """The exit code; a word on stderr when the turn did not end as usual, and for each call that was denied."""
    sys.stdout.flush()
    for each in denied:
        print(f"sidecar: {each}", file=sys.stderr)
    ended = answer.ended
    if note := ending(answer.reason, ended.error if ended else None):
        print(f"sidecar: {note}", file=sys.stderr)
    return EXIT_CODES.get(answer.reason or "", 0)


def _utf8(stream: TextIO) -> TextIO:
    """The same stream, without a locale in which half the world's text is an error."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None and not stream.isatty():
        reconfigure(encoding="utf-8", errors="replace")
    return stream
