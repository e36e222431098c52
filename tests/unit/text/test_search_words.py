"""The words of messages: folded, in parts, and where they are in the text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.text.search_words import find_matches, parse_terms, part_words, snippet


def found(text: str, query: str, *, inside: bool = False) -> list[str] | None:
    matches = find_matches(text, parse_terms(query), inside=inside)
    return None if matches is None else [text[start:end] for start, end in matches]


@pytest.mark.parametrize(
    ("text", "query", "matches"),
    [
        ("the alphabet and Alpha", "alph", ["alph", "Alph"]),
        ("call getUserName now", "username", ["UserName"]),
        ("HTTPServer2 is up", "server", ["Server"]),
        ("snake_case_name", "case", ["case"]),
        ("a.dotted.name", "dotted.na", ["dotted.na"]),
        ("東京都庁に行く", "都庁", ["都庁"]),
        ("东京", "东", ["东"]),
        ("使用GPT模型", "gpt", ["GPT"]),
        ("使用GPT模型", "GPT模型", ["GPT模型"]),
        ("ｶﾞﾗｽとＡＢＣ", "ガラス abc", ["ｶﾞﾗｽ", "ＡＢＣ"]),
        ("ガラス", "ｶﾞﾗｽ", ["ガラス"]),
        ("웹서버를 껐다", "서버", ["서버"]),
        ("ฉันกินข้าว", "กิน", ["กิน"]),
        ("Cafe\u0301 Straße", "café STRASSE", ["Cafe\u0301", "Straße"]),
        ("🎈 über 🎈", "uber", ["über"]),
        ('say "yes no" now', '"yes no"', ["yes no"]),
        ("yes, not now", '"yes no"', None),
        ("concatenate", "cat", None),
    ],
)
def test_words_are_found_where_they_are(text: str, query: str, matches: list[str] | None) -> None:
    assert found(text, query) == matches


def test_words_inside_others_are_found_on_demand() -> None:
    assert found("concatenate", "cat", inside=True) == ["cat"]


def test_plain_prose_adds_nothing_to_the_index() -> None:
    assert (
        part_words("The quick brown fox, 2 foxes; snake_case and dotted.names are words of their own.") == ""
    )
    assert part_words("A" + "bC1" * 200) == ""


def test_parts_of_identifiers_and_pairs_of_characters_are_indexed() -> None:
    assert set(part_words("getUserName v2").split()) == {"username", "name", "2"}
    assert set(part_words("東京都").split()) == {"東京", "京都", "都"}


@given(st.text(), st.text())
def test_any_text_and_any_query_work_and_matches_are_inside_the_snippet(text: str, query: str) -> None:
    part_words(text)
    matches = find_matches(text, parse_terms(query), inside=True)
    shown, places, start = snippet(text, matches or [])
    body = shown.removeprefix("…") if start else shown
    assert text[start:].startswith(body.removesuffix("…")) or text[start:].startswith(body)
    assert all(0 <= one < other <= len(shown) for one, other in places)
    assert not matches or places
