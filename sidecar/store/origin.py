"""Detects databases that another installation wrote, and removes from them what could run or be allowed
without asking.

A database can come from anywhere: from `sidecar restore`, from a data folder in the settings, from a file
that replaced another. Its chats are kept. Allow rules, trust in projects, MCP servers, modes, folders and
similar entries are removed. `settings/installation` provides the id of this installation.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import msgspec

from ..model import JsonObject
from ..model.chats import TAKEN_FROM_ELSEWHERE
from ..model.events import decode, encode
from ..model.failures import StorageFailed
from ..text.plural import counted
from .engine.sqlite import Connection, connect
from .search import index_owners
from .tables import migrations
from .tables.mcp_secrets import rewrite_event


class Taken(msgspec.Struct, frozen=True):
    """What was removed from a database of another installation: counts, and names of configuration keys."""

    rules: int = 0
    projects: int = 0
    chats: int = 0
    keys: list[str] = []
    patches: int = 0
    prompts: int = 0
    folders: int = 0

    def counts(self) -> dict[str, Any]:
        """Return what was removed by kind; without the kinds of which there was nothing."""
        return {name: value for name, value in msgspec.structs.asdict(self).items() if value}

    def lines(self) -> list[str]:
        """Describe what was removed, one line per kind; empty when nothing was."""
        kinds = [
            (self.rules, f"{counted(self.rules, 'permission rules')} that allow"),
            (self.projects, f"trust in {counted(self.projects, 'projects')}"),
            (self.chats, f"settings of {counted(self.chats, 'chats')}: {', '.join(self.keys)}"),
            (self.patches, f"{counted(self.patches, 'recorded changes')} of files that could be reverted"),
            (self.prompts, counted(self.prompts, "queued prompts")),
            (self.folders, f"the project folders of {counted(self.folders, 'chats')}, until opened there"),
        ]
        return [words for count, words in kinds if count]


class Stripped(msgspec.Struct, frozen=True):
    """A database of another installation that was opened in place; `copy` is the path of the database as it was."""

    taken: Taken
    copy: str


def of(db: Connection) -> str | None:
    """Return the installation that wrote the database; None for a new one and for one older than this record."""
    row = db.execute("SELECT installation FROM origin").fetchone()
    return str(row[0]) if row else None


def own(db: Connection, installation: str) -> None:
    """Assign the database to this installation."""
    db.execute("DELETE FROM origin")
    db.execute("INSERT INTO origin (installation) VALUES (?)", (installation,))


def claim(
    db: Connection, installation: str, *, adopt: bool = False, before: Callable[[], None] = lambda: None
) -> Taken | None:
    """Assign the database to this installation; None when it already was, or contains nothing to remove.

    With `adopt`, a database that names no installation is used as it is. `before` is called before the first
    change to a database of another installation. Raises StorageFailed when its schema has parts that no
    sidecar creates.
    """
    found = of(db)
    if found == installation:
        return None
    # Before the transaction, because `before` copies the whole database.
    if not (found is None and (adopt or _is_empty(db))):
        check_schema(db)
        before()
    db.execute("BEGIN IMMEDIATE")
    try:
        found = of(db)  # another process may have claimed it first
        taken = None
        if found != installation:
            taken = None if found is None and adopt else strip(db)
            own(db, installation)
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    return taken if taken and taken.lines() else None


def check_schema(db: Connection) -> None:
    """Refuse a schema with parts that no sidecar creates: a trigger could undo the removal."""
    blank = connect(":memory:", isolation_level=None)
    try:
        migrations.migrate(blank, migrations.known_migrations(), lambda state: None)
        known = _objects(blank)
    finally:
        blank.close()
    for name, (kind, sql) in _objects(db).items():
        if known.get(name) != (kind, sql):
            raise StorageFailed(
                "io",
                f"The database came from another installation, and its {kind} {name[:80]!r} was not created by"
                " a sidecar; replace it by a database that `sidecar backup` has written",
                action="run_doctor",
            )


def strip(db: Connection) -> Taken:
    """Remove what would let something run or be allowed without asking. Runs in the caller's transaction."""
    rules = db.execute("DELETE FROM permission_rules WHERE effect NOT IN ('deny', 'ask')").rowcount
    (projects,) = db.execute("SELECT count(*) FROM projects WHERE trusted <> 0").fetchone()
    _forget_projects(db)
    # A folder that the database names could be any, such as one with keys; what an app names is the user's choice.
    folders = db.execute(
        "UPDATE chats SET elsewhere = 1 WHERE project_path IS NOT NULL AND deleted = 0"
    ).rowcount
    keys = _strip_configs(db)
    patches = _strip_patches(db)
    prompts = db.execute(
        "UPDATE prompts SET status = 'removed', position = NULL, content = NULL, overrides = NULL"
        " WHERE status = 'queued'"
    ).rowcount
    for chat, seq in db.execute("SELECT chat, seq FROM events WHERE type = 'files.updated'").fetchall():
        rewrite_event(db, chat, seq, encode({"files": []}))
    db.execute("UPDATE chats SET open_files = '[]', queue_paused = 0 WHERE deleted = 0")
    for table in ("mcp_secrets", "pages", "calibrations", "handed_requests", "engine_sessions"):
        db.execute(f"DELETE FROM {table}")
    index_owners.mark_of_no_chat(db, None)
    _disown_chats(db)
    names = sorted({key for found in keys.values() for key in found})
    return Taken(rules, projects, len(keys), names, patches, prompts, folders)


def _is_empty(db: Connection) -> bool:
    query = (
        "SELECT EXISTS (SELECT 1 FROM chats) OR EXISTS (SELECT 1 FROM permission_rules)"
        " OR EXISTS (SELECT 1 FROM projects)"
    )
    return not db.execute(query).fetchone()[0]


def _objects(db: Connection) -> dict[str, tuple[str, str]]:
    rows = db.execute(
        "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    )
    return {name: (kind, " ".join((sql or "").split())) for kind, name, sql in rows}


def _forget_projects(db: Connection) -> None:
    """Identify the projects of chats by path only: a stored folder id could be that of another folder here."""
    db.execute("DELETE FROM projects")
    db.execute(
        "INSERT OR IGNORE INTO projects (path, hash, trusted, changed_at)"
        " SELECT project_path, 'v0:' || project_path, 0, max(last_activity) FROM chats"
        " WHERE project_path IS NOT NULL GROUP BY project_path"
    )


def _strip_configs(db: Connection) -> dict[int, set[str]]:
    """Reduce each configuration to keys that only shape a chat, in the journal too, because a repair rebuilds
    the configuration from it."""
    dropped: dict[int, set[str]] = {}
    for chat, text in db.execute("SELECT id, config FROM chats WHERE config <> '{}'").fetchall():
        kept, gone = _split(_object(text))
        if gone:
            dropped[chat] = gone
            db.execute("UPDATE chats SET config = ? WHERE id = ?", (encode(kept), chat))
    query = "SELECT chat, seq, data FROM events WHERE type = 'config.updated'"
    for chat, seq, data in db.execute(query).fetchall():
        event = _object(data)
        shaped = {"config": _split(event.get("config"))[0], "stored": _split(event.get("stored"))[0]}
        rewrite_event(db, chat, seq, encode({**shaped, "projectPath": None}))
    return dropped


def _split(config: Any) -> tuple[JsonObject, set[str]]:
    if not isinstance(config, dict):
        return {}, set()
    kept: JsonObject = {
        key: value for key, value in config.items() if key in TAKEN_FROM_ELSEWHERE and isinstance(value, dict)
    }
    return kept, set(config) - set(kept)


def _strip_patches(db: Connection) -> int:
    """Delete patches: reverting one would write bytes from a foreign database into a file."""
    count = db.execute("DELETE FROM patches").rowcount
    for chat, seq, data in db.execute(
        "SELECT chat, seq, data FROM events WHERE type = 'patch.recorded'"
    ).fetchall():
        notice = {"code": "patch_removed", "params": {"path": str(_object(data).get("filePath") or "")}}
        db.execute("UPDATE events SET type = 'notice' WHERE chat = ? AND seq = ?", (chat, seq))
        rewrite_event(db, chat, seq, encode(notice))
    return count


def _disown_chats(db: Connection) -> None:
    """End leases, running turns and requests at the next opening of the chat; invalidate cursors and process
    ids."""
    db.execute("DELETE FROM leases")
    db.execute(
        "INSERT INTO leases (chat, generation, instance, boot, namespace, pid, started)"
        " SELECT id, 1, 'elsewhere', '', '', 0, 0 FROM chats WHERE deleted = 0"
    )
    for (chat,) in db.execute("SELECT id FROM chats WHERE deleted = 0").fetchall():
        db.execute("UPDATE chats SET epoch = ? WHERE id = ?", (secrets.token_hex(6), chat))


def _object(text: Any) -> JsonObject:
    try:
        value = decode(text)
    except (TypeError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
