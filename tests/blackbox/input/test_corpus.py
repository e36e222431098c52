"""A corpus of lines: each gets the answer that stands beside it, and the next is answered all the same."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from tests.support.wire import Json

from .probe import Probe

CORPUS = Path(__file__).parent / "corpus"
CASES = [
    json.loads(row)
    for name in ("valid", "invalid", "edge")
    for row in (CORPUS / f"{name}.jsonl").read_text().splitlines()
]


def bytes_of(case: Json) -> bytes:
    data: bytes = base64.b64decode(case["base64"]) if "base64" in case else case["text"].encode()
    return data + b"\n"


@pytest.fixture(scope="module", autouse=True)
def chat(probe: Probe) -> None:
    """The chat that the cases name: the one that opens it may be among those that `sampled` leaves out."""
    probe.sidecar.call("chat/open", chatId="chat")


def test_the_corpus_has_at_least_300_cases() -> None:
    assert len({case["name"] for case in CASES}) >= 300


@pytest.mark.sampled(164)
@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_line_gets_the_answer_that_it_should(probe: Probe, case: Json) -> None:
    expect = case["expect"]
    answers = probe.answers(bytes_of(case), wanted=0 if expect == "silence" else 1)
    seen = [(a["id"], a["error"]["code"] if "error" in a else "result") for a in answers]
    if expect == "silence":
        assert seen == []
    elif expect == "result":
        assert seen == [(case["id"], "result")]
    elif expect == "error":
        assert seen == [(case["id"], case["code"])]
    else:
        assert [id for id, _ in seen] in ([case["id"]], [None])
        assert seen[0][1] != -32603


@pytest.mark.parametrize("depth", [10_000, 100_000, 1_000_000])
@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_a_nesting_bomb_is_an_error_and_not_the_end(probe: Probe, depth: int, opening: str) -> None:
    closing = "]" if opening == "[" else "}"
    for bomb in (opening * depth, f"{opening * depth}1{closing * depth}"):
        inside = f'{{"jsonrpc":"2.0","id":"bomb","method":"ping","x":{bomb}}}'
        for text in (bomb, inside):
            (answer,) = probe.answers(text.encode() + b"\n", wanted=1)
            assert answer["error"]["code"] in (-32700, -32600, -32007)


def test_a_hundred_bad_lines_at_once_get_a_hundred_answers(probe: Probe) -> None:
    assert len(probe.answers(b"{bad\n" * 100, wanted=100)) == 100


def test_good_and_bad_lines_are_answered_side_by_side(probe: Probe) -> None:
    good = b"".join(b'{"jsonrpc":"2.0","id":"g%d","method":"ping"}\n{bad\n' % n for n in range(50))
    answers = probe.answers(good, wanted=100)
    assert sorted(str(a["id"]) for a in answers) == sorted([f"g{n}" for n in range(50)] + ["None"] * 50)
