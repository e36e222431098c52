"""Which sentences of a user hold for what comes later: in six languages, and what only looks like it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.context import standing as module
from sidecar.context.standing import collect_standing_instructions, find_standing, find_standing_instructions

PHRASES = [
    phrase
    for book in module._books()
    for phrases in (*book.by_word.values(), *book.anywhere.values())
    for phrase in phrases
]


def _words(text: str) -> int:
    return len(text.split())


@pytest.mark.parametrize(
    "sentence",
    [
        "Always include version numbers when I ask about libraries.",
        "Please always answer in British English.",
        "Never use emojis.",
        "From now on, write all code in Rust.",
        "Going forward, keep it short.",
        "When I ask about dates, use the ISO format.",
        "If the tests fail, never change the tests.",
        "For recipes, always use grams.",
        "Can you always show the units?",
        "Please use tabs.",
        "Don't use semicolons.",
        "Remember to run the linter first.",
        "Call me Sam.",
        "Keep your answers under 100 words.",
        "Usa siempre el sistema métrico.",
        "A partir de ahora, responde en español.",
        "Nunca uses jerga.",
        "Antworte immer auf Deutsch.",
        "Ab jetzt bitte ohne Fremdwörter.",
        "Bitte verwende keine Abkürzungen.",
        "Réponds toujours en français.",
        "Désormais, utilise le système métrique.",
        "N'utilise jamais de jargon.",
        "请始终用中文回答。",
        "从现在起，代码都要写注释。",
        "不要使用缩写。",
        "今後は日本語で答えてください。",
        "必ず出典を書いてください。",
    ],
)
def test_an_instruction_is_kept_whole(sentence: str) -> None:
    assert [(one.text, one.kind) for one in find_standing_instructions(sentence)] == [
        (sentence, "instruction")
    ]


@pytest.mark.parametrize(
    "sentence",
    [
        "I prefer short answers with an example.",
        "I'm planning a trip, and I’d rather travel by train, can you help?",
        "My preference is the metric system.",
        "Prefiero respuestas cortas.",
        "Ich bevorzuge kurze Antworten.",
        "Je préfère les réponses courtes.",
        "我更喜欢简短的回答。",
        "短い答えの方が好きです。",
    ],
)
def test_a_preference_is_kept_whole(sentence: str) -> None:
    assert [(one.text, one.kind) for one in find_standing_instructions(sentence)] == [
        (sentence, "preference")
    ]


@pytest.mark.parametrize(
    "sentence",
    [
        "I've never been to Lisbon.",
        "I always forget the milk.",
        "My brother, always being late, missed it.",
        "Never mind, it works now.",
        "Never heard of it.",
        "Always a pleasure!",
        "Should I always use a lock here?",
        "Is it true that you should never cross the streams?",
        "How can I prioritize my edits?",
        "Would I prefer the red one?",
        "Whenever I feel down I go running.",
        "Remember that time in Rome?",
        "What keeps you going forward?",
        "Siempre he vivido aquí.",
        "Das geht immer noch nicht.",
        "Immer noch nichts.",
        "Il pleut toujours.",
        "我以前去过北京。",
        "いつもありがとうございます。",
        "```\n# always use this\nnever = 1\n```",
        "",
        "always " + "x" * 5000,
    ],
)
def test_what_only_looks_like_it_is_left(sentence: str) -> None:
    assert find_standing(sentence) == []


def test_only_the_sentence_that_stands_is_taken() -> None:
    text = "Thanks, that works!\n- Always cite the source.\nNow look at ```always = 1``` again. I prefer tables. Bye."
    assert find_standing(text) == ["Always cite the source.", "I prefer tables."]


def test_the_newer_of_two_that_contradict_holds() -> None:
    said = ["Always write dates as day-month-year.", "Fine.", "Always write dates as year-month-day."]
    assert collect_standing_instructions(said, _words, 100) == ["Always write dates as year-month-day."]


def test_what_is_repeated_is_kept_once() -> None:
    assert collect_standing_instructions(["Never use emojis.", "never use EMOJIS!"], _words, 100) == [
        "never use EMOJIS!"
    ]


def test_instructions_go_before_preferences_and_newer_before_older() -> None:
    said = [
        "Never use emojis.",
        "I prefer green tea with lemon.",
        "Always cite the source.",
        "I prefer trains.",
    ]
    assert collect_standing_instructions(said, _words, 100) == said
    assert collect_standing_instructions(said, _words, 11) == [
        "Never use emojis.",
        "Always cite the source.",
        "I prefer trains.",
    ]
    assert collect_standing_instructions(said, _words, 4) == ["Always cite the source."]
    assert collect_standing_instructions(said, _words, 0) == []


@given(
    st.lists(st.sampled_from([*(one.text for one in PHRASES), "x", "the tests", "?"]), max_size=6).map(
        " ".join
    )
)
def test_phrases_that_a_sentence_does_not_hold_decide_nothing(sentence: str) -> None:
    near = {phrase for book in module._books() for phrase in book.near(sentence)}
    assert not any(phrase.expression.search(sentence) for phrase in PHRASES if phrase not in near)
