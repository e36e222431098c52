"""Purges the data of a chat, of a project or of everything, and returns the free pages to the disk.

A chat is first marked as deleted, in one short transaction; then its rows are removed in slices, so that other
chats write in between. After an interruption the next start goes on (`unfinished`). What stays of a chat is its
row without any text, which marks it as deleted, and its measurements, which are added to the totals of its
project. Every table is listed here: `tests/unit/store/test_purge.py` compares the lists with the schema.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle

import msgspec

from ..model.figures import PurgeCounts
from .engine.database import Database
from .engine.slices import write_slices
from .engine.sqlite import Connection
from .search import index_owners, index_removal, message_removal
from .tables import figures
from .tables.projections import touch


class PurgeTable(msgspec.Struct, frozen=True):
    """How a purge names the rows of a table in its counts, and which of them belong to no chat."""

    counted: str | None = None
    of_no_chat: str = "1"


CHAT_TABLES = {
    "events": PurgeTable(),
    "turns": PurgeTable("turns"),
    "prompts": PurgeTable("prompts"),
    "messages": PurgeTable("messages"),
    "blob_uses": PurgeTable(),
    "patches": PurgeTable("patches"),
    "requests": PurgeTable("requests"),
    "permission_rules": PurgeTable("rules"),
    "checkpoints": PurgeTable("checkpoints"),
    "tool_uses": PurgeTable(),
    "compactions": PurgeTable("compactions"),
    "standing": PurgeTable(),
    "snapshots": PurgeTable("snapshots"),
    "restored": PurgeTable(),
    "recoveries": PurgeTable(),
    "mcp_secrets": PurgeTable(),
    "sent_requests": PurgeTable(),
    "sent_uses": PurgeTable(),
    "handed_requests": PurgeTable(),
    "engine_sessions": PurgeTable(),
}
"""Tables whose column `chat` names the owner of a row."""

PROJECT_TABLES = {
    "permission_rules": PurgeTable("rules", "chat IS NULL"),
    "rule_figures": PurgeTable(),
    "figures": PurgeTable("totals", f"chat = {figures.NO_CHAT}"),
}
"""Tables whose column `project` is a path. Rows of a chat in them are purged with the chat."""

GLOBAL_TABLES = {
    "calibrations": PurgeTable(),
    "hook_figures": PurgeTable(),
    "pages": PurgeTable("pages"),
    "page_counts": PurgeTable(),
}

SPECIAL_TABLES = (
    *("chats", "chat_keys", "projects", "counters", "leases", "blobs", "sent_texts", "origin"),
    "message_part_texts",
)
"""Tables that are purged separately, by a trigger, or contain no text of a chat. The tables of the index and the
full-text tables, which follow the tables they index, are handled separately too."""


class SlicedTable(msgspec.Struct, frozen=True):
    """A table whose rows are removed in slices: the column that names a row, and the bytes of one."""

    key: str
    size: str = "0"


MESSAGE_COST = 16
"""As how many bytes a character of a message counts: its words are also removed from the full-text tables."""

SLICED_TABLES = {
    "messages": SlicedTable("id", f"length(text) * {MESSAGE_COST}"),
    "events": SlicedTable("seq", "length(data)"),
    "prompts": SlicedTable("id"),
    "turns": SlicedTable("ordinal"),
    "patches": SlicedTable("ordinal", "length(data)"),
    "snapshots": SlicedTable("ordinal", "length(course)"),
    "blob_uses": SlicedTable("blob"),
    "sent_requests": SlicedTable("turn", "length(texts)"),
    "sent_uses": SlicedTable("text"),
}
"""The tables of a chat that grow with its turns, and have an index that starts with the chat. The rows of the
others are few, and are removed when the chat is marked."""

SLICE_BYTES = 1024 * 1024
"""Bytes of the rows that one part of a transaction removes, unless one row alone has more: deleted pages are
overwritten."""


class _SharedTable(msgspec.Struct, frozen=True):
    """A table whose rows several chats use, the bytes of a row, and where the uses are."""

    table: str
    size: str
    used: str
    column: str


_SHARED = (
    _SharedTable("blobs", "t.size", "blob_uses", "blob"),
    _SharedTable("sent_texts", "length(t.data)", "sent_uses", "text"),
)

_ONLY_THIS_CHATS_BLOBS = (
    "FROM blobs WHERE id IN (SELECT blob FROM blob_uses WHERE chat = ?1) AND NOT EXISTS"
    " (SELECT 1 FROM blob_uses u JOIN chats c ON c.id = u.chat WHERE u.blob = blobs.id AND u.chat <> ?1"
    " AND c.deleted = 0)"
)
_OWN_PAGES = (
    "FROM pages WHERE EXISTS (SELECT 1 FROM index_sources s JOIN index_owners o ON o.id = s.owner"
    " WHERE o.chat = ? AND s.kind = 'page'"
    " AND (s.label IN (url, location) OR substr(s.label, 1, length(url) + 1) = url || ' '))"
)
"""Fetched pages that the chat has read: the index stores their address and the passages taken from them."""

_UNUSED_BLOBS = "FROM blobs WHERE id NOT IN (SELECT blob FROM blob_uses)"


def count_chat(db: Connection, chat: int) -> PurgeCounts:
    """Count what a purge of the chat would remove."""
    turns, events, deleted = db.execute(
        "SELECT turns, last_seq, deleted FROM chats WHERE id = ?", (chat,)
    ).fetchone()
    if deleted:
        return PurgeCounts()
    counts = _counts(db, CHAT_TABLES, "chat = ?", (chat,))
    blobs = _blobs(db, _ONLY_THIS_CHATS_BLOBS, (chat,))
    sources, chunks = index_owners.count(db, "o.chat = ?", (chat,))
    (pages,) = db.execute(f"SELECT count(*) {_OWN_PAGES}", (chat,)).fetchone()
    held = {
        "chats": 1,
        "turns": turns,
        "events": events,
        "sources": sources,
        "chunks": chunks,
        "pages": pages,
    }
    return PurgeCounts(**{**counts, **blobs, **held})


class Marked(msgspec.Struct, frozen=True):
    """A chat that is marked as deleted, and what was removed or hidden with the mark."""

    chat: int
    epoch: str
    removed: PurgeCounts


def mark(db: Connection, chat: int, now: int) -> Marked | None:
    """Mark a chat as deleted; only its row stays visible, without text. None when it was deleted before."""
    found = db.execute(
        "SELECT turns, last_seq, epoch FROM chats WHERE id = ? AND deleted = 0", (chat,)
    ).fetchone()
    if found is None:
        return None
    turns, events, epoch = found
    # Marked in the same transaction as the chat: from here on no search finds its texts, although their
    # rows are still there.
    indexed = index_removal.mark_chat(db, chat)
    counts = {
        "chats": 1,
        "turns": turns,
        "events": events,
        "sources": indexed.sources,
        "chunks": indexed.chunks,
    }
    index_removal.mark_messages(db, chat)
    figures.fold(db, chat, {"purgedChats": 1, "purgedTurns": turns, "purgedEvents": events}, now)
    for name, table in CHAT_TABLES.items():
        if name not in SLICED_TABLES:
            count = db.execute(f"DELETE FROM {name} WHERE chat = ?", (chat,)).rowcount
            if table.counted:
                counts[table.counted] = counts.get(table.counted, 0) + count
    db.execute(
        "UPDATE chats SET deleted = 1, title = NULL, title_by = NULL, preview = NULL, project_path = NULL,"
        " model = NULL, config = '{}', usage = '{}', open_files = '[]', state = 'idle', head = NULL, queue_paused = 0,"
        " turns = 0 WHERE id = ?",
        (chat,),
    )
    touch(db, chat)
    return Marked(chat, epoch, PurgeCounts(**counts))


async def finish(db: Database, marked: Sequence[tuple[int, str]]) -> PurgeCounts:
    """Remove the rows of chats that are marked as deleted, given with their epochs, in slices."""

    tables = cycle(index_removal.MESSAGE_TABLES)

    def remove(db: Connection, most: int) -> PurgeCounts | None:
        left = PurgeBudget(most)
        for chat, epoch in marked:
            # A chat that was created again may have the same id; its epoch is another.
            query = "SELECT 1 FROM chats WHERE id = ? AND epoch = ? AND deleted = 1"
            # Asked in each transaction: others write between two slices.
            if not left.is_used and db.execute(query, (chat, epoch)).fetchone():
                remove_rows(db, chat, left)
        if left.removed and left.removed.messages:
            index_removal.merge_some(db, next(tables))
        return left.removed

    total = PurgeCounts()
    for removed in await write_slices(db, remove, last=True) if marked else ():
        total = total.plus(removed)
    return total


def find_unfinished(db: Connection) -> list[tuple[int, str]]:
    """Return the chats that are marked as deleted and have rows left, with their epochs."""
    rows = db.execute("SELECT id, epoch FROM chats WHERE deleted = 1").fetchall()
    return [(chat, epoch) for chat, epoch in rows if has_rows(db, chat)]


def has_rows(db: Connection, chat: int) -> bool:
    return any(
        db.execute(f"SELECT 1 FROM {table} WHERE chat = ? LIMIT 1", (chat,)).fetchone()
        for table in SLICED_TABLES
    )


class PurgeBudget:
    """How much one transaction may still remove, and what it has removed; None when that is nothing."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.bytes = SLICE_BYTES
        self.removed: PurgeCounts | None = None

    @property
    def is_used(self) -> bool:
        return self.rows <= 0 or self.bytes <= 0

    def use(self, rows: int, size: int, counts: PurgeCounts) -> None:
        self.rows -= rows
        self.bytes -= size
        self.removed = (self.removed or PurgeCounts()).plus(counts)


def remove_rows(db: Connection, chat: int, left: PurgeBudget) -> None:
    """Remove rows of a chat from the sliced tables, and the blobs and sent texts that only this chat uses."""
    for shared in _SHARED:
        if not left.is_used:
            _remove_uses(db, shared, chat, left)
    if not left.is_used and message_removal.remove_piece(db, chat):
        left.use(1, left.bytes, PurgeCounts())  # nothing else in this part
    for name, table in SLICED_TABLES.items():
        if left.is_used:
            return
        keys, size = _choose(db, table, f"FROM {name} WHERE chat = ?", (chat,), left)
        db.executemany(
            f"DELETE FROM {name} WHERE chat = ? AND {table.key} = ?", [(chat, key) for key in keys]
        )
        counted = CHAT_TABLES[name].counted
        if keys:
            counts = {counted: len(keys)} if counted and counted != "turns" else {}
            left.use(len(keys), size, PurgeCounts(**counts))


def _remove_uses(db: Connection, shared: _SharedTable, chat: int, left: PurgeBudget) -> None:
    """Remove what says that a chat uses blobs or sent texts, and those that no other chat uses."""
    used, row = shared.used, f"u.{shared.column}"
    query = (
        f"SELECT {row}, coalesce({shared.size}, 0), EXISTS (SELECT 1 FROM {used} o JOIN chats c ON c.id = o.chat"
        f" WHERE o.{shared.column} = {row} AND o.chat <> ?1 AND c.deleted = 0)"
        f" FROM {used} u LEFT JOIN {shared.table} t ON t.id = {row} WHERE u.chat = ?1 LIMIT {left.rows}"
    )
    uses, own, total = list[tuple[int, object]](), list[tuple[object]](), 0
    for key, size, is_shared in db.execute(query, (chat,)):
        if uses and not is_shared and total + size > left.bytes:
            left.bytes = 0  # nothing else in this part: the rest of the uses goes first
            break
        uses.append((chat, key))
        if not is_shared:
            own.append((key,))
            total += size
    db.executemany(f"DELETE FROM {shared.table} WHERE id = ?", own)
    db.executemany(f"DELETE FROM {used} WHERE chat = ? AND {shared.column} = ?", uses)
    if uses:
        is_blob = shared.table == "blobs"
        counts = PurgeCounts(blobs=len(own), blob_bytes=total) if is_blob else PurgeCounts()
        left.use(len(uses), total, counts)


def _remove_blobs(db: Connection, which: str, values: tuple[object, ...], left: PurgeBudget) -> None:
    keys, size = _choose(db, SlicedTable("id", "size"), which, values, left)
    db.executemany("DELETE FROM blobs WHERE id = ?", [(key,) for key in keys])
    if keys:
        left.use(len(keys), size, PurgeCounts(blobs=len(keys), blob_bytes=size))


def _remove_pages(db: Connection, which: str, values: tuple[object, ...], left: PurgeBudget) -> None:
    keys, size = _choose(db, SlicedTable("key", "bytes"), which, values, left)
    db.executemany("DELETE FROM pages WHERE key = ?", [(key,) for key in keys])
    if keys:
        left.use(len(keys), size, PurgeCounts(pages=len(keys)))


def _choose(
    db: Connection, table: SlicedTable, which: str, values: tuple[object, ...], left: PurgeBudget
) -> tuple[list[object], int]:
    """Return the keys of rows that fit the budget, at least one, and their bytes."""
    keys: list[object] = []
    total = 0
    for key, size in db.execute(f"SELECT {table.key}, {table.size} {which} LIMIT {left.rows}", values):
        if keys and total + size > left.bytes:
            break
        keys.append(key)
        total += size
    return keys, total


def remove_pages_of(db: Connection, chat: int, most: int) -> PurgeCounts | None:
    """Remove some fetched pages that a chat has read; None when there are none. Call it before `mark`, which
    removes what says that they are of this chat."""
    left = PurgeBudget(most)
    _remove_pages(db, _OWN_PAGES, (chat,), left)
    return left.removed


def chats_of(db: Connection, paths: Sequence[str] | None) -> list[int]:
    """Return the chats of a project, or all chats."""
    where, values = (
        ("", ()) if paths is None else (f" AND project_path IN ({_placeholders(paths)})", tuple(paths))
    )
    return [id for (id,) in db.execute(f"SELECT id FROM chats WHERE deleted = 0{where} ORDER BY id", values)]


def count_rest(db: Connection, paths: Sequence[str] | None) -> PurgeCounts:
    """Count what a project has stored besides its chats; without paths, everything that belongs to no chat."""
    if paths is None:
        counts = _counts(db, PROJECT_TABLES | GLOBAL_TABLES, "1", ()) | _blobs(db, _UNUSED_BLOBS, ())
    else:
        counts = _counts(db, PROJECT_TABLES, f"project IN ({_placeholders(paths)})", tuple(paths))
    indexed = (
        "o.chat IS NULL" if paths is None else f"o.chat IS NULL AND o.project IN ({_placeholders(paths)})"
    )
    sources, chunks = index_owners.count(db, indexed, paths or ())
    where, values = _rows_of_projects(paths)
    (known,) = db.execute(f"SELECT count(*) FROM projects WHERE {where}", values).fetchone()
    return PurgeCounts(**{**counts, "projects": known, "sources": sources, "chunks": chunks})


async def remove_caches(db: Database) -> PurgeCounts:
    """Remove fetched pages and unused blobs, in slices."""

    def remove(db: Connection, most: int) -> PurgeCounts | None:
        left = PurgeBudget(most)
        _remove_pages(db, "FROM pages", (), left)
        if not left.is_used:
            _remove_blobs(db, _UNUSED_BLOBS, (), left)
        return left.removed

    total = PurgeCounts()
    for removed in await write_slices(db, remove):
        total = total.plus(removed)
    return total


async def remove_unused_blobs(db: Database, before: int) -> int:
    """Remove blobs that no event refers to and that were stored before a time, in slices; return how many."""

    def remove(db: Connection, most: int) -> PurgeCounts | None:
        left = PurgeBudget(most)
        _remove_blobs(db, f"{_UNUSED_BLOBS} AND created_at < ?", (before,), left)
        return left.removed

    return sum(removed.blobs for removed in await write_slices(db, remove))


def purge_rest(db: Connection, paths: Sequence[str] | None) -> PurgeCounts:
    """Purge what a project has stored besides its chats: rules, figures, trust; without paths, also the
    user's own rules. Indexed texts are marked; `remove_caches` has removed pages and blobs.

    Chats that could not be purged keep their data.
    """
    removed = count_rest(db, paths)
    where, values = ("1", ()) if paths is None else (f"project IN ({_placeholders(paths)})", tuple(paths))
    for name, table in PROJECT_TABLES.items():
        db.execute(f"DELETE FROM {name} WHERE {where} AND {table.of_no_chat}", values)
    index_owners.mark_of_no_chat(db, paths)
    if paths is None:
        for name in GLOBAL_TABLES:
            db.execute(f"DELETE FROM {name}")
        db.execute(f"DELETE {_UNUSED_BLOBS}")
    where, values = _rows_of_projects(paths)
    # A chat that stays keeps the name of its project, which is no longer trusted.
    db.execute(f"UPDATE projects SET trusted = 0, moved_to = NULL WHERE {where}", values)
    db.execute(
        f"DELETE FROM projects WHERE {where} AND path NOT IN"
        " (SELECT project_path FROM chats WHERE project_path IS NOT NULL)",
        values,
    )
    return removed


def free_pages(db: Connection) -> int:
    return int(db.execute("PRAGMA freelist_count").fetchone()[0])


def can_release_pages(db: Connection) -> bool:
    """Return whether the file can shrink step by step; one created by an older version cannot."""
    return bool(db.execute("PRAGMA auto_vacuum").fetchone()[0])


def release_pages(db: Connection, most: int) -> int:
    """Release some free pages of the file; return how many are left."""
    db.execute(f"PRAGMA incremental_vacuum({int(most)})").fetchall()
    return free_pages(db)


def rewrite(db: Connection) -> None:
    """Rewrite the whole file without free pages, so that it can shrink step by step from now on."""
    db.execute("PRAGMA auto_vacuum = INCREMENTAL")
    db.execute("VACUUM")


def _counts(
    db: Connection, tables: dict[str, PurgeTable], where: str, values: tuple[object, ...]
) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name, table in tables.items():
        if table.counted:
            query = f"SELECT count(*) FROM {name} WHERE {where} AND {table.of_no_chat}"
            (count,) = db.execute(query, values).fetchone()
            counts[table.counted] = counts.get(table.counted, 0) + count
    return counts


def _blobs(db: Connection, which: str, values: tuple[object, ...]) -> dict[str, int]:
    # `length` reads no byte of a blob; a column after the blob could only be found by reading all of it.
    query = f"SELECT count(*), coalesce(sum(length(data)), 0) {which}"
    count, size = db.execute(query, values).fetchone()
    return {"blobs": count, "blob_bytes": size}


def _rows_of_projects(paths: Sequence[str] | None) -> tuple[str, tuple[str, ...]]:
    """Return a condition for rows of these paths and of paths that were moved to them."""
    if paths is None:
        return "1", ()
    marks = _placeholders(paths)
    return f"(path IN ({marks}) OR moved_to IN ({marks}))", (*paths, *paths)


def _placeholders(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))
