"""Rows of `projects`: which paths are one project, whether it is trusted, where it moved. SQL for that table
only.

A project is looked up by its ids, newest version first: rows of an older program are found by the older id.
"""

from __future__ import annotations

import msgspec

from ..engine.sqlite import Connection

TrustedFiles = dict[str, tuple[str, str]]
"""By path: the hash of a file's bytes, and its text for display."""


class StoredProject(msgspec.Struct, frozen=True):
    """A folder as a request names it: its real path, and its current and former ids."""

    path: str
    ids: tuple[str, ...]


def register(db: Connection, project: StoredProject, now: int) -> None:
    """Record the project under its newest id. Another spelling of a trusted folder is the same folder."""
    db.execute(
        "INSERT INTO projects (path, hash, trusted, changed_at, trusted_files)"
        " VALUES (?1, ?2, (SELECT coalesce(max(trusted), 0) FROM projects WHERE hash = ?2), ?3,"
        " (SELECT trusted_files FROM projects WHERE hash = ?2 AND trusted = 1 LIMIT 1))"
        " ON CONFLICT (path) DO UPDATE SET hash = excluded.hash, moved_to = NULL"
        " WHERE hash <> excluded.hash OR moved_to IS NOT NULL",
        (project.path, project.ids[0], now),
    )


def paths(db: Connection, project: StoredProject) -> list[str]:
    """Return every known spelling of the project's path, the given one included."""
    marks = ", ".join("?" * len(project.ids))
    rows = db.execute(f"SELECT path FROM projects WHERE hash IN ({marks})", project.ids)
    return list(dict.fromkeys([project.path, *(path for (path,) in rows)]))


def trust(
    db: Connection, project: StoredProject, trusted: bool, now: int, files: TrustedFiles | None = None
) -> None:
    """Set the trust in a project; `files` are what the trust is bound to."""
    register(db, project, now)
    text = None if files is None else msgspec.json.encode(files).decode()
    for path in paths(db, project):
        db.execute(
            "UPDATE projects SET trusted = ?, changed_at = ?, trusted_files = ? WHERE path = ?",
            (trusted, now, text, path),
        )


def trusted_projects(db: Connection) -> dict[str, TrustedFiles | None]:
    """Return the trusted projects with the files that the trust is bound to; None for trust older than this
    record."""
    rows = db.execute("SELECT path, trusted_files FROM projects WHERE trusted = 1")
    return {
        path: None if text is None else msgspec.json.decode(text, type=TrustedFiles) for path, text in rows
    }


def bind_trust(db: Connection, path: str, files: TrustedFiles) -> None:
    """Bind trust that was given before its files were recorded."""
    text = msgspec.json.encode(files).decode()
    db.execute(
        "UPDATE projects SET trusted_files = ? WHERE path = ? AND trusted = 1 AND trusted_files IS NULL",
        (text, path),
    )


def all_paths(db: Connection) -> list[str]:
    return [path for (path,) in db.execute("SELECT path FROM projects WHERE moved_to IS NULL")]


def writable_folders(db: Connection) -> list[str]:
    """Return the folders that commands of some chat may write to: projects, and further folders of chats."""
    query = (
        "SELECT path FROM projects UNION SELECT project_path FROM chats WHERE project_path IS NOT NULL"
        " UNION SELECT each.value FROM chats, json_each(chats.config, '$.extraFolders') AS each"
        " WHERE chats.config LIKE '%\"extraFolders\"%' AND json_valid(chats.config)"
    )
    return [path for (path,) in db.execute(query) if isinstance(path, str)]


def is_known(db: Connection, project: StoredProject) -> bool:
    marks = ", ".join("?" * len(project.ids))
    query = f"SELECT 1 FROM projects WHERE path = ? OR hash IN ({marks}) LIMIT 1"
    return db.execute(query, (project.path, *project.ids)).fetchone() is not None
