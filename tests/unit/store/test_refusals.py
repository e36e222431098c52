"""Which turns are history: the same by the values (`model/refusals`) and by the rows (`store/refusals`)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from sidecar.chat.actions.history_import import ImportedHistory, TurnEvents
from sidecar.model.chats import Chat, ChatKey
from sidecar.model.content import Block, Item, StoredError, Turn
from sidecar.model.events import NewEvent
from sidecar.model.refusals import LEFT_OUT, is_refused, without_refused
from sidecar.store.engine.sqlite import Connection
from sidecar.store.search import message_search
from sidecar.store.tables import chats, compactions, turns
from sidecar.store.tables.turn_cache import TurnCache
from tests.unit.store.test_message_search import _append, _search
from tests.unit.store.test_message_search import db as db


def _events(made: Turn, chat: Chat) -> list[NewEvent]:
    events = TurnEvents(chat, renumber=False)
    return [*events.of(made), *events.end(ImportedHistory(), chat)]


PROMPT = "The wombat sleeps. Always mention wombats."


def item(type: str, at: int = 1, **more: Any) -> Item:
    content = [Block(type="text", text=PROMPT)] if type == "user" else None
    text = PROMPT if type == "user" else "words"
    return Item(
        id=f"{type}{at}",
        turn_id="t1",
        type=type,
        status="completed",
        started_at=at,
        text=text,
        content=content,
        **more,
    )


def turn(items: list[Item], reason: str = "error", error: dict[str, Any] | None = None) -> Turn:
    status: Any = "failed" if reason == "error" else "completed"
    return Turn(
        id="t1",
        prompt_id="p1",
        items=items,
        status=status,
        reason=reason,  # type: ignore[arg-type]
        model="m",
        engine="native",
        started_at=1,
        ended_at=2,
        error=StoredError(message="x", data=error) if error else None,
    )


def provider(reason: str, **params: Any) -> dict[str, Any]:
    return {"name": "provider_error", "reason": reason, "params": params}


REFUSALS: dict[str, dict[str, Any]] = {
    "too large": {"name": "context_budget", "needed": 90_000, "available": 8000},
    "refused": provider("refused", status=400),
    "refused without a status": provider("refused"),
    "window": provider("window"),
    "400": provider("bad_reply", status=400),
    "413": provider("bad_reply", status=413),
    "422": provider("bad_reply", status=422),
}
OTHERS: dict[str, dict[str, Any]] = {
    "a bad reply": provider("bad_reply"),
    "a strange status": provider("bad_reply", status=405),
    "no key": provider("no_key"),
    "a cut": {"name": "provider_error", "reason": "stream_cut"},
    "the disk": {"name": "storage", "reason": "full"},
    "a bug": {"name": "internal_error"},
}
ITEMS = {
    "nothing": [],
    "a thought": [item("thought")],
    "a hook's words": [item("notice", kind="hook")],
    "a message": [item("message")],
    "a tool": [item("tool", output={"text": "out"})],
}
CASES: list[tuple[dict[str, Any] | None, str, bool, str]] = [
    *((error, "error", True, after) for error in REFUSALS.values() for after in ITEMS),
    *((error, "error", False, after) for error in OTHERS.values() for after in ITEMS),
    *(
        (None, reason, reason == "refusal", after)
        for reason in ("refusal", "end_turn", "error")
        for after in ITEMS
    ),
]


@pytest.mark.parametrize(("error", "reason", "refused", "after"), CASES)
def test_values_and_rows_agree(
    db: Connection, error: dict[str, Any] | None, reason: str, refused: bool, after: str
) -> None:
    made = turn([item("user"), *ITEMS[after]], reason, error)
    expected = refused and after not in ("a message", "a tool")
    chat = chats.create(db, ChatKey("test", "chat", "a", "a"), None, {}, 0)
    _append(db, chat.id, _events(made, chat))

    assert is_refused(made) == expected
    kept = [] if expected else ["t1"]
    assert [one.id for one in TurnCache().before(db, chat.id, None, 9, 1 << 20, 0).turns] == kept
    assert [one.id for one in turns.before(db, chat.id, None, 9, 1 << 20).turns] == ["t1"], "the user sees it"
    assert [one.turn for one in _search(db, chat.id, "wombat").candidates if one.role == "user"] == kept
    assert [row[1] for row in message_search.neighbours(db, chat.id, [1]) if row[3] == "user"] == kept
    assert bool(compactions.standing(db, chat.id)) == bool(kept)
    assert (turns.first_sent(db, chat.id) is None) == expected


def test_a_turn_that_runs_is_history_already(db: Connection) -> None:
    chat = chats.create(db, ChatKey("test", "chat", "a", "a"), None, {}, 0)
    events = _events(turn([item("user")]), chat)
    _append(db, chat.id, [event for event in events if event.type not in ("turn.ended", "chat.renamed")])
    assert [one.status for one in TurnCache().before(db, chat.id, None, 9, 1 << 20, 0).turns] == ["running"]
    assert compactions.standing(db, chat.id) != []


@pytest.mark.parametrize("error", REFUSALS.values(), ids=REFUSALS)
def test_of_a_turn_that_was_refused_later_what_was_new_is_left_out(error: dict[str, Any]) -> None:
    old, new = (
        item("tool", 1, output={"text": "old"}),
        item("tool", 3, output={"text": "new", "source": "out:1"}),
    )
    made = turn([item("user"), old, item("message", 2), new, item("user", 4)], "error", error)
    left = without_refused(made).items
    ours = error["name"] == "context_budget"  # our own budget cuts; the provider has refused nothing

    assert left[:3] == made.items[:3]
    assert left[3].output == (
        {"text": "new", "source": "out:1"} if ours else {"text": LEFT_OUT, "source": "out:1"}
    )
    assert left[4].content == [Block(type="text", text=PROMPT if ours else LEFT_OUT)]


@pytest.mark.parametrize(("needed", "is_left_out"), [(60_000, True), (10_050, True), (200_000, False)])
def test_a_steer_that_alone_did_not_fit_is_left_out(needed: int, is_left_out: bool) -> None:
    words = "word " * 50_000
    steer = msgspec.structs.replace(item("user", 2), content=[Block(type="text", text=words)], text=words)
    error = {"name": "context_budget", "needed": needed, "available": 10_000}
    made = turn([item("user"), item("message", 1), steer], "error", error)
    assert without_refused(made).items[2].content == (
        [Block(type="text", text=LEFT_OUT)] if is_left_out else steer.content
    )


def test_an_answered_turn_is_left_as_it_is() -> None:
    made = turn([item("user"), item("tool", 2, output={"text": "x"})], "end_turn")
    assert without_refused(made) is made


def test_a_turn_that_was_answered_alone_stays_so_in_a_copy(db: Connection) -> None:
    made = msgspec.structs.replace(turn([item("user"), item("message", 2)], "end_turn"), alone=True)
    chat = chats.create(db, ChatKey("test", "chat", "a", "a"), None, {}, 0)
    _append(db, chat.id, _events(made, chat))
    found = turns.get(db, chat.id, "t1")
    assert found is not None
    assert found.alone
