"""The slash commands that the terminal handles itself: `slash.HELP` lists them. All others go to the sidecar."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Callable
from typing import Literal

from rich.text import Text
from sidecar_client import RpcError, TurnFailed
from sidecar_protocol.messages import CommandInfo

from ..client import last_turns
from ..errors import error_message
from . import slash
from .blocking_chat import BlockingChat, StartTurn
from .markdown_blocks import printable
from .turn_view import TurnWriter

HISTORY_TURNS = 20


class OwnCommands:
    """Runs them in one conversation; `ask` shows the answer of a turn."""

    def __init__(self, line: BlockingChat, options: Namespace, ask: Callable[[StartTurn], None]) -> None:
        self._line = line
        self._options = options
        self._ask = ask
        self._known: list[CommandInfo] | None = None

    def run(self, command: str, rest: str) -> None:
        getattr(self, f"_do_{command}")(rest)

    def say(self, text: str, style: str = "") -> None:
        """Print a text, wrapped at words on a terminal."""
        console = self._line.console
        console.print(Text(printable(text), style=style), soft_wrap=not console.is_terminal)

    def say_exactly(self, text: str, style: str = "") -> None:
        """Print a line that may be copied: the terminal wraps it."""
        self._line.console.print(Text(printable(text), style=style), soft_wrap=True)

    def error_text(self, error: RpcError | TurnFailed) -> str:
        """The error of a line; that of an unknown command names the nearest of both lists."""
        params = error.data.get("params") if isinstance(error, RpcError) else None
        name = params.get("command") if isinstance(params, dict) else None
        if isinstance(name, str):
            return slash.unknown_command(name, self.list_commands())
        return f"error: {error_message(error)}"

    def list_commands(self) -> list[CommandInfo]:
        """Return the commands of the sidecar; they do not change while it runs."""
        if self._known is None:
            listed = self._line.call(self._line.app.call, "commands/list")
            self._known = list(listed.items)
        return self._known

    def resume_command(self) -> str:
        where = getattr(self._options, "data_dir", None)
        folder = ["--data-dir", where] if where else []
        return shlex.join(["sidecar", "chat", "--chat", self._line.name, *folder])

    def _do_help(self, rest: str) -> None:
        console = self._line.console
        width = console.width if console.is_terminal else None
        for line in slash.help_lines(self.list_commands(), width):
            self.say_exactly(line)

    def _do_new(self, rest: str) -> None:
        if self._line.opened:
            self.say_exactly(f"To go on with the last one: {self.resume_command()}", "dim")
        self._line.start_over()
        self.say("A new chat.", "dim")

    def _do_retry(self, rest: str) -> None:
        start: Literal["start", "here"] = "here" if rest == "here" else "start"
        self._ask(lambda chat: chat.retry(start=start))

    def _do_history(self, rest: str) -> None:
        count = int(rest) if rest.isdecimal() and int(rest) else HISTORY_TURNS
        for turn in self._line.call(last_turns, self._line.chat, count):
            TurnWriter(self._line.console).write(turn)

    def _do_title(self, rest: str) -> None:
        changed = self._line.call(self._line.chat.rename, rest or None)
        self.say(f"The title is {changed.title!r}." if changed.title else "The title is automatic.", "dim")

    def _do_model(self, rest: str) -> None:
        if rest:
            chat = self._line.chat  # opened here: the loop cannot wait for itself
            config = self._line.call(lambda: chat.configure(model=rest))
            self.say(f"The model is {config.get('model', rest)}.", "dim")
            return
        present = self._line.call(self._line.chat.configure).get("model")
        models = self._line.call(self._line.app.models)
        usable = [model for model in models if model.available]
        width = max((len(model.id) for model in usable), default=0)
        for model in usable:
            mark = "*" if model.id == present or (present == "auto" and model.default) else " "
            self.say(f"{mark} {model.id:<{width}}  {model.name}")
        if len(usable) < len(models):
            self.say(
                f"{len(models) - len(usable)} more are not usable now; `sidecar providers` says why.", "dim"
            )

    def _do_engine(self, rest: str) -> None:
        chat = self._line.chat
        if rest:
            config = self._line.call(lambda: chat.configure(engine=rest))
            self.say(f"The engine is {config.get('engine', rest)}.", "dim")
            return
        present = self._line.call(chat.configure).get("engine")
        engines = self._line.call(self._line.app.engines)
        width = max(len(engine.name) for engine in engines)
        for engine in engines:
            mark = "*" if engine.name == present else " "
            why = "" if engine.ready else f"  ({engine.reason})"
            self.say(f"{mark} {engine.name:<{width}}  {engine.title}{why}", "" if engine.ready else "dim")

    def _do_mode(self, rest: str) -> None:
        changes = {"mode": rest} if rest else {}
        chat = self._line.chat
        config = self._line.call(lambda: chat.configure(**changes))
        self.say(f"The mode is {config['mode']}.", "dim")
