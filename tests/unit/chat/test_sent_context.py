"""Why the text of what a turn was sent is missing."""

from __future__ import annotations

import pytest

from sidecar.chat.actions.sent_context import why_texts_are_gone
from sidecar.model.sent import StoredRequest
from sidecar.system.clock import DAY_MS, now


@pytest.mark.parametrize(
    ("texts", "age", "days", "expected"),
    [
        (["a", ""], 100, 90, None),
        (["a", None], 0, 90, "damaged"),
        (None, 91, 90, "expired"),
        (None, 89, 90, "not_stored"),
        (None, 91, 0, "not_stored"),
    ],
)
def test_the_answer_says_why_texts_are_gone(
    texts: list[str | None] | None, age: int, days: int, expected: str | None
) -> None:
    stored = StoredRequest({}, texts, 1, 1, now() - age * DAY_MS)
    assert why_texts_are_gone(stored, days) == expected
