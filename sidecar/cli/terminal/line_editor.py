"""Edit prompts in the terminal, with a history and completion. What is typed during an answer is kept for the next.

Knows keys and the screen, not what is done with a prompt.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import msgspec
from rich.console import Console
from rich.text import Text

from .edited_text import EditedText
from .key_input import Input, KeyAction, KeyPress, Pasted, Typed
from .keyboard import Keyboard
from .pastes import Pastes
from .prompt_history import PromptHistory
from .prompt_screen import PromptScreen, lay_out, menu_rows
from .safe_text import one_line
from .turn_view import PROMPT_MARK

MAX_MENU_ROWS = 8
"""Rows of completions: what was written above stays on the screen."""

MAX_DRAFT_ROWS = 4
"""Rows of the next prompt below an answer that streams."""


class Prompts(Protocol):
    """Where prompts come from."""

    def read(self) -> str | None:
        """Return the next prompt; None when the user exits."""

    def add_history(self, text: str) -> None: ...

    def keep_unsent(self) -> None:
        """Do not send what was sent ahead; it can be edited again."""


class PlainPrompts:
    """Prompts from Python's `input`: without history, completion and typing during an answer."""

    def read(self) -> str | None:
        try:
            return input(PROMPT_MARK)
        except (EOFError, KeyboardInterrupt):
            print()
            return None

    def add_history(self, text: str) -> None:
        """Do nothing."""

    def keep_unsent(self) -> None:
        """Do nothing: lines that were typed ahead are in the terminal."""


class _Search(msgspec.Struct):
    """A search of the history that is going on."""

    part: str = ""
    skip: int = 0


class LineEditor:
    """The prompts of one conversation."""

    def __init__(self, console: Console, keyboard: Keyboard, complete: Callable[[str], list[str]]) -> None:
        self._console = console
        self._keyboard = keyboard
        self._complete = complete
        self._screen = PromptScreen(console)
        self._line = EditedText()
        self._pastes = Pastes()
        self._history = PromptHistory()
        self._inputs: deque[Input] = deque()
        self._sent_ahead: list[str] = []
        self._search: _Search | None = None
        self._menu: list[str] = []

    def read(self) -> str | None:
        self._screen.forget()
        if self._sent_ahead:
            return self._submit(self._sent_ahead.pop(0))
        self._keyboard.use("editing")
        try:
            while (text := self._edit()) is None:
                self._draw()
                more = self._keyboard.read(None)
                if more is None:
                    raise EOFError
                self._inputs += more
            return text
        except (EOFError, KeyboardInterrupt):
            self._console.print()
            return None
        finally:
            self._keyboard.use("ahead")

    def add_history(self, text: str) -> None:
        self._history.add(text)

    @property
    def quiet_seconds(self) -> float:
        """How long nobody has typed."""
        return self._keyboard.quiet_seconds

    def release(self) -> AbstractContextManager[None]:
        """Return a context in which others read from the terminal."""
        return self._keyboard.release()

    def take_typed(self, seconds: float = 0) -> None:
        """Put what was typed during an answer into the next prompt; Enter sends it when the answer has ended."""
        self._inputs += self._keyboard.read(seconds) or []
        while self._inputs:
            key = self._inputs.popleft()
            if key == KeyPress("submit") and not self._begin_line():
                if self._line.text.strip():
                    self._sent_ahead.append(self._line.text)
                self._line.set("")
            elif not isinstance(key, KeyPress) or key.action not in _NOT_AHEAD:
                self._change(key)

    def keep_unsent(self) -> None:
        """Return prompts that wait to be sent to the editor: the answer before them was cut off."""
        if self._sent_ahead:
            self._line.set("\n".join(each for each in [*self._sent_ahead, self._line.text] if each.strip()))
            self._sent_ahead.clear()

    def draft_rows(self) -> list[Text]:
        """Return the prompts that come next, to be shown below an answer."""
        width = max(4, self._console.width - 1)
        rows = [
            Text(f"{PROMPT_MARK}{one_line(self._pastes.with_notes(text))}", "dim")
            for text in self._sent_ahead
        ]
        if self._line.text:
            text = f"{self._pastes.with_notes(self._line.before)}▏{self._pastes.with_notes(self._line.after)}"
            rows += [Text(row) for row in lay_out(PROMPT_MARK, text, len(text), width).rows[-MAX_DRAFT_ROWS:]]
        for row in rows:
            row.truncate(width, overflow="ellipsis")
        return rows[-2 * MAX_DRAFT_ROWS :]

    def _edit(self) -> str | None:
        """Obey the keys that were pressed; return the prompt once one is complete."""
        while self._inputs:
            key = self._inputs.popleft()
            self._menu = []
            if self._search is not None:
                self._continue_search(key)
                if key != KeyPress("submit"):
                    continue
            if key == KeyPress("submit"):
                if not self._begin_line():
                    text = self._line.text
                    self._line.set("")
                    return self._submit(text)
            elif key == KeyPress("interrupt") and self._line.text:
                self._history.add(self._line.text)
                self._line.set("")
            elif key == KeyPress("interrupt") or (key == KeyPress("end_of_input") and not self._line.text):
                raise EOFError
            else:
                self._change(key)
        return None

    def _submit(self, text: str) -> str:
        self._screen.finish(PROMPT_MARK, self._pastes.with_notes(text))
        self._history.add(text)
        return self._pastes.whole(text)

    def _begin_line(self) -> bool:
        """Begin another line of the prompt if the present one ends with a backslash."""
        if self._line.after or not self._line.text.endswith("\\"):
            return False
        self._line.erase_left()
        self._line.insert("\n")
        return True

    def _change(self, key: Input) -> None:
        if isinstance(key, Typed):
            self._line.insert(key.text)
        elif isinstance(key, Pasted):
            self._line.insert(self._pastes.hold(key.text))
        else:
            self._obey(key.action)

    def _obey(self, action: KeyAction) -> None:
        match action:
            case "up":
                if not self._line.line_up():
                    self._line.set(self._history.earlier(self._line.text))
            case "down":
                if not self._line.line_down():
                    self._line.set(self._history.later(self._line.text))
            case "newline":
                self._line.insert("\n")
            case "end_of_input":
                self._line.erase_right()
            case "complete":
                self._complete_line()
            case "search":
                self._search = _Search()
            case "clear":
                self._screen.clear()
            case "resumed":
                self._screen.forget()
            case "resized" | "escape" | "submit" | "interrupt":
                pass
            case _:
                getattr(self._line, action)()

    def _complete_line(self) -> None:
        before = self._line.before
        found = self._complete(before)
        common = _common_start(found)
        if common and common != before:
            rest = self._line.after
            self._line.set(common + rest)
            self._line.position = len(common)
        if len(found) > 1:
            start = max(common.rfind("/"), common.rfind(" ")) + 1
            self._menu = [one_line(each[start:]) for each in found]

    def _continue_search(self, key: Input) -> None:
        """Refine a search of the history; another key than one of a search accepts what was found."""
        search = self._search
        assert search is not None
        if isinstance(key, Typed):
            search.part, search.skip = search.part + key.text, 0
        elif key == KeyPress("erase_left"):
            search.part, search.skip = search.part[:-1], 0
        elif key == KeyPress("search"):
            if self._history.search(search.part, search.skip + 1) is not None:
                search.skip += 1
        elif key != KeyPress("resized"):
            found = self._history.search(search.part, search.skip)
            if found is not None and key not in (KeyPress("escape"), KeyPress("interrupt")):
                self._line.set(found)
            self._search = None

    def _draw(self) -> None:
        mark, before, after = PROMPT_MARK, self._line.before, self._line.after
        if self._search is not None:
            mark = f"search {self._search.part!r}: "
            before, after = self._history.search(self._search.part, self._search.skip) or "", ""
        before, after = self._pastes.with_notes(before), self._pastes.with_notes(after)
        menu = menu_rows(self._menu, self._screen.width, MAX_MENU_ROWS)
        self._screen.draw(mark, before + after, len(before), menu)


def _common_start(texts: Sequence[str]) -> str:
    if not texts:
        return ""
    # All others are between the first and the last one.
    first, last = min(texts), max(texts)
    length = next(
        (n for n, pair in enumerate(zip(first, last, strict=False)) if len(set(pair)) > 1), len(first)
    )
    return first[:length]


_NOT_AHEAD = ("end_of_input", "interrupt", "complete", "search", "clear", "resized", "resumed")
"""Keys that do nothing during an answer."""
