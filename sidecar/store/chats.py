"""Rows of `chats`: find, create, list, search. Tombstones stay so that a deleted chat is known as deleted."""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

from ..model.chats import Chat, ChatKey, Hit, Page
from ..model.events import decode, encode
from ..model.failures import Refused, invalid
from .projections import touch, usage_of
from .sqlite import Connection

_COLUMNS = (
    "id, namespace, kind, key, session_id, epoch, last_seq, title, title_by, project_path, config, archived,"
    " created_at, last_activity, turns, preview, state, head, queue_paused, usage, model, deleted, revision,"
    " open_files"
)
_QUALIFIED = ", ".join("c." + name.strip() for name in _COLUMNS.split(","))


def find(db: Connection, session_id: str) -> Chat | None:
    row = db.execute(f"SELECT {_COLUMNS} FROM chats WHERE session_id = ?", (session_id,)).fetchone()
    return _chat(row) if row else None


def get(db: Connection, chat: int) -> Chat:
    row = db.execute(f"SELECT {_COLUMNS} FROM chats WHERE id = ?", (chat,)).fetchone()
    if row is None:
        raise Refused("deleted", "This chat was deleted and made again since")
    return _chat(row)


def create(db: Connection, key: ChatKey, project_path: str | None, config: dict[str, Any], now: int) -> Chat:
    """A new chat, or a deleted one made again under a new epoch."""
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
    """Whether a row that was found in a damaged file is a chat's: its session id follows from its key."""
    if not all(
        isinstance(row.get(name), str) for name in ("namespace", "kind", "key", "session_id", "epoch")
    ):
        return False
    if not isinstance(row.get("last_seq"), int) or not 0 <= row["last_seq"] < 2**53:
        return False
    return bool(session_id(row["namespace"], row["kind"], row["key"])[-16:] == row["session_id"][-16:])


def session_id(namespace: str, kind: str, key: str) -> str:
    """A session id by the contract's rule, for a chat whose own is lost."""
    digest = hashlib.sha256(f"{namespace}\0{kind}\0{key}".encode(errors="replace")).hexdigest()
    return f"sc-{key if kind == 'chat' else kind}-{digest[:16]}"


def archive(db: Connection, chat: int, archived: bool) -> None:
    db.execute("UPDATE chats SET archived = ? WHERE id = ?", (archived, chat))
    touch(db, chat)


def page(db: Connection, page: Page) -> tuple[list[Chat], str | None]:
    """Chats by newest activity, and where the next page starts."""
    where, values = _conditions(page)
    if page.query:
        where.append(
            "(c.title LIKE ? ESCAPE '\\' OR c.preview LIKE ? ESCAPE '\\' OR c.key LIKE ? ESCAPE '\\')"
        )
        values += [f"%{_escaped(page.query)}%"] * 3
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


def search(db: Connection, page: Page) -> tuple[list[Hit], str | None]:
    """Where the words of `page.query` were said, best first."""
    terms = _match_expression(page.query or "")
    if not terms:
        return [], None
    where, values = _conditions(page)
    offset = _offset(page.cursor)
    rows = db.execute(
        f"SELECT {_QUALIFIED}, m.turn, m.item, snippet(words, 0, '', '', '…', 16)"
        " FROM words JOIN messages m ON m.id = words.rowid JOIN chats c ON c.id = m.chat"
        f" WHERE words MATCH ? AND {' AND '.join(where)} ORDER BY words.rank, m.id DESC LIMIT ? OFFSET ?",
        (terms, *values, page.limit + 1, offset),
    ).fetchall()
    hits = [Hit(_chat(row[:-3]), *row[-3:]) for row in rows[: page.limit]]
    return hits, str(offset + page.limit) if len(rows) > page.limit else None


def changed_since(db: Connection, revision: int) -> list[Chat]:
    rows = db.execute(f"SELECT {_COLUMNS} FROM chats WHERE revision > ? ORDER BY revision", (revision,))
    return [_chat(row) for row in rows]


def revision(db: Connection) -> int:
    (value,) = db.execute("SELECT value FROM counters WHERE name = 'revision'").fetchone()
    return int(value)


def _conditions(page: Page) -> tuple[list[str], list[Any]]:
    where: list[str] = ["c.deleted = 0"]
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


def _match_expression(query: str) -> str:
    """The query's words, each quoted, so that no syntax of the index can be reached from outside."""
    words = query.replace("\0", " ").replace('"', " ").split()
    return " ".join(f'"{word}"' for word in words if any(letter.isalnum() for letter in word))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _list_cursor(cursor: str) -> list[int]:
    activity, _, id = cursor.partition(".")
    if not (activity.isdecimal() and id.isdecimal() and len(cursor) < 40):
        raise invalid("cursor", "a `nextCursor` of an earlier answer")
    return [int(activity), int(id)]


def _offset(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not (cursor.isdecimal() and len(cursor) < 12):
        raise invalid("cursor", "a `nextCursor` of an earlier answer")
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
    ) = rest
    return Chat(
        id=id,
        key=ChatKey(namespace, kind, key, session_id),
        epoch=epoch,
        last_seq=last_seq,
        title=title,
        title_by=title_by,
        project_path=project_path,
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
