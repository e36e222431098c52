"""The owners of indexed texts: mark the texts of no chat for removal, count them, move those of a project."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...model.index import NewSource, RemovalCounts
from ..engine.sqlite import Connection
from . import index_rows
from .index_removal import mark_owners


def mark_of_no_chat(db: Connection, projects: Sequence[str] | None) -> RemovalCounts:
    """Mark what belongs to no chat, of these projects or of all."""
    if projects is None:
        return mark_owners(db, "chat IS NULL AND ?", 1)
    total = RemovalCounts()
    for project in projects:
        total = total.plus(mark_owners(db, "chat IS NULL AND project = ?", project))
    return total


def count(db: Connection, where: str, values: Sequence[Any]) -> tuple[int, int]:
    """Count the sources and chunks of the owners that match the condition."""
    sources, chunks = db.execute(
        "SELECT count(*), coalesce(sum(s.chunks), 0) FROM index_sources s JOIN index_owners o ON o.id = s.owner"
        f" WHERE {where}",
        values,
    ).fetchone()
    return sources, chunks


def move(db: Connection, old: str, new: str) -> int:
    """Move the sources of one project to another; return how many."""
    moved = 0
    for owner, chat in db.execute("SELECT id, chat FROM index_owners WHERE project = ?", (old,)).fetchall():
        query = "SELECT id FROM index_sources WHERE owner = ? ORDER BY id"
        sources = [id for (id,) in db.execute(query, (owner,))]
        taken = db.execute(
            "UPDATE OR IGNORE index_owners SET project = ? WHERE id = ?", (new, owner)
        ).rowcount
        if not taken:
            for source in sources:
                _copy(db, source, chat, new)
            mark_owners(db, "id = ?", owner)
        moved += len(sources)
    return moved


def _copy(db: Connection, source: int, chat: int | None, project: str) -> None:
    """Copy a text to another owner under its old label; a file that the owner already has stays as it is."""
    key, label, kind, tool, path, hash, *figures = db.execute(
        "SELECT key, label, kind, tool, path, hash, size, bytes, lines, tokens, truncated FROM index_sources"
        " WHERE id = ?",
        (source,),
    ).fetchone()
    if path is not None and index_rows.by_path(db, path, chat, project):
        return
    whole = index_rows.text(db, source) or ""
    made = index_rows.put(
        db,
        NewSource(whole, label, kind, chat=chat, project=project, tool=tool, path=path, hash=hash),
        index_rows.TextFigures(*figures),
        index_rows.compressed_parts(whole),
    )
    db.execute("UPDATE index_sources SET key = key || '-old' WHERE id = ?", (source,))
    db.execute("UPDATE index_sources SET key = ? WHERE key = ?", (key, made.id))
