"""The cache of fetched pages: find by key, count uses, and evict the least recently used above a size.

Knows nothing of HTTP: the caller decides when a page is fresh and builds its key.
"""

from __future__ import annotations

from typing import Literal

from ...model.pages import PageFigures, WebPage
from ..engine.sqlite import Connection

CacheOutcome = Literal["hits", "revalidated", "stale", "misses"]
"""How a request was answered; the names are those of `PageFigures`."""

_FIELDS = "url, status, kind, text, fetched_at, fresh_until, title, location, etag, last_modified, truncated"


def find(db: Connection, key: str) -> WebPage | None:
    row = db.execute(f"SELECT {_FIELDS} FROM pages WHERE key = ?", (key,)).fetchone()
    return WebPage(*row[:-1], bool(row[-1])) if row else None  # type: ignore[call-arg]


def count_outcome(db: Connection, outcome: CacheOutcome, key: str, now: int) -> None:
    """Count how a request was answered; a page that answered it counts as used."""
    if outcome != "misses":
        db.execute("UPDATE pages SET hits = hits + 1, used_at = ? WHERE key = ?", (now, key))
    db.execute(
        "INSERT INTO page_counts (name, count) VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET count = count + 1",
        (outcome,),
    )


def put(db: Connection, key: str, page: WebPage, max_bytes: int, now: int) -> None:
    """Store a page in place of the previous version, and keep its use count."""
    size = page.bytes
    if size > max_bytes:
        remove(db, key)
        return
    (hits,) = db.execute("SELECT coalesce(max(hits), 0) FROM pages WHERE key = ?", (key,)).fetchone()
    db.execute(
        f"INSERT OR REPLACE INTO pages (key, bytes, used_at, hits, {_FIELDS})"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            key, size, now, hits, page.url, page.status, page.kind, page.text, page.fetched_at, page.fresh_until,
            page.title, page.location, page.etag, page.last_modified, page.truncated,
        ),
    )  # fmt: skip
    _make_space(db, key, max_bytes)


def remove(db: Connection, key: str) -> None:
    db.execute("DELETE FROM pages WHERE key = ?", (key,))


def clear(db: Connection) -> int:
    """Delete all pages and counts of requests; return how many pages there were."""
    (pages,) = db.execute("SELECT count(*) FROM pages").fetchone()
    db.execute("DELETE FROM pages")
    db.execute("DELETE FROM page_counts")
    return int(pages)


def figures(db: Connection) -> PageFigures:
    pages, size = db.execute("SELECT count(*), coalesce(sum(bytes), 0) FROM pages").fetchone()
    return PageFigures(pages, size, **dict(db.execute("SELECT name, count FROM page_counts").fetchall()))


def _make_space(db: Connection, spared: str, max_bytes: int) -> None:
    (total,) = db.execute("SELECT coalesce(sum(bytes), 0) FROM pages").fetchone()
    if total <= max_bytes:
        return
    oldest = db.execute("SELECT rowid, bytes FROM pages WHERE key <> ? ORDER BY used_at, rowid", (spared,))
    doomed = []
    for rowid, size in oldest:
        if total <= max_bytes:
            break
        doomed.append((rowid,))
        total -= size
    db.executemany("DELETE FROM pages WHERE rowid = ?", doomed)
