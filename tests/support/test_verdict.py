"""The verdict notices a loss: each journal here lacks or alters something that was seen."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.verdict import journal_violations, missing_events
from tests.support.wire import Json


def event(seq: int, type: str, **data: Any) -> Json:
    head = {"sessionId": "s", "chatId": "c", "epoch": "e", "seq": seq, "ts": 1, "turnId": "t"}
    return {**head, "type": type, "data": data}


ENDED = {"reason": "end_turn", "usage": {}}
SEEN = [
    event(1, "turn.started", promptId="p", model="echo:", engine="native"),
    event(2, "message.delta", itemId="m", text="ab"),
    event(3, "turn.ended", **ENDED),
]
ALTERED = [SEEN[0], event(2, "message.delta", itemId="m", text="ax"), SEEN[2]]


def test_a_whole_journal_has_no_losses() -> None:
    assert (missing_events({"s": SEEN}, {"s": SEEN}), journal_violations("s", SEEN)) == ([], [])


@pytest.mark.parametrize("journal", [SEEN[1:], SEEN[:2], ALTERED, [SEEN[0], {**SEEN[2], "seq": 2}]])
def test_a_loss_is_noticed(journal: list[Json]) -> None:
    assert missing_events({"s": SEEN}, {"s": journal})


@pytest.mark.parametrize("journal", [[SEEN[0], SEEN[2]], SEEN[:1], [*SEEN, event(4, "turn.ended", **ENDED)]])
def test_a_broken_rule_is_noticed(journal: list[Json]) -> None:
    assert journal_violations("s", journal)
