"""Where a phrase is in a sentence: the syntax of the lists, and the words by which phrases are found."""

from __future__ import annotations

import pytest

from sidecar.context.phrases.patterns import PhrasePattern, phrase_book


@pytest.mark.parametrize(
    ("phrase", "sentence", "found"),
    [
        ("use .. instead", "use the blue one instead", "use the blue one instead"),
        ("use .. instead", "use this or that or those others instead", None),
        ("darf kein*", "es darf keine sein", "darf keine"),
        ("always *ing", "you are always re-reading it", "always re-reading"),
        ("^switch to", "fine, please switch to uv", " please switch to"),
        ("^switch to", "we did not switch to uv", None),
        ("n't work", "it doesn't work", "n't work"),
        ("never", "nevertheless", None),
        ("限制:", "新的限制:五个", "限制:"),
        ("用 .. 代替", "请用这个代替", "用这个代替"),
    ],
)
def test_a_phrase_is_found_where_it_is(phrase: str, sentence: str, found: str | None) -> None:
    book = phrase_book([PhrasePattern("it", phrase)])
    matches = [match.group() for one in book.near(sentence) if (match := one.expression.search(sentence))]
    assert matches == ([] if found is None else [found])
