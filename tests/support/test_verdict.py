"""The verdict notices a loss: each journal here lacks or alters something that was seen."""

from __future__ import annotations

import pytest

from tests.support.verdict import broken_rules, losses
from tests.support.wire import Json


def event(seq: int, type: str, **data: str) -> Json:
    head = {"sessionId": "s", "chatId": "c", "epoch": "e", "seq": seq, "ts": 1, "turnId": "t"}
    return {**head, "type": type, "data": data}


SEEN = [event(1, "turn.started"), event(2, "message.delta", itemId="m", text="ab"), event(3, "turn.ended")]
ALTERED = [SEEN[0], event(2, "message.delta", itemId="m", text="ax"), SEEN[2]]


def test_a_whole_journal_has_no_losses() -> None:
    assert (losses({"s": SEEN}, {"s": SEEN}), broken_rules("s", SEEN)) == ([], [])


@pytest.mark.parametrize("journal", [SEEN[1:], SEEN[:2], ALTERED, [SEEN[0], {**SEEN[2], "seq": 2}]])
def test_a_loss_is_noticed(journal: list[Json]) -> None:
    assert losses({"s": SEEN}, {"s": journal})


@pytest.mark.parametrize("journal", [[SEEN[0], SEEN[2]], SEEN[:1], [*SEEN, event(4, "turn.ended")]])
def test_a_broken_rule_is_noticed(journal: list[Json]) -> None:
    assert broken_rules("s", journal)
