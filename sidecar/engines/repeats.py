"""Notices a model that makes the same call over and over, and gets the same answer each time."""

from __future__ import annotations

import msgspec

from ..providers.base import ToolCall
from ..tools.base import Outcome
from ..tools.toolbox import Result

MAX_SAME = 3
"""The same call with the same result: once is work, twice is doubt, three times is a loop."""


class Repeats:
    """What one turn has called since it last changed a file, and how often the same came out."""

    def __init__(self) -> None:
        self._seen: dict[bytes, tuple[int, str]] = {}

    def refusal(self, call: ToolCall) -> Result | None:
        """The answer to a call that has been made too often; None lets it run."""
        count, _ = self._seen.get(_signature(call), (0, ""))
        if count < MAX_SAME:
            return None
        words = (
            f"This call was made {count} times with the same result and was not run again. "
            "Do something else, or end and tell the user what is missing."
        )
        return Result(Outcome(words, failed=True))

    def note(self, call: ToolCall, outcome: Outcome, *, changes: bool) -> None:
        """Remember what came out. A change makes every question worth asking again."""
        if changes and not outcome.failed and not outcome.denied:
            self._seen.clear()
            return
        signature = _signature(call)
        count, text = self._seen.get(signature, (0, outcome.text))
        if count < MAX_SAME:
            self._seen[signature] = (count + 1, outcome.text) if text == outcome.text else (1, outcome.text)


def _signature(call: ToolCall) -> bytes:
    return msgspec.json.encode([call.name, call.input], order="sorted")
