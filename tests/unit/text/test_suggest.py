"""What a misspelled name was probably meant to be."""

from __future__ import annotations

from difflib import SequenceMatcher

import pytest

from sidecar.text.suggest import MAX_COMPARED, did_you_mean

KNOWN = ["chat/open", "chat/list", "prompt/send", "files/open", "ping"]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("chat/opn", ["chat/open"]),
        ("promptsend", ["prompt/send"]),
        ("pnig", ["ping"]),
        ("file/open", ["files/open"]),
        ("chatlist", ["chat/list"]),
        ("zzz", []),
        ("", []),
    ],
)
def test_the_nearest_name_is_suggested_or_none(name: str, meant: list[str]) -> None:
    assert did_you_mean(name, KNOWN) == meant


def test_several_are_suggested_the_nearest_first() -> None:
    assert did_you_mean("chat/oist", KNOWN, count=2) == ["chat/list", "chat/open"]


def test_a_higher_similarity_suggests_less() -> None:
    assert did_you_mean("max_stepz", ["max_bytes"]) == ["max_bytes"]
    assert did_you_mean("max_stepz", ["max_bytes"], similarity=0.75) == []


def test_only_the_start_of_a_long_name_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []
    set_seq2 = SequenceMatcher.set_seq2

    def measured(self: SequenceMatcher[str], b: str) -> None:
        compared.append(len(b))
        set_seq2(self, b)

    monkeypatch.setattr(SequenceMatcher, "set_seq2", measured)

    assert did_you_mean("ping" * 1_000_000, KNOWN) == []
    assert max(compared) == MAX_COMPARED
