"""The data of tools in a chat: open files, the ledger, requests to the user, permission rules, checkpoints.

Reads all of them, and writes those without an event (rules of projects and users). SQL for their tables.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ...model import JsonObject
from ...model.events import EventData, decode, encode
from ...model.files import Patch
from ..engine.sqlite import Connection


class LedgerEntry(msgspec.Struct, frozen=True):
    """A patch, whether its turn is visible, and whether the user has cleared it from the list."""

    patch: Patch
    visible: bool
    cleared: bool


class RequestRecord(msgspec.Struct, frozen=True):
    """A request to the user; `outcome` is None until it is answered."""

    id: str
    chat: int
    kind: str
    turn_id: str
    data: EventData
    outcome: JsonObject | None


class RuleRow(msgspec.Struct, frozen=True):
    """A stored permission rule."""

    id: str
    scope: str
    effect: str
    kind: str
    pattern: str
    folder: str | None
    source: str
    created_at: int


class Checkpoint(msgspec.Struct, frozen=True):
    """A named position in a chat: its newest turn there, and the last seq."""

    name: str
    head: str | None
    seq: int
    ts: int


_patch = msgspec.json.Decoder(Patch).decode


def patches(db: Connection, chat: int) -> list[LedgerEntry]:
    """Return the whole ledger in the order of the changes, including hidden and cleared entries."""
    rows = db.execute(
        "SELECT p.data, coalesce(t.hidden, 0), p.cleared FROM patches p"
        " LEFT JOIN turns t ON t.chat = p.chat AND t.id = p.turn WHERE p.chat = ? ORDER BY p.ordinal",
        (chat,),
    )
    return [LedgerEntry(_patch(data), not hidden, bool(cleared)) for data, hidden, cleared in rows]


def put_patch(db: Connection, chat: int, data: EventData) -> None:
    """Add an entry, or replace the one with the same id."""
    db.execute(
        "INSERT INTO patches (chat, ordinal, id, turn, path, status, data)"
        " VALUES (?1, (SELECT coalesce(max(ordinal), 0) + 1 FROM patches WHERE chat = ?1), ?2, ?3, ?4, ?5, ?6)"
        " ON CONFLICT (chat, id) DO UPDATE SET status = excluded.status, data = excluded.data",
        (
            chat,
            data["id"],
            data["turnId"],
            data["filePath"],
            data.get("status") or "applied",
            encode({key: value for key, value in data.items() if key != "unifiedDiff"}),
        ),
    )


def open_files_at(db: Connection, chat: int, seq: int) -> list[JsonObject]:
    """Return the open files as of a seq."""
    row = db.execute(
        "SELECT data FROM events WHERE chat = ? AND type = 'files.updated' AND seq <= ? ORDER BY seq DESC LIMIT 1",
        (chat, seq),
    ).fetchone()
    files: list[JsonObject] = decode(row[0])["files"] if row else []
    return files


def request(db: Connection, id: str) -> RequestRecord | None:
    row = db.execute(
        "SELECT id, chat, kind, turn, data, outcome FROM requests WHERE id = ?", (id,)
    ).fetchone()
    return _request(row) if row else None


def pending(db: Connection, chat: int) -> list[RequestRecord]:
    """Return the requests that wait for the user."""
    query = "SELECT id, chat, kind, turn, data, outcome FROM requests WHERE chat = ? AND outcome IS NULL ORDER BY id"
    return [_request(row) for row in db.execute(query, (chat,))]


def rules(db: Connection, chat: int | None, project: str | None) -> list[RuleRow]:
    """Return the rules that apply in a chat: its own, its project's, the user's."""
    rows = db.execute(
        "SELECT id, scope, effect, kind, pattern, folder, source, created_at FROM permission_rules"
        " WHERE scope = 'user' OR (scope = 'chat' AND chat = ?) OR (scope = 'project' AND project = ?)"
        " ORDER BY created_at, id",
        (chat, project),
    )
    return [RuleRow(*row) for row in rows]


def put_rule(db: Connection, rule: RuleRow, chat: int | None, project: str | None) -> None:
    """Store a rule; the same text in the same scope is stored once, with the newer effect."""
    owner = (chat if rule.scope == "chat" else None, project if rule.scope == "project" else None)
    db.execute(
        "DELETE FROM permission_rules WHERE scope = ? AND chat IS ? AND project IS ? AND kind = ?"
        " AND pattern = ? AND folder IS ?",
        (rule.scope, *owner, rule.kind, rule.pattern, rule.folder),
    )
    db.execute(
        "INSERT INTO permission_rules (id, scope, effect, kind, pattern, folder, source, created_at, chat, project)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*msgspec.structs.astuple(rule), *owner),
    )


def remove_rule(db: Connection, id: str) -> bool:
    return db.execute("DELETE FROM permission_rules WHERE id = ?", (id,)).rowcount > 0


def checkpoints(db: Connection, chat: int) -> list[Checkpoint]:
    """Return the checkpoints, newest first."""
    rows = db.execute("SELECT name, head, seq, ts FROM checkpoints WHERE chat = ? ORDER BY seq DESC", (chat,))
    return [Checkpoint(*row) for row in rows]


def tool_call_counts(db: Connection, chat: int | None) -> dict[str, int]:
    """Count the calls of each tool, in a chat or in all."""
    where, values = ("WHERE chat = ?", (chat,)) if chat is not None else ("", ())
    return dict(
        db.execute(f"SELECT name, sum(count) FROM tool_uses {where} GROUP BY name", values).fetchall()
    )


def _request(row: tuple[Any, ...]) -> RequestRecord:
    id, chat, kind, turn, data, outcome = row
    return RequestRecord(id, chat, kind, turn, decode(data), decode(outcome) if outcome else None)
