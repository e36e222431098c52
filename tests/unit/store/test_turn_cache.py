"""Turns that every prompt reads again: kept in memory, and read anew when anything of them has changed."""

from __future__ import annotations

import pytest

from sidecar.store.engine.sqlite import Connection
from sidecar.store.tables import journal, turns
from sidecar.store.tables.turn_cache import TurnCache
from tests.unit.store.test_message_search import _chat, _small_talk
from tests.unit.store.test_message_search import db as db


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The turns whose events were read from the journal."""
    found: list[str] = []
    really = journal.read_turn

    def counted(db: Connection, chat: int, turn: str, first: int, last: int | None) -> list[object]:
        found.append(turn)
        return really(db, chat, turn, first, last)  # type: ignore[return-value]

    monkeypatch.setattr(journal, "read_turn", counted)
    return found


def test_what_is_read_is_what_the_journal_holds_and_is_read_once(db: Connection, read: list[str]) -> None:
    chat = _chat(db, _small_talk(30))
    recent = TurnCache()
    pages = [recent.before(db, chat, None, 20, 1 << 20, 0) for _ in range(3)]
    assert len(read) == 20
    plain = turns.sent_before(db, chat, None, 20, 1 << 20, 0)
    assert pages[0].turns == pages[2].turns == plain.turns
    assert pages[0].before == plain.before
    older = recent.before(db, chat, plain.before, 20, 1 << 20, 3)
    assert [turn.id for turn in older.turns] == [
        turn.id for turn in turns.sent_before(db, chat, plain.before, 20, 1 << 20, 3).turns
    ]
    assert recent.before(db, chat, "turn.1", 20, 1 << 20, 0).turns == []


def test_a_turn_that_was_hidden_or_changed_is_not_told_from_memory(db: Connection) -> None:
    chat = _chat(db, _small_talk(5))
    recent = TurnCache()
    before = recent.before(db, chat, None, 9, 1 << 20, 0).turns
    db.execute("UPDATE turns SET hidden = 1 WHERE chat = ? AND id = ?", (chat, before[-1].id))
    db.execute("UPDATE turns SET status = 'failed' WHERE chat = ? AND id = ?", (chat, before[0].id))
    after = recent.before(db, chat, None, 9, 1 << 20, 0).turns
    assert [turn.id for turn in after] == [turn.id for turn in before[:-1]]
    assert after[0].status == "failed"


def test_memory_and_pages_are_bounded(db: Connection, read: list[str]) -> None:
    chat = _chat(db, _small_talk(40))
    recent = TurnCache(kept_bytes=2000)
    for _ in range(2):
        assert len(recent.before(db, chat, None, 40, 1 << 20, 0).turns) == 40
    assert len(read) == 80, "what does not fit is read again"
    assert len(recent.before(db, chat, None, 40, 1, 0).turns) == 1
