"""What fits: whole turns, the newest, in order, and never more than there is room for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sidecar.context import window
from sidecar.model.content import Block, Item, Turn

TEXTS = st.text(max_size=60)


def item(kind: str, text: str, number: int) -> Item:
    said = [Block(type="text", text=text)] if kind == "user" else None
    output = {"text": text} if kind == "tool" else None
    spoken = text if kind in ("message", "thought") else None
    given = {"at": text} if kind == "tool" else None
    return Item(
        id=f"i{number}",
        turn_id="t",
        type=kind,
        status="completed",
        started_at=0,
        text=spoken,
        content=said,
        input=given,
        output=output,
    )


def turn(items: list[tuple[str, str]], number: int = 0) -> Turn:
    made = [item(kind, text, at) for at, (kind, text) in enumerate(items)]
    return Turn(
        id=f"t{number}",
        prompt_id="p",
        items=made,
        status="completed",
        model="m",
        engine="native",
        started_at=number,
    )


ITEMS = st.lists(st.tuples(st.sampled_from(["user", "message", "thought", "tool"]), TEXTS), max_size=3)
TURNS = st.lists(ITEMS, max_size=8).map(lambda many: [turn(items, at) for at, items in enumerate(many)])


@given(TURNS, st.integers(-10, 2000))
def test_the_newest_turns_fit_and_no_more_would(turns: list[Turn], room: int) -> None:
    taken = window.newest(turns, room)

    assert taken == turns[len(turns) - len(taken) :], "not the newest, or not in order"
    assert sum(map(window.of_turn, taken)) <= max(room, 0)
    if len(taken) < len(turns):
        assert sum(map(window.of_turn, taken)) + window.of_turn(turns[-len(taken) - 1]) > room


@given(TURNS, st.integers(0, 500), st.integers(0, 500))
def test_more_room_never_shows_less(turns: list[Turn], room: int, more: int) -> None:
    assert len(window.newest(turns, room + more)) >= len(window.newest(turns, room))


@given(st.integers(1, 2_000_000), st.none() | st.integers(1, 300_000))
def test_a_budget_leaves_room_for_the_answer(size: int, reserve: int | None) -> None:
    budget = window.budget(size, reserve)

    assert 0 <= budget.total <= size - budget.reserve
    assert budget.window == size
    assert budget.reserve == (min(reserve, size) if reserve else min(window.RESERVE, size // 4))


@given(TEXTS, TEXTS)
def test_the_count_never_shrinks_when_text_is_added(first: str, second: str) -> None:
    assert window.of_text(first + second) >= max(window.of_text(first), window.of_text(second))
    assert window.of_text(first + second) <= window.of_text(first) + window.of_text(second)


def test_the_estimate_is_on_the_safe_side() -> None:
    assert window.of_text("four") == 2
    assert window.of_text("漢字") == 2
    assert window.of_text("\ud800") == 1
    assert window.of_content([Block(type="image", blob_id="b", size=10**7)]) > window.IMAGE_TOKENS


def test_thoughts_are_not_sent_and_not_counted() -> None:
    assert window.of_turn(turn([("thought", "a long thought " * 100)])) == 0
