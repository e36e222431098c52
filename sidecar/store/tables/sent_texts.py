"""Rows of what the model was sent: requests, and the pieces of their texts, which requests and chats share.

A chat that uses a node uses its parts, and on no earlier day. So a known node ends the descent of a write, and what
was last used before a day can be removed without looking at the requests that are left.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from ...model.content import Turn
from ...model.events import decode
from ...model.sent import StoredRequest
from ...system.clock import DAY_MS
from ...text.pieces import HASH_BYTES, PieceTree, TextPiece, split_hashes
from ..engine.sqlite import Connection

NO_TEXT = bytes(HASH_BYTES)
"""The hash of a block without text."""

_TEXT, _COMPRESSED, _NODE = 0, 1, 2

_LEVELS = 8
"""Nodes above a piece, at most: of a text of 100 MB there are six. More is a damaged row that contains itself."""


def put(
    db: Connection,
    chat: int,
    epoch: str,
    turn: str,
    number: int,
    texts: Sequence[PieceTree | None],
    now: int,
) -> None:
    """Store a request. A chat that was deleted or created again meanwhile gets none."""
    wanted = "SELECT 1 FROM chats WHERE id = ? AND epoch = ? AND deleted = 0"
    if not db.execute(wanted, (chat, epoch)).fetchone():
        return
    for tree in texts:
        if tree is not None:
            _use(db, chat, now // DAY_MS, tree.root, tree.pieces)
    roots = b"".join(NO_TEXT if tree is None else tree.root for tree in texts)
    db.execute(
        "INSERT OR REPLACE INTO sent_requests (chat, turn, number, ts, texts) VALUES (?, ?, ?, ?, ?)",
        (chat, turn, number, now, roots),
    )


def read(db: Connection, chat: int, turn: Turn, number: int) -> StoredRequest | None:
    """Return a request of a turn; None when the turn has made no such request."""
    rows = db.execute(
        "SELECT ts, data FROM events WHERE chat = ?1 AND type = 'context.assembled' AND turn = ?2 AND seq BETWEEN"
        " (SELECT first_seq FROM turns WHERE chat = ?1 AND id = ?2)"
        " AND (SELECT coalesce(last_seq, 9e15) FROM turns WHERE chat = ?1 AND id = ?2) ORDER BY seq",
        (chat, turn.id),
    ).fetchall()
    if not 0 < number <= len(rows):
        return None
    ts, data = rows[number - 1]
    manifest = decode(data)
    query = "SELECT texts FROM sent_requests WHERE chat = ? AND turn = ? AND number = ?"
    found = db.execute(query, (chat, turn.id, number)).fetchone()
    roots = split_hashes(found[0]) if found else []
    texts = [_text(db, root) for root in roots] if len(roots) == len(manifest["blocks"]) else None
    return StoredRequest(manifest, texts, number, len(rows), ts)


def _use(db: Connection, chat: int, day: int, hash: bytes, pieces: dict[bytes, TextPiece]) -> None:
    """Note that the chat uses a piece today, with its parts; store what is not stored yet."""
    piece = pieces[hash]
    query = (
        "SELECT t.id, u.day FROM sent_texts t LEFT JOIN sent_uses u ON u.chat = ? AND u.text = t.id"
        " WHERE t.hash = ?"
    )
    id, used = db.execute(query, (chat, hash)).fetchone() or (_insert(db, piece), None)
    if used is not None and used >= day:
        return
    db.execute(
        "INSERT INTO sent_uses (chat, text, day) VALUES (?, ?, ?)"
        " ON CONFLICT (chat, text) DO UPDATE SET day = excluded.day",
        (chat, id, day),
    )
    for part in piece.parts:
        _use(db, chat, day, part, pieces)


def _insert(db: Connection, piece: TextPiece) -> int | None:
    kind, data = _NODE, piece.data
    if not piece.is_node:
        short = zlib.compress(piece.data)
        kind, data = (_COMPRESSED, short) if len(short) < len(piece.data) else (_TEXT, piece.data)
    return db.execute(
        "INSERT INTO sent_texts (hash, kind, data) VALUES (?, ?, ?)", (piece.hash, kind, data)
    ).lastrowid


def _text(db: Connection, root: bytes) -> str | None:
    """Return the text of a tree; None when a piece is missing or damaged."""
    if root == NO_TEXT:
        return ""
    try:
        return b"".join(_parts(db, root, _LEVELS)).decode("utf-8", "surrogatepass")
    except (LookupError, UnicodeDecodeError, zlib.error):
        return None


def _parts(db: Connection, hash: bytes, levels: int) -> list[bytes]:
    row = db.execute("SELECT kind, data FROM sent_texts WHERE hash = ?", (hash,)).fetchone()
    if row is None or not levels:
        raise LookupError(hash)
    kind, data = row
    if kind == _NODE:
        return [part for child in split_hashes(data) for part in _parts(db, child, levels - 1)]
    return [zlib.decompress(data) if kind == _COMPRESSED else data]


def remove_before(db: Connection, ts: int, most: int) -> int | None:
    """Remove some of what one chat was sent before a time and has not been sent since; None when there is nothing.

    The requests are removed last, because they say that the chat has such pieces.
    """
    found = db.execute("SELECT chat FROM sent_requests WHERE ts < ? LIMIT 1", (ts,)).fetchone()
    if found is None:
        return None
    (chat,) = found
    query = "SELECT text FROM sent_uses WHERE chat = ? AND day < ? LIMIT ?"
    old = db.execute(query, (chat, ts // DAY_MS, most)).fetchall()
    if old:
        db.executemany("DELETE FROM sent_uses WHERE chat = ? AND text = ?", [(chat, text) for (text,) in old])
        db.executemany(
            "DELETE FROM sent_texts WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM sent_uses WHERE text = ?1)",
            old,
        )
        return len(old)
    requests = "SELECT turn, number FROM sent_requests WHERE chat = ?1 AND ts < ?2 LIMIT ?3"
    return db.execute(
        f"DELETE FROM sent_requests WHERE chat = ?1 AND (turn, number) IN ({requests})", (chat, ts, most)
    ).rowcount
