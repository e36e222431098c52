"""Secrets of MCP servers: taken out of configurations and put back, and moved out of databases of older shapes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sidecar.model import mcp_secrets as pure
from sidecar.model.events import NewEvent
from sidecar.model.mcp_secrets import Secrets
from sidecar.store.engine.sqlite import Connection, connect
from sidecar.store.tables import checksums, mcp_secrets
from sidecar.store.tables.migrations import known_migrations, migrate

SECRET = "planted-secret-0123456789"

SERVERS: list[dict[str, Any]] = [
    {"name": "a", "command": "x", "env": {"T": SECRET, "E": ""}, "args": ["kept"]},
    {"name": "b", "url": f"https://h/p?key={SECRET}#f", "headers": {"Authorization": f"Bearer {SECRET}"}},
    {"name": "c", "url": "https://h/p"},
    {"name": "d", "command": "x", "env": {}, "headers": None},
    {"name": "a.b", "command": "x", "env": {"T": SECRET}},
]


def test_what_is_split_can_be_joined() -> None:
    masked, secrets = pure.split(SERVERS)
    assert SECRET not in json.dumps(masked) + repr(secrets)
    assert [pure.join(server, secrets) for server in masked] == SERVERS
    assert pure.split(masked) == (masked, Secrets())


@pytest.mark.parametrize("server", SERVERS[:2] + SERVERS[4:])
def test_what_is_not_kept_is_named(server: dict[str, Any]) -> None:
    masked = pure.mask(server)
    secrets = pure.split([server])[1]
    assert pure.missing_keys(masked, secrets) == []
    assert set(pure.missing_keys(masked, Secrets())) == set(secrets.values)
    assert pure.missing_keys(server, Secrets()) == []


def test_an_event_does_not_show_the_secrets_that_go_with_it() -> None:
    event = NewEvent("config.updated", {}, secrets=Secrets({("a", "env", "T"): SECRET}))
    assert SECRET not in repr(event)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "old.db")


@pytest.fixture
def old(path: str) -> Iterator[Connection]:
    """A database from before there was a table for secrets, with some in it."""
    db = connect(path, isolation_level=None)
    db.execute("PRAGMA secure_delete = ON")
    migrate(db, [step for step in known_migrations() if step.version < 14], lambda _: None, path)
    config = json.dumps({"mode": "auto", "mcpServers": SERVERS})
    for id in (1, 2):
        db.execute(
            "INSERT INTO chats (id, session_id, namespace, kind, key, epoch, config, last_seq, created_at,"
            " last_activity) VALUES (?, ?, 'default', 'chat', ?, 'e', ?, 3, 0, 0)",
            (id, f"sc-{id}", str(id), config if id == 1 else "{}"),
        )
    stored = {"mcpServers": SERVERS, "mode": "auto"}
    for seq, (type, data) in enumerate(
        [
            ("config.updated", {"config": stored, "stored": stored, "projectPath": None}),
            ("message.completed", {"item": {"text": "said of mcpServers"}}),
            ("config.updated", {"config": {"mode": "ask"}, "stored": {"mode": "ask"}}),
        ],
        1,
    ):
        raw = json.dumps(data).encode()
        total = checksums.event_checksum(1, seq, seq, 7, None, type, raw, None)
        db.execute(
            "INSERT INTO events (chat, seq, first, ts, turn, type, data, pieces, sum)"
            " VALUES (1, ?, ?, 7, NULL, ?, ?, NULL, ?)",
            (seq, seq, type, raw, total),
        )
    yield db
    db.close()


def rows_of(db: Connection) -> list[list[Any]]:
    return [db.execute(f"SELECT * FROM {table}").fetchall() for table in ("chats", "events")]


def test_a_migration_moves_them_out_of_configurations_and_events(old: Connection) -> None:
    before = old.execute("SELECT seq, data, sum FROM events WHERE seq > 1").fetchall()
    migrate(old, known_migrations(), lambda _: None)
    assert SECRET not in str(rows_of(old))
    masked = pure.split(SERVERS)[0]
    (config,) = old.execute("SELECT config FROM chats WHERE id = 1").fetchone()
    assert json.loads(config) == {"mode": "auto", "mcpServers": masked}
    assert mcp_secrets.read(old, 1) == pure.split(SERVERS)[1]
    assert mcp_secrets.read(old, 2) == Secrets()
    assert old.execute("SELECT seq, data, sum FROM events WHERE seq > 1").fetchall() == before


def test_events_that_were_masked_have_checksums_that_fit(old: Connection) -> None:
    migrate(old, known_migrations(), lambda _: None)
    for *columns, total in old.execute(
        "SELECT chat, seq, first, ts, turn, type, data, pieces, sum FROM events"
    ):
        assert total == checksums.event_checksum(*columns)


def test_neither_the_file_nor_the_copy_beside_it_keeps_more(old: Connection, path: str) -> None:
    earlier = f"{path}.schema-9"
    old.execute(f"VACUUM INTO '{earlier}'")
    migrate(old, known_migrations(), lambda _: None, path)
    old.execute("DELETE FROM mcp_secrets")
    old.close()
    for file in (path, earlier, f"{path}.schema-13"):
        assert SECRET.encode() not in Path(file).read_bytes(), file


def test_moving_twice_changes_nothing(old: Connection) -> None:
    migrate(old, known_migrations(), lambda _: None)
    before = rows_of(old), mcp_secrets.read(old, 1)
    assert mcp_secrets.move_out(old) == 0
    assert (rows_of(old), mcp_secrets.read(old, 1)) == before


def test_rows_that_are_no_json_are_left_for_the_recovery(old: Connection) -> None:
    old.execute("UPDATE chats SET config = 'garbage' WHERE id = 2")
    old.execute(
        "INSERT INTO events (chat, seq, first, ts, type, data) VALUES (2, 1, 1, 0, 'config.updated', '\"mcpServers\"')"
    )
    migrate(old, known_migrations(), lambda _: None)
    assert old.execute("SELECT config FROM chats WHERE id = 2").fetchone() == ("garbage",)
