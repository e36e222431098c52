"""Blobs: bytes stored under their hash, shared by the chats that use them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from ...model.failures import Refused
from ..engine.sqlite import Connection

UNUSED_MS = 24 * 3600 * 1000
"""A blob that no prompt has used within a day was uploaded and forgotten."""


class BlobInfo(msgspec.Struct, frozen=True):
    id: str
    size: int
    mime_type: str
    name: str | None


def put(db: Connection, data: bytes, mime_type: str, name: str | None, now: int) -> BlobInfo:
    id = hashlib.sha256(data).hexdigest()
    db.execute(
        "INSERT OR IGNORE INTO blobs (id, data, size, mime_type, name, created_at) VALUES (?, ?, ?, ?, ?, ?)",
        (id, data, len(data), mime_type, name, now),
    )
    return BlobInfo(id, len(data), mime_type, name)


def info(db: Connection, id: str) -> BlobInfo:
    row = db.execute("SELECT id, size, mime_type, name FROM blobs WHERE id = ?", (id,)).fetchone()
    if row is None:
        raise Refused("not_found", f"The blob {id[:80]!r} does not exist", params={"blobId": id[:80]})
    return BlobInfo(*row)


def read(db: Connection, id: str, offset: int, length: int) -> tuple[BlobInfo, bytes]:
    found = info(db, id)
    (data,) = db.execute(
        "SELECT substr(data, ?, ?) FROM blobs WHERE id = ?", (offset + 1, length, id)
    ).fetchone()
    return found, bytes(data or b"")


def texts(db: Connection, ids: Sequence[str]) -> dict[str, str]:
    """Return the blobs that are text, by id; missing ones are left out."""
    wanted = list(dict.fromkeys(ids))
    marks = ", ".join("?" * len(wanted))
    rows = db.execute(f"SELECT id, data FROM blobs WHERE id IN ({marks})", wanted) if wanted else ()
    return {id: bytes(data).decode(errors="replace") for id, data in rows}


def has_unused(db: Connection, now: int) -> bool:
    """Return whether there are unused blobs; reads none of their bytes."""
    query = "SELECT 1 FROM blobs WHERE created_at < ? AND id NOT IN (SELECT blob FROM blob_uses) LIMIT 1"
    return db.execute(query, (now - UNUSED_MS,)).fetchone() is not None
