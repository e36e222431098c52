"""Whose texts the index keeps: removing those of no chat, counting them, letting a moved project's go along."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..model.index import NewSource, Removed
from . import index_rows
from .index_removal import remove_owners
from .sqlite import Connection


def remove_of_no_chat(db: Connection, projects: Sequence[str] | None) -> Removed:
    """Remove what belongs to no chat, of these projects or of all."""
    if projects is None:
        return remove_owners(db, "chat IS NULL AND ?", 1)
    total = Removed()
    for project in projects:
        total = total.plus(remove_owners(db, "chat IS NULL AND project = ?", project))
    return total


def count(db: Connection, where: str, values: Sequence[Any]) -> tuple[int, int]:
    """How many sources the owners have for whom the condition holds, and how many chunks."""
    sources, chunks = db.execute(
        "SELECT count(*), coalesce(sum(s.chunks), 0) FROM index_sources s JOIN index_owners o ON o.id = s.owner"
        f" WHERE {where}",
        values,
    ).fetchone()
    return sources, chunks


def move(db: Connection, old: str, new: str) -> int:
    """Let what one project has belong to another; how many sources."""
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
            remove_owners(db, "id = ?", owner)
        moved += len(sources)
    return moved


def _copy(db: Connection, source: int, chat: int | None, project: str) -> None:
    """Keep a text for another owner, under its old name; a file that the owner has already is that owner's."""
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
        index_rows.Figures(*figures),
        index_rows.packed(whole),
    )
    db.execute("UPDATE index_sources SET key = key || '-old' WHERE id = ?", (source,))
    db.execute("UPDATE index_sources SET key = ? WHERE key = ?", (key, made.id))
