"""The index of parts of messages: filled for old messages, kept in step with new ones, and emptied with them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sidecar.store.engine.sqlite import Connection, connect
from sidecar.store.search import chat_search, index_removal, message_search
from sidecar.store.tables import message_parts
from sidecar.store.tables.migrations import known_migrations, migrate

CHAT = (
    "INSERT INTO chats (id, session_id, namespace, kind, key, epoch, created_at, last_activity)"
    " VALUES (1, 's', 'n', 'chat', 'k', 'e', 0, 0)"
)
MESSAGE = "INSERT INTO messages (id, chat, turn, item, role, ts, text) VALUES (?, 1, 't', 'i', 'user', 0, ?)"
OLD = 16
"""The schema before the index."""


@pytest.fixture
def old(request: pytest.FixtureRequest) -> Iterator[Connection]:
    """A database of an earlier version with a hundred messages."""
    db = connect(":memory:", isolation_level=None)
    migrate(db, [step for step in known_migrations() if step.version <= OLD], lambda _: None)
    db.execute(CHAT)
    for id in range(1, 101):
        db.execute(MESSAGE, (id, f"数据库 {id} and getUserName"))
    yield db
    db.close()


def found(db: Connection, query: str) -> list[int]:
    hits, _ = chat_search.search(db, query, "c.deleted = ?", [0], 0, 1000)
    return sorted(hit[0] for hit in hits)


def test_messages_of_before_are_added_newest_first(old: Connection) -> None:
    migrate(old, known_migrations(), lambda _: None)
    assert len(found(old, "getuser")) == 100, "words are found at once"
    assert (message_parts.fill_slice(old, 10), found(old, "据库")) == (10, list(range(91, 101)))
    while message_parts.fill_slice(old, 40):
        pass
    assert found(old, "据库") == found(old, "username") == list(range(1, 101))
    assert message_parts.fill_slice(old, 10) is None


def test_a_message_with_the_number_of_a_deleted_one_is_not_mixed_with_it(old: Connection) -> None:
    migrate(old, known_migrations(), lambda _: None)
    old.execute("DELETE FROM messages WHERE id > 90")
    old.execute(MESSAGE, (91, "密码 of someElse"))
    message_parts.add_parts(old, 91, "密码 of someElse")
    while message_parts.fill_slice(old, 1000):
        pass
    assert found(old, "密码") == found(old, "else") == [91]
    assert found(old, "据库") == list(range(1, 91))


def test_deleted_words_are_in_no_page(old: Connection) -> None:
    migrate(old, known_migrations(), lambda _: None)
    old.execute(MESSAGE, (101, "mySwordfish"))
    while message_parts.fill_slice(old, 30):
        pass
    index_removal.mark_messages(old, 1)
    old.execute("DELETE FROM messages WHERE id = 101")
    assert found(old, "swordfish") == []
    while index_removal.has_residue(old):
        index_removal.scrub(old)
    pages = b"".join(data for (data,) in old.execute("SELECT block FROM message_parts_data"))
    assert b"ordfish" not in pages
    assert "据库".encode() in pages or "数据".encode() in pages


def test_a_rebuilt_index_finds_the_same(old: Connection) -> None:
    migrate(old, known_migrations(), lambda _: None)
    while message_parts.fill_slice(old, 1000):
        pass
    old.execute("INSERT INTO message_part_texts VALUES (500, '孤儿')")
    message_search.rebuild(old)
    old.execute("INSERT INTO message_parts (message_parts, rank) VALUES ('integrity-check', 1)")
    assert found(old, "username") != []
    while message_parts.fill_slice(old, 1000):
        pass
    assert found(old, "据库") == list(range(1, 101))
    old.execute("INSERT INTO message_parts (message_parts, rank) VALUES ('integrity-check', 1)")
