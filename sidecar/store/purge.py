"""Removing what is kept: of a chat, of a project, of all; and giving the room back to the disk.

What stays of a chat is its row without a word in it, so that it is known as deleted, and what was measured, added to
its project's totals. Every table is named here: `tests/store/test_purge.py` compares the lists with the schema.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..model.figures import Removed
from . import figures, index_custody, index_removal
from .projections import touch
from .sqlite import VERSION_INFO, Connection


class Table(msgspec.Struct, frozen=True):
    """What a purge calls the rows of a table when it counts them, and which of them belong to no chat."""

    counted: str | None = None
    of_no_chat: str = "1"


OF_A_CHAT = {
    "events": Table(),
    "turns": Table("turns"),
    "prompts": Table("prompts"),
    "messages": Table("messages"),
    "blob_uses": Table(),
    "patches": Table("patches"),
    "requests": Table("requests"),
    "permission_rules": Table("rules"),
    "checkpoints": Table("checkpoints"),
    "tool_uses": Table(),
    "compactions": Table("compactions"),
    "standing": Table(),
    "snapshots": Table("snapshots"),
    "restored": Table(),
    "recoveries": Table(),
}
"""Tables whose column `chat` says whose a row is."""

OF_A_PROJECT = {
    "permission_rules": Table("rules", "chat IS NULL"),
    "rule_figures": Table(),
    "figures": Table("totals", f"chat = {figures.NO_CHAT}"),
}
"""Tables whose column `project` is a path; what is a chat's in them goes with the chat."""

OF_NEITHER = {
    "calibrations": Table(),
    "hook_figures": Table(),
    "pages": Table("pages"),
    "page_counts": Table(),
}

OTHERWISE = ("chats", "projects", "counters", "leases", "blobs")
"""Tables that are purged in their own way, or say nothing of what was said; so are those of the index, and full-text
tables, which follow what they index."""

FREE_PAGES = 2048
"""Given back at once, 8 MiB: between two such steps turns can commit."""

_OWN_BLOBS = (
    "FROM blobs WHERE id IN (SELECT blob FROM blob_uses WHERE chat = ?1)"
    " AND id NOT IN (SELECT blob FROM blob_uses WHERE chat <> ?1)"
)
_OWN_PAGES = (
    "FROM pages WHERE EXISTS (SELECT 1 FROM index_sources s JOIN index_owners o ON o.id = s.owner"
    " WHERE o.chat = ? AND s.kind = 'page'"
    " AND (s.label IN (url, location) OR substr(s.label, 1, length(url) + 1) = url || ' '))"
)
"""Fetched pages that the chat has read: the index names them by their address, and what was picked of them."""

_UNUSED_BLOBS = "FROM blobs WHERE id NOT IN (SELECT blob FROM blob_uses)"


def count_chat(db: Connection, chat: int) -> Removed:
    """What a purge of the chat would remove."""
    turns, events, deleted = db.execute(
        "SELECT turns, last_seq, deleted FROM chats WHERE id = ?", (chat,)
    ).fetchone()
    if deleted:
        return Removed()
    counts = _counts(db, OF_A_CHAT, "chat = ?", (chat,))
    blobs = _blobs(db, _OWN_BLOBS, (chat,))
    sources, chunks = index_custody.count(db, "o.chat = ?", (chat,))
    (pages,) = db.execute(f"SELECT count(*) {_OWN_PAGES}", (chat,)).fetchone()
    held = {
        "chats": 1,
        "turns": turns,
        "events": events,
        "sources": sources,
        "chunks": chunks,
        "pages": pages,
    }
    return Removed(**{**counts, **blobs, **held})


def purge_chat(db: Connection, chat: int, now: int) -> Removed:
    """Purge every word of the chat; the row that stays says only that it was here."""
    removed = count_chat(db, chat)
    if not removed.chats:
        return removed
    db.execute(f"DELETE {_OWN_BLOBS}", (chat,))
    db.execute(f"DELETE {_OWN_PAGES}", (chat,))
    _forget_words(db)
    index_removal.remove_chat(db, chat)
    left = {"purgedChats": 1, "purgedTurns": removed.turns, "purgedEvents": removed.events}
    figures.fold(db, chat, left, now)
    for table in OF_A_CHAT:
        db.execute(f"DELETE FROM {table} WHERE chat = ?", (chat,))
    db.execute(
        "UPDATE chats SET deleted = 1, title = NULL, title_by = NULL, preview = NULL, project_path = NULL,"
        " model = NULL, config = '{}', usage = '{}', open_files = '[]', state = 'idle', head = NULL, queue_paused = 0,"
        " turns = 0 WHERE id = ?",
        (chat,),
    )
    touch(db, chat)
    return removed


def chats_of(db: Connection, paths: Sequence[str] | None) -> list[int]:
    """The chats of a project, or all."""
    where, values = ("", ()) if paths is None else (f" AND project_path IN ({_marks(paths)})", tuple(paths))
    return [id for (id,) in db.execute(f"SELECT id FROM chats WHERE deleted = 0{where} ORDER BY id", values)]


def count_rest(db: Connection, paths: Sequence[str] | None) -> Removed:
    """What a project has beside its chats; without paths, all that belongs to no chat."""
    if paths is None:
        counts = _counts(db, OF_A_PROJECT | OF_NEITHER, "1", ()) | _blobs(db, _UNUSED_BLOBS, ())
    else:
        counts = _counts(db, OF_A_PROJECT, f"project IN ({_marks(paths)})", tuple(paths))
    indexed = "o.chat IS NULL" if paths is None else f"o.chat IS NULL AND o.project IN ({_marks(paths)})"
    sources, chunks = index_custody.count(db, indexed, paths or ())
    where, values = _rows_of_projects(paths)
    (known,) = db.execute(f"SELECT count(*) FROM projects WHERE {where}", values).fetchone()
    return Removed(**{**counts, "projects": known, "sources": sources, "chunks": chunks})


def purge_rest(db: Connection, paths: Sequence[str] | None) -> Removed:
    """Purge what a project has beside its chats: rules, figures, trust; without paths, also the user's own rules.

    Chats that could not be purged keep what is theirs.
    """
    removed = count_rest(db, paths)
    where, values = ("1", ()) if paths is None else (f"project IN ({_marks(paths)})", tuple(paths))
    for name, table in OF_A_PROJECT.items():
        db.execute(f"DELETE FROM {name} WHERE {where} AND {table.of_no_chat}", values)
    _forget_words(db)
    index_custody.remove_of_no_chat(db, paths)
    if paths is None:
        for name in OF_NEITHER:
            db.execute(f"DELETE FROM {name}")
        db.execute(f"DELETE {_UNUSED_BLOBS}")
    where, values = _rows_of_projects(paths)
    # A chat that stays keeps its project's name, but nobody trusts that any more.
    db.execute(f"UPDATE projects SET trusted = 0, moved_to = NULL WHERE {where}", values)
    db.execute(
        f"DELETE FROM projects WHERE {where} AND path NOT IN"
        " (SELECT project_path FROM chats WHERE project_path IS NOT NULL)",
        values,
    )
    return removed


def free_pages(db: Connection) -> int:
    return int(db.execute("PRAGMA freelist_count").fetchone()[0])


def gives_back(db: Connection) -> bool:
    """Whether the file can be made smaller bit by bit; one that an older program made cannot."""
    return bool(db.execute("PRAGMA auto_vacuum").fetchone()[0])


def give_back(db: Connection) -> int:
    """Cut some free pages off the file; how many are left."""
    db.execute(f"PRAGMA incremental_vacuum({FREE_PAGES})").fetchall()
    return free_pages(db)


def rewrite(db: Connection) -> None:
    """Write the whole file anew, without free pages, so that from now on it can be made smaller bit by bit."""
    db.execute("PRAGMA auto_vacuum = INCREMENTAL")
    db.execute("VACUUM")


def _counts(
    db: Connection, tables: dict[str, Table], where: str, values: tuple[object, ...]
) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name, table in tables.items():
        if table.counted:
            query = f"SELECT count(*) FROM {name} WHERE {where} AND {table.of_no_chat}"
            (count,) = db.execute(query, values).fetchone()
            counts[table.counted] = counts.get(table.counted, 0) + count
    return counts


def _blobs(db: Connection, which: str, values: tuple[object, ...]) -> dict[str, int]:
    # `length` reads no byte of a blob, where the column behind it would be found by reading them all.
    query = f"SELECT count(*), coalesce(sum(length(data)), 0) {which}"
    count, size = db.execute(query, values).fetchone()
    return {"blobs": count, "blob_bytes": size}


def _rows_of_projects(paths: Sequence[str] | None) -> tuple[str, tuple[str, ...]]:
    """Those of these paths, and those from where projects were moved to them."""
    if paths is None:
        return "1", ()
    marks = _marks(paths)
    return f"(path IN ({marks}) OR moved_to IN ({marks}))", (*paths, *paths)


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def _forget_words(db: Connection) -> None:
    """Let the words of messages leave their pages at once, where this SQLite can; else they do by and by."""
    if VERSION_INFO < (3, 42):
        return
    for name in ("words", "stems", "grams"):
        db.execute(f"INSERT INTO {name} ({name}, rank) VALUES ('secure-delete', 1)")
