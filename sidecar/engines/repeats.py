"""Detects a model that repeats the same call and gets the same result each time."""

from __future__ import annotations

import msgspec

from ..providers.base import ToolCall
from ..tools.base import ToolOutcome
from ..tools.toolbox import CallResult

MAX_REPEATS = 3
"""How often the same call may give the same result; the next one is not run. Twice may be a check."""


class RepeatGuard:
    """The calls of one turn since its last file change, with how often each gave the same result."""

    def __init__(self) -> None:
        self._seen: dict[bytes, tuple[int, str]] = {}

    def refusal(self, call: ToolCall) -> CallResult | None:
        """The result for a call that was made too often; None lets it run."""
        count, _ = self._seen.get(_signature(call), (0, ""))
        if count < MAX_REPEATS:
            return None
        words = (
            f"This call was made {count} times with the same result and was not run again. "
            "Do something else, or end and tell the user what is missing."
        )
        return CallResult(ToolOutcome(words, failed=True))

    def note(self, call: ToolCall, outcome: ToolOutcome, *, changes: bool) -> None:
        """Record the result. A file change resets everything, because results may differ after it."""
        if changes and not outcome.failed and not outcome.denied:
            self._seen.clear()
            return
        signature = _signature(call)
        count, text = self._seen.get(signature, (0, outcome.text))
        if count < MAX_REPEATS:
            self._seen[signature] = (count + 1, outcome.text) if text == outcome.text else (1, outcome.text)


def _signature(call: ToolCall) -> bytes:
    return msgspec.json.encode([call.name, call.input], order="sorted")
