"""`chat/history`: pages of turns, in order, from either side or around a place."""

from __future__ import annotations

import pytest

from tests.support.reading import last_messages
from tests.support.sidecar import Sidecar
from tests.support.wire import Json


@pytest.fixture
def chat(sidecar: Sidecar) -> Sidecar:
    """A sidecar whose chat `c` has ten turns of plain text."""
    lines = "".join(
        f'{{"role":"user","text":"q{n}"}}\n{{"role":"assistant","text":"a{n}"}}\n' for n in range(10)
    )
    sidecar.call("chat/import", chatId="c", data=lines)
    return sidecar


def said(page: Json) -> list[str]:
    return last_messages(page["turns"])


def test_the_newest_page_comes_first_and_in_order(chat: Sidecar) -> None:
    page = chat.call("chat/history", chatId="c", limit=3)
    assert said(page) == ["a7", "a8", "a9"]
    assert page["after"] is None


def test_pages_backwards_reach_the_beginning_once(chat: Sidecar) -> None:
    said_so_far: list[str] = []
    cursor = None
    while True:
        page = chat.call("chat/history", chatId="c", limit=4, **({"before": cursor} if cursor else {}))
        said_so_far = said(page) + said_so_far
        cursor = page["before"]
        if cursor is None:
            break
    assert said_so_far == [f"a{n}" for n in range(10)]


def test_pages_forwards_come_back_to_the_end(chat: Sidecar) -> None:
    first = chat.call("chat/history", chatId="c", limit=9)
    oldest = chat.call("chat/history", chatId="c", limit=9, before=first["before"])
    newer = chat.call("chat/history", chatId="c", limit=4, after=oldest["after"])
    assert (said(oldest), said(newer)) == (["a0"], ["a1", "a2", "a3", "a4"])


def test_a_page_around_a_turn_contains_it(chat: Sidecar) -> None:
    turns = chat.call("chat/history", chatId="c")["turns"]
    page = chat.call("chat/history", chatId="c", around={"turnId": turns[4]["id"]}, limit=3)
    assert said(page) == ["a3", "a4", "a5"]


def test_an_unknown_turn_is_not_found(chat: Sidecar) -> None:
    assert chat.refused("chat/history", chatId="c", around={"turnId": "nope"}).code == -32002


def test_a_nonsense_cursor_is_refused(chat: Sidecar) -> None:
    assert chat.refused("chat/history", chatId="c", before="nope").code in (-32602, -32008)


def test_bytes_bound_a_page_and_one_turn_always_comes(chat: Sidecar) -> None:
    assert said(chat.call("chat/history", chatId="c", maxBytes=1)) == ["a9"]
