"""The conversation in a terminal: reads lines, obeys slash commands, shows answers. `BlockingChat` asks."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager

from sidecar_client import Answer, RpcError, TurnFailed

from . import slash
from .blocking_chat import BlockingChat, StartTurn, asking_console
from .completion import Completer, mentioned_files
from .keyboard import Keyboard, can_edit
from .line_editor import LineEditor, PlainPrompts, Prompts
from .own_commands import OwnCommands
from .status_lines import start_lines, token_meter
from .turn_view import TurnWriter, end_note, prompt_text


class Terminal:
    """One conversation, which may continue in another chat with `/new`."""

    def __init__(self, line: BlockingChat, options: Namespace) -> None:
        self._line = line
        self._options = options
        self._console = line.console
        self._own = OwnCommands(line, options, self._ask)
        self._prompts: Prompts = PlainPrompts()

    def run(self) -> int:
        with self._editing():
            if self._options.chat is not None:
                self._resume()
            self._print_start()
            while (text := self._prompts.read()) is not None:
                if text.strip() and not self._handle_line(text.strip()):
                    break
        if self._line.opened:
            self._own.say_exactly(f"To go on: {self._own.resume_command()}", "dim")
        return 0

    @contextmanager
    def _editing(self) -> Iterator[None]:
        """Edit lines key by key where the terminal can."""
        console = asking_console()
        if console is None or console.is_dumb_terminal or not can_edit(console.file):
            yield
            return
        completer = Completer(self._own.list_commands, lambda: self._line.project)
        with Keyboard(console.file) as keyboard:
            self._prompts = self._line.typing = LineEditor(console, keyboard, completer)
            yield

    def _print_start(self) -> None:
        model, mode = self._line.model_and_mode()
        home = os.path.expanduser("~")
        for line in start_lines(model, self._line.project, mode, home, self._console.width):
            self._own.say(line, "bold")
        self._own.say("/help lists the commands, Ctrl-C cancels an answer, Ctrl-D leaves.", "dim")

    def _handle_line(self, text: str) -> bool:
        """Run a line; return False to exit. An error is shown and the conversation continues."""
        try:
            command, rest = slash.parse_line(text)
            if command == "quit":
                return False
            if command is None:
                self._prompt(rest)
            else:
                self._own.run(command, rest)
        except (RpcError, TurnFailed) as error:
            self._own.say(self._own.error_text(error), "red")
            self._prompts.keep_unsent()
        return True

    def _prompt(self, text: str) -> None:
        """Send a prompt; when the chat was purged, as by `/purge`, start another."""
        self._open_mentioned(text)
        try:
            self._ask(lambda chat: chat.prompt(text))
        except RpcError as error:
            if error.name != "deleted":
                raise
            self._line.start_over()
            self._own.say("That chat was purged; this is a new one.", "dim")
            self._ask(lambda chat: chat.prompt(text))

    def _open_mentioned(self, text: str) -> None:
        """Open the files that a prompt names by `@file`, so that their text is sent with it."""
        for path in mentioned_files(text, self._line.project):
            chat = self._line.chat
            try:
                self._line.call(chat.open_file, path)
                self._own.say(f"opened {path}", "dim")
            except RpcError as error:
                self._own.say(f"{path} was not opened: {self._own.error_text(error)}", "yellow")

    def _ask(self, make: StartTurn) -> None:
        self._console.print()
        self._print_end(self._line.ask(make))
        if meter := token_meter(self._line.usage, self._console.width):
            self._console.print()
            self._own.say(meter, "dim")
        self._console.print()

    def _print_end(self, answer: Answer) -> None:
        error = answer.ended.error if answer.ended else None
        if note := end_note(answer.reason, error):
            self._own.say(note, "red" if error else "yellow")
        if answer.reason in ("interrupted", "error"):
            self._own.say("/retry here continues, /retry starts again", "dim")
        if answer.reason in ("cancelled", "interrupted", "error"):
            self._prompts.keep_unsent()

    def _resume(self) -> None:
        chat = self._line.chat
        for turn in chat.turns:
            TurnWriter(self._console).write(turn)
            self._prompts.add_history(prompt_text(turn))
        if chat.status == "created":
            self._own.say(f"A new chat, {self._line.name}.", "dim")
        if chat.access == "reader":
            self._own.say(
                "Another process runs a turn of this chat; you can read along, prompt and cancel.", "yellow"
            )
