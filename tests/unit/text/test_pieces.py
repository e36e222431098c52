"""Texts as trees of pieces: every text comes back, and texts that are alike share their pieces."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from sidecar.text.pieces import MOST_PIECE, PieceTree, divide_text


def joined(tree: PieceTree, hash: bytes | None = None) -> str:
    def data(hash: bytes) -> bytes:
        piece = tree.pieces[hash]
        return b"".join(map(data, piece.parts)) if piece.is_node else piece.data

    return data(hash or tree.root).decode("utf-8", "surrogatepass")


def turns(count: int, seed: int = 1) -> list[str]:
    rng = random.Random(seed)
    return ["\n".join(f"{rng.random()} words of a line" for _ in range(6)) for _ in range(count)]


def new_bytes(old: str, new: str) -> int:
    known = divide_text(old).pieces
    return sum(len(piece.data) for hash, piece in divide_text(new).pieces.items() if hash not in known)


@given(st.text(alphabet=st.characters(), max_size=3000), st.integers(1, 12))
def test_a_text_comes_back(text: str, times: int) -> None:
    assert joined(divide_text(text * times)) == text * times


def test_an_empty_text_and_half_a_surrogate_pair_come_back() -> None:
    assert [joined(divide_text(text)) for text in ("", "\ud800", "x" * 100_000)] == [
        "",
        "\ud800",
        "x" * 100_000,
    ]


def test_a_line_that_is_long_is_divided() -> None:
    assert all(len(piece.data) <= MOST_PIECE for piece in divide_text("x" * 100_000).pieces.values())


def test_a_history_that_grows_or_loses_its_oldest_turn_is_stored_once() -> None:
    said = turns(400)
    turn = len(said[0])
    grown = [new_bytes("\n".join(said[:at]), "\n".join(said[: at + 1])) for at in range(300, 320)]
    slid = [
        new_bytes("\n".join(said[at : at + 200]), "\n".join(said[at + 1 : at + 201])) for at in range(50, 70)
    ]
    assert sum(grown) / len(grown) < 12 * turn
    assert sum(slid) / len(slid) < 24 * turn


def test_a_change_in_the_middle_leaves_the_rest() -> None:
    said = turns(400)
    changed = [*said[:200], "another turn", *said[201:]]
    assert new_bytes("\n".join(said), "\n".join(changed)) < 40 * len(said[0])
