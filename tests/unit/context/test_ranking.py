"""What of a chat's past a prompt gets back: the terms it is searched by, the order, and what is packed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from sidecar.context.retrieval import Scored, Snippet, pack_snippets, rank_messages, render_snippets, terms_of
from sidecar.context.retrieval.dates import named_dates
from sidecar.context.retrieval.packing import best_part
from sidecar.model.recall import MessageCandidate, MessagePool
from sidecar.system.clock import DAY_MS

START = 1_683_504_000_000
"""8 May 2023, a Monday."""


def _said(at: int, text: str, words: str = "", **more: Any) -> MessageCandidate:
    known = {"role": "user", "name": None, "ts": START + at * 60_000, **more}
    return MessageCandidate(at, f"t{at}", at, text=text, words=frozenset(words.split()), **known)


def _pool(*candidates: MessageCandidate, total: int = 400, **frequency: int) -> MessagePool:
    held = {word for one in candidates for word in one.words | one.letters}
    counts = {word: frequency.get(word, 3) for word in held}
    return MessagePool(candidates, counts, total, max(one.ts for one in candidates))


def _order(prompt: str, pool: MessagePool, **more: Any) -> list[str]:
    return [one.candidate.text for one in rank_messages(prompt, pool, **more)]


# The terms


def test_words_that_say_nothing_are_left_out() -> None:
    assert set(terms_of("Where did I put the spare keys of the boat?").words) == {
        "put",
        "spare",
        "keys",
        "boat",
    }


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ("¿Dónde dejé las llaves del barco?", {"dejé", "llaves", "barco"}),
        ("Wo habe ich die Schlüssel für das Boot?", {"schlüssel", "boot"}),
        ("Où sont les clés du bateau ?", {"clés", "bateau"}),
        ("Will the plants die without water?", {"plants", "die", "without", "water"}),
    ],
)
def test_stop_words_are_those_of_the_prompts_language(prompt: str, words: set[str]) -> None:
    assert set(terms_of(prompt).words) == words


def test_words_about_asking_weigh_less() -> None:
    words = terms_of("Summarize what I mentioned about the glacier").words
    assert words["glacier"] == 1.0
    assert words["mentioned"] < 0.5 > words["summarize"]


def test_numbers_and_names_of_a_long_prompt_are_kept() -> None:
    prompt = " ".join(f"ordinary{chr(97 + at)} thing" for at in range(26)) + " Katarzyna 4711"
    assert {"katarzyna", "4711"} <= terms_of(prompt).words.keys()
    assert len(terms_of(prompt).words) == 24


def test_scripts_without_blanks_give_pairs_and_triples() -> None:
    terms = terms_of("我喜欢什么颜色")
    assert "颜色" in terms.pairs
    assert "什么" not in terms.pairs
    assert all(len(triple) == 3 for triple in terms.triples)


def test_a_term_holds_nothing_but_letters_and_digits() -> None:
    drawn = random.Random(5)
    alphabet = "aZ9éß_-*\"'():^+{}\\\0\n .東京たい\u0301🙂\ud800\U0001e900"
    for _ in range(300):
        terms = terms_of("".join(drawn.choices(alphabet, k=40)))
        assert all(term.isalnum() for term in (*terms.words, *terms.pairs, *terms.triples))


# The order


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    pool = _pool(_said(1, "about the trip", "trip"), _said(50, "about the ferry", "ferry"), trip=200, ferry=2)
    assert _order("trip ferry", pool)[0] == "about the ferry"


def test_the_user_comes_before_a_long_answer() -> None:
    answer = _said(1, "The ferry. " + "It leaves daily. " * 60, "ferry", role="assistant")
    pool = _pool(answer, _said(50, "Our ferry leaves at nine", "ferry"))
    assert _order("ferry", pool)[0] == "Our ferry leaves at nine"


def test_a_short_answer_is_as_good_as_the_users_words() -> None:
    one = rank_messages("ferry", _pool(_said(1, "The ferry leaves at nine", "ferry", role="assistant")))
    other = rank_messages("ferry", _pool(_said(1, "The ferry leaves at nine", "ferry")))
    assert one[0].score == other[0].score


def test_the_neighbour_of_a_hit_comes_before_a_stranger() -> None:
    far = _said(90, "nobody asked for this")
    pool = _pool(_said(1, "When does the ferry leave?", "ferry"), _said(2, "At nine, every morning."), far)
    assert _order("ferry", pool)[:2] == ["When does the ferry leave?", "At nine, every morning."]


def test_a_silence_of_hours_parts_neighbours() -> None:
    pool = _pool(
        _said(1, "When does the ferry leave?", "ferry"),
        _said(2, "At nine, every morning."),
        _said(3, "Another day, another thing.", ts=START + 2 * DAY_MS),
    )
    scores = {one.candidate.id: one.score for one in rank_messages("ferry", pool)}
    assert scores[2] > scores[3]


def test_the_named_speaker_comes_first() -> None:
    pool = _pool(
        _said(1, "I bought a red kayak", "kayak", name="Ada"),
        _said(40, "I bought a blue kayak", "kayak", name="Ben"),
    )
    assert _order("Which kayak did Ben buy?", pool)[0] == "I bought a blue kayak"
    assert _order("Which kayak did Ada buy?", pool)[0] == "I bought a red kayak"


def test_the_named_day_comes_first() -> None:
    pool = _pool(
        _said(1, "We rowed the kayak north", "kayak"),
        _said(40, "We rowed the kayak south", "kayak", ts=START + 60 * DAY_MS),
    )
    assert _order("Where did the kayak go in May?", pool)[0].endswith("north")
    assert _order("Where did the kayak go on 7 July 2023?", pool)[0].endswith("south")


def test_a_word_found_by_its_letters_counts_though_less() -> None:
    by_word, by_letters = _said(1, "Katarzyna called", "katarzyna"), _said(50, "Katarzina called")
    by_letters = MessageCandidate(
        50, "t50", 50, "user", None, START, "Katarzina called", letters=frozenset(["katarzyna"])
    )
    pool = _pool(by_word, by_letters, _said(99, "Nothing of the kind"))
    assert _order("katarzyna", pool) == ["Katarzyna called", "Katarzina called", "Nothing of the kind"]


def test_turns_that_are_sent_anyway_do_not_come_twice() -> None:
    pool = _pool(_said(1, "ferry one", "ferry"), _said(2, "ferry two", "ferry"))
    assert _order("ferry", pool, without=frozenset(["t2"])) == ["ferry one"]


def test_nothing_found_is_nothing_ranked() -> None:
    assert rank_messages("ferry", MessagePool()) == []


def test_the_same_past_gives_the_same_order() -> None:
    pool = _pool(*(_said(at, f"ferry number {at}", "ferry") for at in range(40)))
    assert rank_messages("ferry", pool) == rank_messages("ferry", pool)


# Days


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("what happened on 8 May 2023?", ["2023-05-08/2023-05-08"]),
        ("on May 8th, 2023", ["2023-05-08/2023-05-08"]),
        ("on the 8th of May", ["2023-05-08/2023-05-08"]),
        ("in March", ["2023-03-01/2023-03-31"]),
        ("in November", ["2022-11-01/2022-11-30"]),
        ("in February 2024", ["2024-02-01/2024-02-29"]),
        ("2023-05-08", ["2023-05-08/2023-05-08"]),
        ("yesterday", ["2023-06-14/2023-06-14"]),
        ("last week", ["2023-06-05/2023-06-11"]),
        ("last Tuesday", ["2023-06-13/2023-06-13"]),
        ("two weeks ago", ["2023-05-29/2023-06-04"]),
        ("3 days ago", ["2023-06-12/2023-06-12"]),
        ("el 8 de mayo", ["2023-05-08/2023-05-08"]),
        ("am 8. Mai 2023", ["2023-05-08/2023-05-08"]),
        ("vor zwei Wochen", ["2023-05-29/2023-06-04"]),
        ("le 8 mai", ["2023-05-08/2023-05-08"]),
        ("le mois dernier", ["2023-05-01/2023-05-31"]),
        ("2023年5月8日", ["2023-05-08/2023-05-08"]),
        ("上个月", ["2023-05-01/2023-05-31"]),
        ("昨日の話", ["2023-06-14/2023-06-14"]),
        ("may I march on?", []),
        ("version 2023-99-99 and 31 February", []),
        ("vor den Tagen, five little weeks", []),
    ],
)
def test_days_are_read_from_the_chats_end(prompt: str, expected: list[str]) -> None:
    newest = int(datetime(2023, 6, 15, 12, tzinfo=UTC).timestamp() * 1000)
    assert [f"{span.first}/{span.last}" for span in named_dates(prompt, newest)] == expected


@pytest.mark.parametrize("newest", [0, -(10**18), 10**18, START])
def test_no_moment_is_too_strange_for_a_day(newest: int) -> None:
    assert isinstance(named_dates("yesterday, 4000 months ago, last week, in May, 1 January", newest), list)


# The packing

Pack = Callable[[Sequence[Scored], Callable[[str], int], int], list[Snippet]]


def _quarter(text: str) -> int:
    return -(-len(text.encode(errors="replace")) // 4)


def _drawn(seed: int) -> list[Scored]:
    drawn = random.Random(seed)
    words = ["ferry", "Straße", "東京", "noon", "🙂", "harbour.", "wind\nand", "waves!"]
    scored = []
    for at in range(drawn.randint(0, 120)):
        text = " ".join(drawn.choices(words, k=drawn.choice((3, 12, 40, 300))))
        one = _said(at, text, "ferry", ts=START + drawn.randint(0, 9) * DAY_MS)
        scored.append(Scored(one, drawn.random()))
    return scored


def _overruns(pack: Pack, seeds: range) -> list[int]:
    """The seeds whose result is larger than its room."""
    bad = []
    for seed in seeds:
        room = random.Random(seed).choice((0, 5, 40, 300, 2000, 8000))
        if _quarter(render_snippets(pack(_drawn(seed), _quarter, room))) > room:
            bad.append(seed)
    return bad


def test_what_is_packed_never_takes_more_than_its_room() -> None:
    assert _overruns(pack_snippets, range(400)) == []


def test_a_packer_that_forgets_the_days_is_caught() -> None:
    def careless(scored: Sequence[Scored], count: Callable[[str], int], room: int) -> list[Snippet]:
        taken = []
        for one in scored:
            room -= count(one.candidate.text)
            if room >= 0:
                taken += pack_snippets([one], count, 10**6)
        return taken

    assert _overruns(careless, range(400))


def test_the_room_is_filled_when_there_is_more() -> None:
    filled = []
    for seed in range(200):
        scored = _drawn(seed)
        if sum(_quarter(one.candidate.text) for one in scored) > 4000:
            filled.append(_quarter(render_snippets(pack_snippets(scored, _quarter, 2000))) / 2000)
    assert len(filled) > 50
    assert min(filled) >= 0.97


def test_messages_are_whole_and_in_the_chats_order_under_their_days() -> None:
    scored = [
        Scored(_said(9, "At nine.", role="assistant", ts=START + DAY_MS), 0.9),
        Scored(_said(3, "When does\nthe ferry leave?", name="Ada"), 0.8),
    ]
    text = render_snippets(pack_snippets(scored, _quarter, 200))
    assert text == "2023-05-08:\nAda: When does\nthe ferry leave?\n2023-05-09:\nassistant: At nine."


def test_what_is_said_twice_is_sent_once() -> None:
    scored = [Scored(_said(at, "The ferry leaves at nine!"), 0.5) for at in range(5)]
    assert [snippet.id for snippet in pack_snippets(scored, _quarter, 500)] == [0]


def test_one_log_with_two_questions_behind_it_is_not_the_same_twice() -> None:
    log = "The ferry was late. " * 60
    scored = [Scored(_said(1, log + "Why?"), 0.5), Scored(_said(2, log + "Since when?"), 0.5)]
    assert [snippet.id for snippet in pack_snippets(scored, _quarter, 5000)] == [1, 2]


def test_what_is_hardly_needed_is_left_out() -> None:
    assert pack_snippets([Scored(_said(1, "Nothing of the kind"), 0.0001)], _quarter, 500) == []


def test_a_long_message_gives_the_part_that_was_asked_for() -> None:
    text = "First we talk of wind. " * 40 + "The ferry leaves at nine. " + "Then we talk of waves. " * 40
    (snippet,) = pack_snippets([Scored(_said(1, text, "ferry"), 0.9)], _quarter, 60)
    assert not snippet.whole
    assert "The ferry leaves at nine." in snippet.text
    assert snippet.text.startswith("… ")
    assert snippet.text.endswith(" …")


@pytest.mark.parametrize("text", ["", " ", "x" * 9000, "\n\n\n", "東京" * 3000, "a. " * 3000, "🙂" * 999])
def test_a_part_of_anything_fits(text: str) -> None:
    for room in (0, 1, 3, 20, 500):
        made = best_part(text, ["ferry", "東京"], _quarter, room)
        assert _quarter(made) <= room
        made.encode()


def test_the_same_order_is_packed_into_the_same_text() -> None:
    assert render_snippets(pack_snippets(_drawn(3), _quarter, 900)) == render_snippets(
        pack_snippets(_drawn(3), _quarter, 900)
    )
