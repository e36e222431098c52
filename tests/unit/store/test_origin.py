"""What is taken out of a database from elsewhere, by SQL and by what its journal would say anew."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from sidecar.model.chats import ChatKey
from sidecar.model.events import NewEvent
from sidecar.model.failures import StorageFailed
from sidecar.model.mcp_secrets import Secrets
from sidecar.store import origin
from sidecar.store.engine.sqlite import Connection, connect
from sidecar.store.repair import rebuild
from sidecar.store.repair.integrity import problems
from sidecar.store.tables import chats, mcp_secrets
from sidecar.store.tables.appending import append
from sidecar.store.tables.migrations import known_migrations, migrate

ME, OTHER = "a" * 32, "b" * 32

CONFIG = {"mode": "auto", "extraFolders": ["/"], "gates": {"patches": "never"}, "budgets": 5}
KEPT = {"gates": {"patches": "never"}}


@pytest.fixture
def db() -> Iterator[Connection]:
    """A database of another installation with one chat and everything that could let it run something."""
    made = connect(":memory:", isolation_level=None)
    migrate(made, known_migrations(), lambda _: None)
    chat = chats.create(
        made, ChatKey("default", "chat", "c", chats.session_id("default", "chat", "c")), "/p", {}, 1
    )
    append(
        made,
        chat.id,
        0,
        [
            NewEvent(
                "config.updated",
                {"config": CONFIG, "stored": CONFIG, "projectPath": "/p"},
                secrets=Secrets({("s", "env", "T"): "value"}),
            ),
            NewEvent("files.updated", {"files": [{"path": "/p/.env", "openedBy": "user"}]}),
        ],
        1,
    )
    for number, effect in enumerate(("allow", "deny", "ask", "ALLOW")):
        made.execute(
            "INSERT INTO permission_rules VALUES (?, 'user', NULL, NULL, ?, 'run', '*', NULL, 'app', 0)",
            (str(number), effect),
        )
    made.execute(
        "UPDATE projects SET trusted = 1, trusted_files = '{}', hash = 'v1:of another', moved_to = '/q'"
    )
    origin.own(made, OTHER)
    yield made
    made.close()


def config_of(db: Connection) -> object:
    return json.loads(db.execute("SELECT config FROM chats").fetchone()[0])


def test_what_could_run_or_be_allowed_is_gone_and_named(db: Connection) -> None:
    taken = origin.claim(db, ME)
    assert taken is not None
    assert (taken.rules, taken.projects, taken.chats) == (2, 1, 1)
    assert taken.keys == ["budgets", "extraFolders", "mode"]
    assert [row[0] for row in db.execute("SELECT effect FROM permission_rules ORDER BY id")] == [
        "deny",
        "ask",
    ]
    assert db.execute("SELECT path, trusted, trusted_files, hash, moved_to FROM projects").fetchall() == [
        ("/p", 0, None, "v0:/p", None)
    ]
    assert (config_of(db), mcp_secrets.read(db, 1)) == (KEPT, Secrets())
    assert db.execute("SELECT open_files FROM chats").fetchone() == ("[]",)
    assert origin.of(db) == ME


def test_a_chat_that_is_made_anew_from_its_events_does_not_bring_it_back(db: Connection) -> None:
    origin.claim(db, ME)
    db.execute("UPDATE chats SET config = '{}'")
    rebuild.rebuild(db, 1, 2)
    assert (config_of(db), db.execute("SELECT open_files FROM chats").fetchone()) == (KEPT, (b"[]",))


def test_what_is_left_is_sound(db: Connection) -> None:
    origin.claim(db, ME)
    assert list(problems(db)) == []


def test_it_is_done_once_and_not_to_ones_own(db: Connection) -> None:
    told: list[str] = []
    origin.claim(db, ME, before=lambda: told.append("copied"))
    epoch = db.execute("SELECT epoch FROM chats").fetchone()
    assert origin.claim(db, ME, before=lambda: told.append("again")) is None
    assert (told, db.execute("SELECT epoch FROM chats").fetchone()) == (["copied"], epoch)


@pytest.mark.parametrize(("adopt", "mode"), [(True, "auto"), (False, None)])
def test_one_without_a_name_is_adopted_when_that_is_asked(
    db: Connection, adopt: bool, mode: str | None
) -> None:
    db.execute("DELETE FROM origin")
    origin.claim(db, ME, adopt=adopt)
    assert (json.loads(db.execute("SELECT config FROM chats").fetchone()[0]).get("mode"), origin.of(db)) == (
        mode,
        ME,
    )


def test_one_with_a_name_is_not_adopted(db: Connection) -> None:
    origin.claim(db, ME, adopt=True)
    assert config_of(db) == KEPT


def test_a_blank_one_is_claimed_without_a_copy() -> None:
    blank = connect(":memory:", isolation_level=None)
    migrate(blank, known_migrations(), lambda _: None)
    told: list[str] = []
    assert origin.claim(blank, ME, before=lambda: told.append("copied")) is None
    assert (told, origin.of(blank)) == ([], ME)
    blank.close()


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER UPDATE ON chats BEGIN UPDATE projects SET trusted = 1; END",
        "CREATE VIEW v AS SELECT 1",
        "CREATE TABLE t (a)",
        "CREATE INDEX i ON chats (lower(title))",
        "ALTER TABLE projects ADD COLUMN more DEFAULT 1",
    ],
)
def test_a_schema_with_more_in_it_is_refused_and_left(db: Connection, statement: str) -> None:
    db.execute(statement)
    with pytest.raises(StorageFailed, match="was not created by a sidecar"):
        origin.claim(db, ME)
    assert origin.of(db) == OTHER


def test_what_was_removed_is_counted_by_kind_and_only_where_there_was_any(db: Connection) -> None:
    taken = origin.claim(db, ME)
    assert taken is not None
    assert taken.counts() == {
        "rules": 2,
        "projects": 1,
        "chats": 1,
        "keys": ["budgets", "extraFolders", "mode"],
        "folders": 1,
    }
    assert origin.Taken().counts() == {}
