"""What is typed while an answer streams: the interface, and the case in which nobody types."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from rich.text import Text


class TypedAhead(Protocol):
    @property
    def quiet_seconds(self) -> float:
        """How long nobody has typed."""

    def take_typed(self, seconds: float = 0) -> None:
        """Put what was typed into the next prompt; wait for so long if nothing was."""

    def draft_rows(self) -> list[Text]:
        """Return the prompts that come next, to be shown below an answer."""

    def release(self) -> AbstractContextManager[None]:
        """Return a context in which others read from the terminal."""


class NothingTyped:
    """No line editor: a script, or a terminal that edits lines itself."""

    quiet_seconds = math.inf

    def take_typed(self, seconds: float = 0) -> None:
        """Do nothing."""

    def draft_rows(self) -> list[Text]:
        return []

    def release(self) -> AbstractContextManager[None]:
        return nullcontext()
