"""`sidecar chat`: one question, piped lines, or a conversation. Connects the terminal to the client.

The main thread belongs to the terminal (it reads lines and gets Ctrl-C); the event loop of the client runs in another
thread. That way a line editor works as usual and an interrupt is never lost in a blocked loop.
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Iterable
from typing import TYPE_CHECKING, TextIO

from anyio.from_thread import start_blocking_portal
from sidecar_client import Answer

from sidecar.system.lazy import lazy_module

from ..client import ChatStart, check_chat_id, existing_folder, spawn
from ..errors import CommandFailed
from ..terminal import slash
from ..terminal.blocking_chat import BlockingChat, StartTurn, as_utf8, asking_console, new_chat_id
from ..terminal.questions import Questions
from ..terminal.turn_view import end_note

if TYPE_CHECKING:
    import sidecar_client

    from ..terminal import own_commands, terminal
else:
    own_commands = lazy_module("sidecar.cli.terminal.own_commands")
    sidecar_client = lazy_module("sidecar_client")
    terminal = lazy_module("sidecar.cli.terminal.terminal")

EXIT_CODES = {"error": 1, "interrupted": 1, "cancelled": 130}


def talk(options: Namespace) -> int:
    start = _start(options)
    name = new_chat_id() if options.chat is None else options.chat
    check_chat_id(name, "--chat")
    piped = None if sys.stdin is None or sys.stdin.isatty() else as_utf8(sys.stdin)
    question = _question(options.question, piped)
    questions = Questions() if piped is None and asking_console() is not None else None
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(spawn(options, questions)) as app,
    ):
        line = BlockingChat(portal, app, name, start, questions)
        if piped is None and question is None:
            return terminal.Terminal(line, options).run()
        script = _Script(line, options)
        return script.answer(question) if question is not None else script.answer_lines(piped or ())


def _start(options: Namespace) -> ChatStart:
    """The project is the current folder, unless another or none is chosen."""
    given = existing_folder(options.project, "--project")
    here = None if options.no_project else given or _current_folder()
    return ChatStart(here, chosen=given is not None or options.chat is None, mode=options.mode)


def _current_folder() -> str | None:
    try:
        return os.getcwd()
    except FileNotFoundError:
        return None  # it was deleted


def _question(given: str | None, piped: TextIO | None) -> str | None:
    """Return the prompt; text from a pipe is put below the question, unless that is a slash command."""
    if given is None and sys.stdin is None:
        raise CommandFailed("question: give one, as there is no stdin to read any from.")
    if given is None:
        return None
    if not given.strip():
        raise CommandFailed("question: it is empty; give some text, or none at all for a conversation.")
    context = piped.read().rstrip("\n") if piped is not None and not slash.is_command(given) else ""
    return f"{given}\n\n{context}" if context.strip() else given


class _Script:
    """Questions and commands that nobody types: their answers go to stdout, errors to stderr."""

    def __init__(self, line: BlockingChat, options: Namespace) -> None:
        self._line = line
        self._own = own_commands.OwnCommands(line, options, self._ask)
        self._code = 0

    def answer_lines(self, lines: Iterable[str]) -> int:
        """Answer each line; a refused one does not keep the next from being answered."""
        for text in lines:
            prompt = text.rstrip("\r\n")
            if slash.parse_line(prompt.strip()).command == "quit":
                break
            if prompt.strip():
                try:
                    self.answer(prompt)
                except sidecar_client.RpcError as error:
                    print(f"sidecar: {self._own.error_text(error)}", file=sys.stderr)
                    self._code = max(self._code, EXIT_CODES["error"])
            if self._code == EXIT_CODES["cancelled"]:
                break
        return self._code

    def answer(self, prompt: str) -> int:
        if slash.is_command(prompt.strip()):
            prompt = prompt.strip()
        command, rest = slash.parse_line(prompt)
        if command is None:
            self._ask(lambda chat: chat.prompt(prompt))
        elif command != "quit":
            self._own.run(command, rest)
        return self._code

    def _ask(self, start: StartTurn) -> None:
        answer = self._line.ask(start)
        self._code = max(self._code, _report(answer, self._line.denied))


def _report(answer: Answer, denied: list[str]) -> int:
    """Return the exit code; write a note to stderr when the turn did not end as usual, and for each denied call."""
    sys.stdout.flush()
    for each in denied:
        print(f"sidecar: {each}", file=sys.stderr)
    ended = answer.ended
    if note := end_note(answer.reason, ended.error if ended else None):
        print(f"sidecar: {note}", file=sys.stderr)
    return EXIT_CODES.get(answer.reason or "", 0)
