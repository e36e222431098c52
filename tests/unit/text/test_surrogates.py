"""Halves of surrogate pairs: joined where both are there, replaced where not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.text.surrogates import is_well_formed, well_formed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("\ud83d\ude00", "😀"),
        ("a\ud83d", "a\ufffd"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("caf\udce9.txt", "caf\ufffd.txt"),
    ],
)
def test_halves_are_joined_or_replaced(text: str, expected: str) -> None:
    assert well_formed(text) == expected


@given(st.text(st.characters(), max_size=20))
def test_any_text_becomes_well_formed(text: str) -> None:
    assert is_well_formed(well_formed(text))
    assert is_well_formed(text) is (well_formed(text) == text)
