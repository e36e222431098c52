"""Between the steps of a turn: what has grown is made to fit again, and what is sent is told."""

from __future__ import annotations

from typing import Any

import msgspec

from ..model.failures import Failure
from ..providers.base import Message, ToolResult, UserMessage
from .asking import TOP, Question, without_text
from .messages import MASKED_CHARACTERS, mask
from .running import RunningTurn

KEPT_RESULTS = 4
"""The newest results of a turn stay whole as long as anything else can go."""


class Stepping:
    """One turn's. `asked` is its first request, as it was measured."""

    def __init__(self, turn: RunningTurn, asked: Question) -> None:
        self._turn = turn
        self._asked = asked
        self._first = len(asked.request.messages)
        self._plain = UserMessage(asked.prompt)
        blocks = asked.manifest["blocks"]
        self._summaries = int(any(one["id"] in TOP and one["included"] != "dropped" for one in blocks))
        """Messages at the head that stand for what was compacted: they stay."""
        self._fixed: int = asked.manifest["used"] - asked.measure.messages(asked.request.messages)

    async def refit(self, messages: list[Message]) -> list[Message]:
        """The messages of the next request: old outputs masked and the oldest turns left out where they must be."""
        total = self._asked.budget.total
        masked = False
        if self._used(messages) > total:
            masked, messages = True, self._masked(messages, total)
        shrunk = masked
        while self._used(messages) > total:
            shrunk = True
            if self._bare(messages):
                continue
            cut = _next_prompt(messages, self._summaries, self._first)
            if cut is None:
                raise _too_full(self._used(messages), total)
            messages = messages[: self._summaries] + messages[cut:]
            self._first -= cut - self._summaries
        await self._tell(messages, shrunk)
        return messages

    def _bare(self, messages: list[Message]) -> bool:
        """Send the prompt without what was sent along with it; False when it stands alone already."""
        place = self._first - 1
        if not self._asked.along or place < 0 or messages[place] is self._plain:
            return False
        messages[place] = self._plain
        return True

    def _used(self, messages: list[Message]) -> int:
        return max(0, self._fixed) + self._asked.measure.messages(messages)

    def _masked(self, messages: list[Message], total: int) -> list[Message]:
        """References in place of outputs, the oldest first, until it fits."""
        made = list(messages)
        places = [place for place, message in enumerate(made) if isinstance(message, ToolResult)]
        used = self._used(made)
        for place in [*places[:-KEPT_RESULTS], *places[-KEPT_RESULTS:]]:
            message = made[place]
            assert isinstance(message, ToolResult)
            if used <= total or len(message.text) <= MASKED_CHARACTERS:
                continue
            short = msgspec.structs.replace(message, text=mask("output", message.text, message.source))
            used += self._asked.measure.message(short) - self._asked.measure.message(message)
            made[place] = short
        return made

    async def _tell(self, messages: list[Message], truncated: bool) -> None:
        manifest = without_text(self._asked.manifest)
        grown = self._asked.measure.messages(messages[self._first :])
        used = self._used(messages)
        block: dict[str, Any] = {
            "id": "steps",
            "kind": "history",
            "label": "this turn so far",
            "tokens": grown,
            "included": "truncated" if truncated else "full",
            "gate": "this-turn",
        }
        self._turn.window = {"used": used, "budget": self._asked.budget.total}
        blocks = [*manifest["blocks"], block]
        if truncated:
            others = sum(
                one["tokens"] for one in blocks if one["included"] != "dropped" and one["kind"] != "history"
            )
            blocks = [one for one in blocks if one["kind"] != "history"]
            blocks.append(
                {**block, "label": "the chat and this turn so far", "tokens": max(0, used - others)}
            )
        await self._turn.note("context.assembled", {**manifest, "used": used, "blocks": blocks})


def _next_prompt(messages: list[Message], start: int, end: int) -> int | None:
    """Where the second prompt of the history begins: before it a whole turn can be left out."""
    for place in range(start + 1, end):
        if isinstance(messages[place], UserMessage) and not isinstance(messages[place - 1], UserMessage):
            return place
    return None


def _too_full(needed: int, total: int) -> Failure:
    return Failure(
        "context_budget",
        f"This turn needs about {needed} tokens and the model's window has room for {total}",
        action="compact",
        hint="Ask for less at once, or choose a model with a larger window",
        facts={"needed": needed, "available": total},
    )
