"""Rows of `projects`: which paths are one project, who trusts it, where it went. SQL for that table alone.

A project is asked for by its ids, newest version first: what an older program wrote is found by the older one.
"""

from __future__ import annotations

import msgspec

from .sqlite import Connection


class Project(msgspec.Struct, frozen=True):
    """A folder as a request names it: its real path, and the ids that it has or had."""

    path: str
    ids: tuple[str, ...]


def note(db: Connection, project: Project, now: int) -> None:
    """The project is here, under its newest id. Another spelling of a trusted folder is the same folder."""
    db.execute(
        "INSERT INTO projects (path, hash, trusted, changed_at)"
        " VALUES (?1, ?2, (SELECT coalesce(max(trusted), 0) FROM projects WHERE hash = ?2), ?3)"
        " ON CONFLICT (path) DO UPDATE SET hash = excluded.hash, moved_to = NULL"
        " WHERE hash <> excluded.hash OR moved_to IS NOT NULL",
        (project.path, project.ids[0], now),
    )


def paths(db: Connection, project: Project) -> list[str]:
    """Every spelling of the project's path that is known, the asked one included."""
    marks = ", ".join("?" * len(project.ids))
    rows = db.execute(f"SELECT path FROM projects WHERE hash IN ({marks})", project.ids)
    return list(dict.fromkeys([project.path, *(path for (path,) in rows)]))


def trust(db: Connection, project: Project, trusted: bool, now: int) -> None:
    note(db, project, now)
    for path in paths(db, project):
        db.execute("UPDATE projects SET trusted = ?, changed_at = ? WHERE path = ?", (trusted, now, path))


def trusted(db: Connection) -> set[str]:
    return {path for (path,) in db.execute("SELECT path FROM projects WHERE trusted = 1")}


def moved_to(db: Connection, path: str) -> str | None:
    row = db.execute("SELECT moved_to FROM projects WHERE path = ?", (path,)).fetchone()
    return row[0] if row else None


def is_known(db: Connection, project: Project) -> bool:
    marks = ", ".join("?" * len(project.ids))
    query = f"SELECT 1 FROM projects WHERE path = ? OR hash IN ({marks}) LIMIT 1"
    return db.execute(query, (project.path, *project.ids)).fetchone() is not None
