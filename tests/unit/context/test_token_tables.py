"""The tables are the ones that tiktoken would download, and are loaded late, once, and without the network."""

from __future__ import annotations

import hashlib
import socket
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st
from tiktoken_ext import openai_public  # type: ignore[import-untyped]

from sidecar.context.tokens import build, encodings, ranks
from sidecar.context.tokens.counting import TokenCounter, is_ready, load
from sidecar.context.tokens.encodings import CL100K, O200K, TABLES
from sidecar.context.tokens.families import family_of

GPT = family_of("gpt-4o")
OLD_GPT = family_of("gpt-4")
SINGLES = [bytes([byte]) for byte in range(256)]


@pytest.mark.parametrize("name", TABLES)
def test_pattern_and_table_are_the_ones_that_tiktoken_would_download(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected: list[str] = []

    def no_download(url: str, expected_hash: str) -> dict[bytes, int]:
        expected.append(expected_hash)
        return {}

    monkeypatch.setattr(openai_public, "load_tiktoken_bpe", no_download)
    published: dict[str, Any] = openai_public.ENCODING_CONSTRUCTORS[name]()
    table = ranks.open_table(encodings.path_of(name)).read_all()

    assert TABLES[name].pattern == published["pat_str"]
    assert [hashlib.sha256(ranks.tiktoken_file(table)).hexdigest()] == expected == [TABLES[name].sha256]
    assert list(table.values()) == list(range(TABLES[name].tokens))


def test_both_tables_together_are_small_enough_to_ship() -> None:
    assert sum(encodings.path_of(name).stat().st_size for name in TABLES) < 4_000_000


@settings(deadline=None, max_examples=15)
@given(st.lists(st.tuples(st.integers(0), st.integers(0)), max_size=60), st.permutations(SINGLES))
def test_any_table_is_read_and_looked_up_as_it_was_packed(
    joins: list[tuple[int, int]], singles: list[bytes]
) -> None:
    tokens = list(singles)
    for left, right in joins:
        token = tokens[left % len(tokens)] + tokens[right % len(tokens)]
        if token not in tokens and len(token) < 200:
            tokens.append(token)

    table = ranks.RankTable(ranks.pack_ranks(tokens))
    assert list(table.read_all().items()) == [(token, rank) for rank, token in enumerate(tokens)]
    assert [table.rank(token) for token in tokens] == list(range(len(tokens)))
    assert table.rank(b"\x00" * 250) is None


@pytest.mark.parametrize(
    ("tokens", "wrong"),
    [(SINGLES[:-1], "single bytes"), ([*SINGLES, b"a" * 256], "one of more than 255 bytes")],
)
def test_what_is_no_table_is_not_packed(tokens: list[bytes], wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        ranks.pack_ranks(tokens)


def test_a_table_of_another_content_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "encoders").mkdir()
    before = encodings.path_of(O200K).read_bytes()
    lines = msgspec.json.encode({"bpe_ranks": "! 0 IQ== Ig==\n! 2 Iw=="})
    (tmp_path / "encoders" / f"{O200K}.json").write_bytes(lines)

    assert build.tokens_of(tmp_path / "encoders" / f"{O200K}.json") == [b"!", b'"', b"#"]
    with pytest.raises(ValueError, match="tiktoken expects 446a"):
        build.build(tmp_path)
    assert encodings.path_of(O200K).read_bytes() == before


def test_a_package_with_a_gap_between_its_ranks_is_refused(tmp_path: Path) -> None:
    (tmp_path / "gap.json").write_bytes(msgspec.json.encode({"bpe_ranks": "! 0 IQ==\n! 2 Iw=="}))
    with pytest.raises(ValueError, match="starts at rank 2; rank 1 is next"):
        build.tokens_of(tmp_path / "gap.json")


@pytest.fixture
def unloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encodings, "_loaded", {})
    monkeypatch.setattr(encodings, "_lookups", {})
    monkeypatch.setattr(encodings, "_looked_up", dict.fromkeys(TABLES, 0))


@pytest.mark.usefixtures("unloaded")
def test_an_encoder_is_loaded_once_for_all_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[str] = []
    real = tiktoken.Encoding

    def counted(name: str, **members: Any) -> tiktoken.Encoding:
        made.append(name)
        return real(name, **members)

    monkeypatch.setattr(tiktoken, "Encoding", counted)
    assert not is_ready(OLD_GPT)
    threads = [threading.Thread(target=load, args=(OLD_GPT,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (made, is_ready(OLD_GPT), is_ready(GPT)) == ([CL100K], True, False)


@pytest.mark.usefixtures("unloaded")
def test_loading_and_counting_open_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "socket", None)
    monkeypatch.setattr(socket, "getaddrinfo", None)
    assert TokenCounter().count("hello world", OLD_GPT) == 2


@pytest.mark.usefixtures("unloaded")
def test_the_first_texts_of_a_process_load_no_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    real, loaded = encodings._load, list[str]()

    def load_watched(name: str) -> tiktoken.Encoding:
        loaded.append(name)
        return real(name)

    monkeypatch.setattr(encodings, "_load", load_watched)
    counter, text = TokenCounter(), "word " * 20_000

    assert counter.count("hello world", GPT) == 2
    assert is_ready(GPT)
    for number in range(5):
        assert counter.count(f"{number}{text}", GPT) == 20_002
    assert (loaded, is_ready(GPT)) == ([], True)
    assert counter.count(f"5{text}", GPT) == 20_002
    assert (loaded, is_ready(GPT)) == ([], False)
    assert counter.count("hello, world", GPT) == 3
    assert (loaded, is_ready(GPT)) == ([O200K], True)


@pytest.mark.usefixtures("unloaded")
@pytest.mark.parametrize("text", ["word " * 30_000, "x" * 300])
def test_a_long_text_and_a_long_word_take_the_encoder(text: str) -> None:
    encoder = encodings.encoding(O200K)
    encodings._loaded.clear()

    assert TokenCounter().count(text, GPT) == len(encoder.encode_ordinary(text))
    assert list(encodings._loaded) == [O200K]


@pytest.mark.parametrize("name", TABLES)
def test_the_encoder_keeps_no_second_copy_of_its_table(name: str) -> None:
    encoder = encodings.encoding(name)
    assert encoder.decode_bytes([TABLES[name].tokens - 1])
    assert sys.getsizeof(encoder._mergeable_ranks) < 1000
