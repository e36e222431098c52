"""No count is below the encoder's, counts are kept within bounds, and a cut keeps what fits and no less."""

from __future__ import annotations

import functools
import itertools
import random
import sys
import threading
import tracemalloc

import pytest
import regex  # type: ignore[import-untyped]
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sidecar.context.tokens import counting, encodings, ranks
from sidecar.context.tokens.counting import KeepEnd, TokenCounter
from sidecar.context.tokens.encodings import O200K, TABLES
from sidecar.context.tokens.families import UNKNOWN, TokenizerFamily, family_of
from sidecar.context.tokens.lookup import LookupEncoder
from sidecar.context.tokens.pieces import CUT_TOKENS, MAX_RUN, pieces
from sidecar.text.surrogates import well_formed

GPT = family_of("gpt-4o")
OLD_GPT = family_of("gpt-4")
CLAUDE = family_of("claude-sonnet-5")
EXACT = st.sampled_from([GPT, OLD_GPT])
ANY_FAMILY = st.sampled_from([GPT, OLD_GPT, CLAUDE, UNKNOWN])

WORDS = st.sampled_from(
    [
        "don't",
        "WE'LL",
        "it'ſ",
        " ",
        "  ",
        "\t",
        "\n",
        "\r\n",
        "1234",
        "½",
        "/",
        "://",
        "...",
        "Ünï",
        "العربية",
        "中文",
    ]
)
ANY_TEXT = st.one_of(
    st.text(st.characters(exclude_categories=()), max_size=80),
    st.lists(WORDS | st.characters(exclude_categories=()), max_size=40).map("".join),
)
"""Lone surrogates included."""
# Of a character that Unicode assigns later, two libraries may believe different things.
ASSIGNED = st.lists(WORDS | st.characters(exclude_categories=["Cn"]), max_size=40).map("".join)
LINES = st.lists(ANY_TEXT, max_size=12).map("\n".join)
SIDES: st.SearchStrategy[KeepEnd] = st.sampled_from(["head", "tail"])

UNITS = [
    "a",
    "A",
    " ",
    "!",
    "\n",
    "\n/",
    "中",
    "\u0301",
    "0",
    "\U000e0fff",
    "aA",
    "\x1c!",
    "ab'S",
    " \t\n",
    "é",
]
"""What a long run may be made of."""

unhurried = settings(deadline=None)
"""The first example may load a table."""


@pytest.mark.parametrize(
    ("text", "o200k", "cl100k"),
    [
        ("", 0, 0),
        ("hello world", 2, 2),
        ("tiktoken is great!", 6, 6),
        ("antidisestablishmentarianism", 6, 6),
        ("2 + 2 = 4", 7, 7),
        ("お誕生日おめでとう", 8, 9),
        ("<|endoftext|>", 7, 7),
        ("\ud800", 1, 1),
        ("\ud83d\ude00", 1, 2),
    ],
)
def test_known_texts_have_their_known_counts(text: str, o200k: int, cl100k: int) -> None:
    counter = TokenCounter()
    assert (counter.count(text, GPT), counter.count(text, OLD_GPT)) == (o200k, cl100k)


@unhurried
@given(ASSIGNED, EXACT)
@example("a\ud83d\ude00b\udc00<|endofprompt|>", GPT)
def test_a_text_counts_what_plain_byte_pair_merging_gives(text: str, family: TokenizerFamily) -> None:
    assert TokenCounter().count(text, family) == len(merged_by_hand(well_formed(text), family.encoding))


@unhurried
@given(ANY_TEXT, st.sampled_from([*TABLES]))
@example("it\u017f we'LL\r\n\n  x\u00ad", O200K)
def test_a_table_on_disk_splits_a_text_as_the_encoder_does(text: str, name: str) -> None:
    encoder, text = encodings.encoding(name), well_formed(text)
    assert on_disk(name).split(text) == encoder.decode_tokens_bytes(encoder.encode_ordinary(text))


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_a_table_on_disk_splits_every_character_as_the_encoder_does(name: str) -> None:
    encoder, lookup = encodings.encoding(name), on_disk(name)
    for number in itertools.chain(range(0xD800), range(0xE000, sys.maxunicode + 1), [0]):
        text = f"a{chr(number)}b {chr(number) * 2} 1{chr(number)}"
        assert lookup.split(text) == encoder.decode_tokens_bytes(encoder.encode_ordinary(text)), hex(number)


@functools.cache
def on_disk(name: str) -> LookupEncoder:
    return LookupEncoder(ranks.open_table(encodings.path_of(name)), TABLES[name].pattern)


def merged_by_hand(text: str, name: str) -> list[bytes]:
    """Byte-pair encoding as it is defined, slow and plain: join the neighbours of lowest rank until none join."""
    table = table_of(name)
    tokens: list[bytes] = []
    for piece in regex.findall(TABLES[name].pattern, text):
        parts = [bytes([byte]) for byte in piece.encode()]
        while len(parts) > 1:
            joined = [table.get(a + b, len(table)) for a, b in itertools.pairwise(parts)]
            lowest = min(joined)
            if lowest == len(table):
                break
            at = joined.index(lowest)
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        tokens.extend(parts)
    return tokens


@functools.cache
def table_of(name: str) -> dict[bytes, int]:
    return ranks.open_table(encodings.path_of(name)).read_all()


@pytest.mark.parametrize("unit", UNITS)
def test_no_piece_of_a_long_run_is_long(unit: str) -> None:
    text = "!" + unit * (100 * MAX_RUN // len(unit))
    parts = pieces(text)

    assert "".join(parts) == text
    assert max(map(len, parts)) < 5 * MAX_RUN


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("family", [GPT, OLD_GPT], ids=["o200k", "cl100k"])
def test_a_long_run_counts_at_least_its_tokens_and_little_more(unit: str, family: TokenizerFamily) -> None:
    text = "see " + unit * (20 * MAX_RUN // len(unit)) + " end"
    tokens = len(encodings.encoding(family.encoding).encode_ordinary(text))

    counted = TokenCounter().count(text, family)
    assert tokens <= counted <= tokens + 21 * (CUT_TOKENS + 3)


@pytest.mark.parametrize("unit", [" ", "a", "\n"])
def test_a_million_of_one_character_are_counted(unit: str) -> None:
    assert TokenCounter().count(unit * 1_000_000, GPT) > 1_000_000 // 128


@unhurried
@given(st.data(), st.sampled_from(UNITS), st.integers(1, 2 * MAX_RUN), EXACT)
def test_a_run_cut_anywhere_counts_at_least_its_tokens(
    data: st.DataObject, unit: str, ahead: int, family: TokenizerFamily
) -> None:
    text = data.draw(st.text(max_size=20)) + "x" * ahead + (unit + data.draw(st.text(max_size=9))) * MAX_RUN
    tokens = len(encodings.encoding(family.encoding).encode_ordinary(text))
    assert TokenCounter().count(text, family) >= tokens


def test_common_text_is_not_cut() -> None:
    prose = "A line of common words, none of them long.\n" * 2000
    code = "    return self._text.rfind(needle, 0, size) + 1\n" * 2000
    assert [len(pieces(text)) for text in (prose, code, prose * 3, "")] == [1, 1, 1, 1]


def test_cuts_that_cost_nothing_would_count_too_little(monkeypatch: pytest.MonkeyPatch) -> None:
    letters = random.Random(1)
    texts = ["".join(letters.choices("abcdefgh", k=MAX_RUN + 9)) for _ in range(300)]
    tokens = [len(encodings.encoding(O200K).encode_ordinary(text)) for text in texts]

    assert not any(TokenCounter().count(text, GPT) < n for text, n in zip(texts, tokens, strict=True))
    monkeypatch.setattr(counting, "CUT_TOKENS", 0)
    assert any(TokenCounter().count(text, GPT) < n for text, n in zip(texts, tokens, strict=True))


def test_a_text_is_encoded_once_for_all_families_that_share_its_encoding() -> None:
    counter = TokenCounter()
    for family in (GPT, CLAUDE, UNKNOWN, GPT):
        counter.count("the same block", family)
    assert (counter.encoded, len(counter)) == (len("the same block"), 1)
    counter.count("the same block", OLD_GPT)
    assert (counter.encoded, len(counter)) == (2 * len("the same block"), 2)


def test_the_cache_forgets_what_was_not_asked_for_longest() -> None:
    counter = TokenCounter(cache_bytes=1000)  # three counts
    for text in ("first", "second", "third", "first", "fourth"):
        counter.count(text, GPT)
    encoded = counter.encoded

    counter.count("first", GPT)
    assert (counter.encoded, len(counter)) == (encoded, 3)
    counter.count("second", GPT)
    assert counter.encoded == encoded + len("second")


def test_the_cache_stays_within_its_bytes_however_long_the_texts() -> None:
    limit = 1 << 20
    counter = TokenCounter(cache_bytes=limit)
    counter.count("warm", GPT)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(5000):
            counter.count(f"{number} " * 50, GPT)
        held = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert limit // 3 < held < limit


def test_threads_that_count_the_same_texts_agree() -> None:
    counter, texts = TokenCounter(cache_bytes=3000), [f"block {number} of a chat" for number in range(40)]
    expected = [len(encodings.encoding(O200K).encode_ordinary(text)) for text in texts]
    found: list[list[int]] = []

    def work() -> None:
        found.append([counter.count(text, GPT) for _ in range(20) for text in texts])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected * 20] * 4


@unhurried
@given(LINES, st.integers(-2, 120), ANY_FAMILY, SIDES)
@example("👩🏽‍🚀" * 9, 7, GPT, "tail")
@example("a\n" + "b" * 300, 5, GPT, "head")
@example("a" * 3 * MAX_RUN, 300, CLAUDE, "tail")
@example(
    "é the\u200d\r\n\n\nwe'lldon't  WORDSabbc123\r\n", 9, GPT, "tail"
)  # its last nine tokens alone are ten
@example("    123};\n\n/:// é", 3, GPT, "tail")  # what fits has fewer tokens than its whole lines
def test_a_cut_fits_and_is_one_end_of_the_text(
    text: str, room: int, family: TokenizerFamily, keep: KeepEnd
) -> None:
    kept, whole = TokenCounter().cut(text, room, family, keep), well_formed(text)

    assert whole.startswith(kept) if keep == "head" else whole.endswith(kept)
    assert TokenCounter().count(kept, family) <= max(0, room)


@unhurried
@given(LINES, st.integers(0, 120), ANY_FAMILY, SIDES)
@example("one\ntwo\n\n\n\n\n\nthree\nfour", 4, GPT, "tail")
@example("\n" * 300, 2, GPT, "head")
@example("0\n0\n0\n\r\n\n", 8, UNKNOWN, "head")  # one code point more is too many, one line more is not
@example("0\n0\n0\n\r\n\n", 6, GPT, "head")
def test_one_more_line_or_code_point_would_be_too_many(
    text: str, room: int, family: TokenizerFamily, keep: KeepEnd
) -> None:
    kept, whole = TokenCounter().cut(text, room, family, keep), well_formed(text)
    if kept == whole:
        return
    left = whole[len(kept) :] if keep == "head" else whole[: len(whole) - len(kept)]
    more = kept + next_of(left, kept) if keep == "head" else previous_of(left, kept) + kept
    assert TokenCounter().count(more, family) > room


JOINED = [
    ("0\n0\n0\n\r\n\n", 8, UNKNOWN, "head"),
    ("0\n0\n0\n\r\n\n", 6, GPT, "head"),
    ("a\n1\n\r\n\n", 4, GPT, "head"),
    ("0\n0\n0\n\r\n\n", 10, CLAUDE, "head"),
]


def test_a_cut_that_looks_no_further_than_code_points_keeps_too_little(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = [TokenCounter().cut(*case) for case in JOINED]  # type: ignore[arg-type]
    monkeypatch.setattr(counting._Cutter, "_with_lines_that_fit", lambda self, whole, size: whole)
    short = [TokenCounter().cut(*case) for case in JOINED]  # type: ignore[arg-type]
    assert [len(a) > len(b) for a, b in zip(whole, short, strict=True)] == [True] * len(JOINED)


def next_of(left: str, kept: str) -> str:
    """The line after what was kept, where that ends with a line; else a code point."""
    return left.partition("\n")[0] + "\n" * ("\n" in left) if kept.endswith("\n") else left[0]


def previous_of(left: str, kept: str) -> str:
    if kept and left.endswith("\n"):
        return left[left.rfind("\n", 0, -1) + 1 :]
    return left[-1]


@pytest.mark.parametrize("keep", ["head", "tail"])
def test_a_cut_falls_between_lines_unless_one_line_takes_most_of_the_room(keep: KeepEnd) -> None:
    counter = TokenCounter()
    lines = [f"line {number} of a file" for number in range(100)]
    kept = counter.cut("\n".join(lines), 100, GPT, keep).strip("\n").split("\n")
    assert kept == (lines[: len(kept)] if keep == "head" else lines[-len(kept) :])
    assert 10 < len(kept) < 20

    long = "short\n" + "word " * 1000 + "\nshort"
    assert counter.count(counter.cut(long, 100, GPT, keep), GPT) == 100


def test_a_cut_of_a_long_text_encodes_little_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def watched(text: str) -> list[str]:
        seen.append(len(text))
        return pieces(text)

    monkeypatch.setattr(counting, "pieces", watched)
    text = "some words of a very long log\n" * 100_000

    heads = TokenCounter().cut(text, 1000, GPT, "head")
    tails = TokenCounter().cut(text, 1000, GPT, "tail")
    assert heads == tails == "some words of a very long log\n" * (1000 // 8)
    assert sum(seen) < 60_000


@pytest.mark.sampled(1)
@pytest.mark.parametrize("keep", ["head", "tail"])
def test_a_cut_inside_a_long_run_looks_a_few_times_only(
    keep: KeepEnd, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def watched(text: str) -> list[str]:
        seen.append(len(text))
        return pieces(text)

    monkeypatch.setattr(counting, "pieces", watched)
    kept = TokenCounter().cut("a" * 500_000, 16_000, GPT, keep)
    assert len(seen) < 40
    assert TokenCounter().count(kept, GPT) == 16_000
