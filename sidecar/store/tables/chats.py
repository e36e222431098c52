"""Rows of `chats`: find, create, list, search. Tombstones stay, so that a deleted chat is reported as
deleted."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from typing import Any

from ...model.chats import Chat, ChatKey, ChatQuery, MessageHit, OwnConfig
from ...model.events import decode, encode
from ...model.failures import Refused, invalid_param
from ..engine.sqlite import Connection
from .projections import touch, usage_of

_COLUMNS = (
    "id, namespace, kind, key, session_id, epoch, last_seq, title, title_by, project_path, config, archived,"
    " created_at, last_activity, turns, preview, state, head, queue_paused, usage, model, deleted, revision,"
    " open_files, elsewhere"
)
_QUALIFIED = ", ".join("c." + name.strip() for name in _COLUMNS.split(","))


def find(db: Connection, session_id: str) -> Chat | None:
    row = db.execute(f"SELECT {_COLUMNS} FROM chats WHERE session_id = ?", (session_id,)).fetchone()
    return _chat(row) if row else None


def get(db: Connection, chat: int) -> Chat:
    row = db.execute(f"SELECT {_COLUMNS} FROM chats WHERE id = ?", (chat,)).fetchone()
    if row is None:
        raise Refused("deleted", "This chat was deleted and created again")
    return _chat(row)


def create(db: Connection, key: ChatKey, project_path: str | None, config: OwnConfig, now: int) -> Chat:
    """Create a chat, or a deleted one again under a new epoch."""
    db.execute("DELETE FROM chats WHERE session_id = ? AND deleted = 1", (key.session_id,))
    cursor = db.execute(
        "INSERT INTO chats (session_id, namespace, kind, key, epoch, project_path, config, created_at, last_activity)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            key.session_id,
            key.namespace,
            key.kind,
            key.value,
            secrets.token_hex(6),
            project_path,
            encode(config),
            now,
            now,
        ),
    )
    assert cursor.lastrowid is not None
    touch(db, cursor.lastrowid)
    return get(db, cursor.lastrowid)


def rebuild_words(db: Connection) -> None:
    db.execute("INSERT INTO words (words) VALUES ('rebuild')")


def is_genuine(row: dict[str, Any]) -> bool:
    """Return whether a row from a damaged file is a chat: its session id is derived from its key."""
    if not all(
        isinstance(row.get(name), str) for name in ("namespace", "kind", "key", "session_id", "epoch")
    ):
        return False
    if not isinstance(row.get("last_seq"), int) or not 0 <= row["last_seq"] < 2**53:
        return False
    return names_session(row["session_id"], row["namespace"], row["kind"], row["key"])


def names_session(session: str, namespace: str, kind: str, key: str) -> bool:
    """Return whether a session id is derived from this key."""
    return session_id(namespace, kind, key)[-16:] == session[-16:]


def session_id(namespace: str, kind: str, key: str) -> str:
    """Derive a session id by the rule of the contract, for a chat whose own is lost."""
    digest = hashlib.sha256(f"{namespace}\0{kind}\0{key}".encode(errors="replace")).hexdigest()
    return f"sc-{key if kind == 'chat' else kind}-{digest[:16]}"


def archive(db: Connection, chat: int, archived: bool) -> None:
    db.execute("UPDATE chats SET archived = ? WHERE id = ?", (archived, chat))
    touch(db, chat)


def page(db: Connection, page: ChatQuery) -> tuple[list[Chat], str | None]:
    """Return chats by newest activity, and where the next page starts."""
    where, values = conditions(page)
    if page.query:
        where.append(
            "(c.title LIKE ? ESCAPE '\\' OR c.preview LIKE ? ESCAPE '\\' OR c.key LIKE ? ESCAPE '\\')"
        )
        values += [f"%{_escape_like(page.query)}%"] * 3
    if page.cursor is not None:
        where.append("(c.last_activity, c.id) < (?, ?)")
        values += _list_cursor(page.cursor)
    rows = db.execute(
        f"SELECT {_QUALIFIED} FROM chats c WHERE {' AND '.join(where)}"
        " ORDER BY c.last_activity DESC, c.id DESC LIMIT ?",
        (*values, page.limit + 1),
    ).fetchall()
    chats = [_chat(row) for row in rows[: page.limit]]
    more = len(rows) > page.limit
    return chats, f"{chats[-1].last_activity}.{chats[-1].id}" if more else None


def message_hit(
    db: Connection, message: int, text: str, matches: Sequence[tuple[int, int]], start: int
) -> MessageHit:
    """Return a found message with its chat; `text` is the part of it that is shown."""
    row = db.execute(
        f"SELECT {_QUALIFIED}, m.turn, m.item FROM messages m JOIN chats c ON c.id = m.chat WHERE m.id = ?",
        (message,),
    ).fetchone()
    turn, item = row[-2:]
    return MessageHit(_chat(row[:-2]), turn, item, text, tuple(matches), start)


def changed_since(db: Connection, revision: int) -> list[Chat]:
    rows = db.execute(f"SELECT {_COLUMNS} FROM chats WHERE revision > ? ORDER BY revision", (revision,))
    return [_chat(row) for row in rows]


def revision(db: Connection) -> int:
    (value,) = db.execute("SELECT value FROM counters WHERE name = 'revision'").fetchone()
    return int(value)


def conditions(page: ChatQuery) -> tuple[list[str], list[Any]]:
    """Return what restricts the chats `c` of a page, and its values."""
    where: list[str] = ["c.deleted = 0", _WHOLE]
    values: list[Any] = []
    if page.namespace is not None:
        where.append("c.namespace = ?")
        values.append(page.namespace)
    if page.project_path is not None:
        marks = ", ".join("?" * len(page.project_ids))
        where.append(f"c.project_path IN (SELECT path FROM projects WHERE path = ? OR hash IN ({marks}))")
        values += [page.project_path, *page.project_ids]
    if page.archived is not None:
        where.append("c.archived = ?")
        values.append(page.archived)
    return where, values


_WHOLE = (
    "NOT EXISTS (SELECT 1 FROM requests r WHERE r.chat = c.id AND r.outcome IS NULL AND r.kind = 'import'"
    " AND r.data ->> '$.created')"
)
"""A chat that an import creates is listed once the import has ended."""


def _escape_like(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _list_cursor(cursor: str) -> list[int]:
    activity, _, id = cursor.partition(".")
    if not (activity.isdecimal() and id.isdecimal() and len(cursor) < 40):
        raise invalid_param("cursor", "a `nextCursor` of an earlier answer")
    return [int(activity), int(id)]


def offset(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not (cursor.isdecimal() and len(cursor) < 12):
        raise invalid_param("cursor", "a `nextCursor` of an earlier answer")
    return int(cursor)


def _chat(row: tuple[Any, ...]) -> Chat:
    id, namespace, kind, key, session_id, epoch, last_seq, title, title_by, project_path, config, *rest = row
    (
        archived,
        created_at,
        last_activity,
        turns,
        preview,
        state,
        head,
        paused,
        usage,
        model,
        deleted,
        revision,
        open_files,
        elsewhere,
    ) = rest
    return Chat(
        id=id,
        key=ChatKey(namespace, kind, key, session_id),
        epoch=epoch,
        last_seq=last_seq,
        title=title,
        title_by=title_by,
        project_path=None if elsewhere else project_path,
        listed_path=project_path,
        config=decode(config),
        archived=bool(archived),
        created_at=created_at,
        last_activity=last_activity,
        turns=turns,
        preview=preview,
        state=state,
        head=head,
        queue_paused=bool(paused),
        usage=usage_of(decode(usage)),
        model=model,
        deleted=bool(deleted),
        revision=revision,
        open_files=decode(open_files),
    )
