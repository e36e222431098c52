"""Text for comparison: what differs after folding, and what does not."""

from __future__ import annotations

import pytest

from sidecar.text.folding import fold_case, fold_text, remove_accents


@pytest.mark.parametrize(
    ("text", "folded", "plain", "case"),
    [
        ("ABC", "abc", "abc", "abc"),
        ("Jamás", "jamas", "jamas", "jamás"),
        ("don’t", "don't", "don’t", "don’t"),
        ("Straße", "strasse", "straße", "strasse"),
        ("ά", "ά", "α", "ά"),
        ("ＡＢ", "ab", "ab", "ab"),
    ],
)
def test_each_folding_removes_what_its_readers_omit(text: str, folded: str, plain: str, case: str) -> None:
    assert (fold_text(text), remove_accents(text), fold_case(text)) == (folded, plain, case)
