"""The conversation in a terminal: reads lines, obeys slash commands, shows answers. Asking is `talk`'s."""

from __future__ import annotations

import shlex
from argparse import Namespace
from types import ModuleType
from typing import Literal

from rich.text import Text
from sidecar_client import Answer, RpcError, TurnFailed
from sidecar_protocol.messages import CommandInfo, Turn

from . import slash
from .blocks import printable
from .chats import last_turns
from .drawing import PROMPT_MARK, TurnWriter, ending, prompt_text
from .errors import explain
from .talk import Ask, Line

HISTORY_TURNS = 20


class Terminal:
    """One conversation, which may move on to another chat with `/new`."""

    def __init__(self, line: Line, options: Namespace) -> None:
        self._line = line
        self._options = options
        self._console = line.console
        self._known: list[CommandInfo] | None = None
        self._editor = self._line_editor()

    def run(self) -> int:
        if self._options.chat is not None:
            self._resume()
        self._console.print(
            Text("/help lists the commands, Ctrl-C cancels an answer, Ctrl-D leaves.", style="dim")
        )
        while (text := self._read()) is not None:
            if text.strip() and not self._obey(text.strip()):
                break
        if self._line.opened:
            self._say(f"To go on: {self._resume_command()}", "dim")
        return 0

    def _read(self) -> str | None:
        """The next line; None when the user leaves."""
        try:
            return input(PROMPT_MARK)
        except (EOFError, KeyboardInterrupt):
            print()
            return None

    def _obey(self, text: str) -> bool:
        """Do what a line says; False to leave. An error is told and the conversation goes on."""
        try:
            command, rest = slash.read(text)
            if command == "quit":
                return False
            if command is None:
                self._prompt(rest)
            else:
                getattr(self, f"_do_{command}")(rest)
        except (RpcError, TurnFailed) as error:
            self._say(self._explained(error), "red")
        return True

    def _explained(self, error: RpcError | TurnFailed) -> str:
        params = error.data.get("params") if isinstance(error, RpcError) else None
        name = params.get("command") if isinstance(params, dict) else None
        if isinstance(name, str):
            return slash.unknown(name, self._commands())
        return f"error: {explain(error)}"

    def _prompt(self, text: str) -> None:
        """Send a prompt; when the chat was purged, as by `/purge`, it begins another."""
        try:
            self._ask(lambda chat: chat.prompt(text))
        except RpcError as error:
            if error.name != "deleted":
                raise
            self._line.start_over()
            self._say("That chat was purged; this is a new one.", "dim")
            self._ask(lambda chat: chat.prompt(text))

    def _ask(self, make: Ask) -> None:
        self._console.print()
        self._tell_end(self._line.ask(make))
        self._console.print()

    def _tell_end(self, answer: Answer) -> None:
        error = answer.ended.error if answer.ended else None
        if note := ending(answer.reason, error):
            self._say(note, "red" if error else "yellow")
        if answer.reason in ("interrupted", "error"):
            self._say("/retry here goes on, /retry begins anew", "dim")

    def _do_help(self, rest: str) -> None:
        for line in slash.help_lines(self._commands()):
            self._say(line)

    def _do_new(self, rest: str) -> None:
        if self._line.opened:
            self._say(f"To go on with the last one: {self._resume_command()}", "dim")
        self._line.start_over()
        self._say("A new chat.", "dim")

    def _do_retry(self, rest: str) -> None:
        start: Literal["start", "here"] = "here" if rest == "here" else "start"
        self._ask(lambda chat: chat.retry(start=start))

    def _do_history(self, rest: str) -> None:
        count = int(rest) if rest.isdecimal() and int(rest) else HISTORY_TURNS
        for turn in self._line.call(last_turns, self._line.chat, count):
            TurnWriter(self._console).write(turn)

    def _do_title(self, rest: str) -> None:
        changed = self._line.call(self._line.chat.rename, rest or None)
        self._say(f"The title is {changed.title!r}." if changed.title else "The title is automatic.", "dim")

    def _do_model(self, rest: str) -> None:
        if rest:
            config = self._line.call(lambda: self._line.chat.configure(model=rest))
            self._say(f"The model is {config.get('model', rest)}.", "dim")
            return
        present = self._line.call(self._line.chat.configure).get("model")
        models = self._line.call(self._line.app.models)
        usable = [model for model in models if model.available]
        width = max((len(model.id) for model in usable), default=0)
        for model in usable:
            mark = "*" if model.id == present or (present == "auto" and model.default) else " "
            self._say(f"{mark} {model.id:<{width}}  {model.name}")
        if len(usable) < len(models):
            self._say(
                f"{len(models) - len(usable)} more are not usable now; `sidecar providers` says why.", "dim"
            )

    def _do_mode(self, rest: str) -> None:
        changes = {"mode": rest} if rest else {}
        config = self._line.call(lambda: self._line.chat.configure(**changes))
        self._say(f"The mode is {config['mode']}.", "dim")

    def _resume(self) -> None:
        chat = self._line.chat
        for turn in chat.turns:
            TurnWriter(self._console).write(turn)
            self._remember(turn)
        if chat.status == "created":
            self._say(f"A new chat, {self._line.name}.", "dim")
        if chat.access == "reader":
            self._say("Another process answers this chat; you can read along.", "yellow")

    def _remember(self, turn: Turn) -> None:
        if self._editor is not None:
            self._editor.add_history(prompt_text(turn))

    def _commands(self) -> list[CommandInfo]:
        """What the sidecar obeys; the same as long as it runs."""
        if self._known is None:
            listed = self._line.call(self._line.app.call, "commands/list")
            self._known = list(listed.items)
        return self._known

    def _resume_command(self) -> str:
        where = getattr(self._options, "data_dir", None)
        folder = ["--data-dir", where] if where else []
        return shlex.join(["sidecar", "chat", "--chat", self._line.name, *folder])

    def _say(self, text: str, style: str = "") -> None:
        self._console.print(Text(printable(text), style=style), soft_wrap=True)

    def _line_editor(self) -> ModuleType | None:
        """`readline`, where there is one: importing it is what makes `input` edit lines and keep a history."""
        try:
            import readline
        except ImportError:
            return None
        readline.set_completer_delims("")
        readline.set_completer(
            slash.Completer(readline.get_line_buffer, self._commands, lambda: self._line.project)
        )
        readline.parse_and_bind("tab: complete")
        return readline
