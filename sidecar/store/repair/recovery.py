"""Replaces a damaged database by a new one with every row that could be salvaged, and keeps the damaged one
beside it.

Requires the exclusive lock. Nothing is deleted, and a crash leaves either the old database or a finished new
one.
"""

from __future__ import annotations

import logging
import os
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from ...model.events import decode, encode
from ...model.failures import StorageFailed
from ...system import clock
from ...system.files import sync_folder
from ...system.own_files import Inode
from ..engine import file_lock, opening
from ..engine.file_watch import inode_of
from ..engine.sqlite import STORAGE_ERRORS, Connection, connect, storage_failure
from ..search import index_removal, message_search
from ..tables import chats, mcp_secrets, migrations, projections
from . import rebuild
from .integrity import problems
from .salvage import DamagedDatabase, SalvageTable

logger = logging.getLogger(__name__)

SCRATCH_SUFFIX, SALVAGED_SUFFIX = ".scratch", opening.SALVAGED_SUFFIX
SUFFIXES = ("", "-wal", "-shm")

_NOT_COPIED = {"events", "chats", "chat_keys", "blobs", "leases", "counters", *projections.TABLES}
_RESET_COLUMNS = {
    "last_seq": 0,
    "turns": 0,
    "preview": None,
    "state": "idle",
    "head": None,
    "queue_paused": 0,
    "usage": "{}",
    "open_files": "[]",
}
"""Columns of a chat that are derived from its events again."""


class Recovery(msgspec.Struct, frozen=True):
    """What was done: where the damaged file is, what was wrong, and how much was saved and lost."""

    damaged: str
    problems: list[str]
    chats: int
    events: int
    lost: int


def recover(
    path: str,
    announce: Callable[[str], None] = lambda state: None,
    *,
    empty: bool = False,
    timeout_s: float = 0.0,
    without_log: Inode | None = None,
) -> Recovery | None:
    """Replace a damaged database by an undamaged one; None when nothing is wrong with it.

    `without_log` is the database whose log was overwritten: it is damaged in any case, and clients may have seen
    events that are lost.

    The caller has closed its connections, and waits for others to close theirs. Raises Repairing when another
    process repairs it already; StorageFailed (corrupt) while a process that does not close it has the
    database open, and when no chat can be saved, unless `empty` is set.
    """
    wanted = file_lock.begin_repair(path)
    try:
        hold = file_lock.lock_exclusive(path, timeout_s)
        if hold is None:
            raise file_lock.LockHeld()
        try:
            return _recover(path, announce, empty, without_log)
        finally:
            hold.release()
    except StorageFailed:
        raise
    except (
        OSError,
        *STORAGE_ERRORS,
    ) as error:  # the disk does not accept the copy; the database stays as it is
        raise storage_failure(error, path) from error
    finally:
        wanted.release()


def _recover(
    path: str, announce: Callable[[str], None], empty: bool, without_log: Inode | None
) -> Recovery | None:
    # First: an earlier repair may have ended between its two renames, and the damaged file is then aside
    # already.
    finish_recovery(path)
    scratch = Path(path + SCRATCH_SUFFIX)
    try:
        for suffix in ("", "-wal"):
            _copy(path + suffix, f"{scratch}{suffix}")
        # On a copy: opening a damaged file can change it, and reading what is left of it may need the state
        # before.
        found = _problems(scratch)
        # Another process may have repaired it before this one got the lock.
        if is_older := without_log is not None and inode_of(os.stat(path)) == without_log:
            found.append(("log", "The write-ahead log was overwritten"))
        # Indexes are derived: renewing them in place loses nothing, and the file needs no replacement.
        if all(kind == "index" for kind, _ in found):
            _renew_indexes(path, bool(found))
            return None
        announce("quarantined")
        return _replace(path, scratch, [message for _, message in found], empty, is_older)
    finally:
        for part in (*(f"{scratch}{suffix}" for suffix in SUFFIXES), f"{path}{SALVAGED_SUFFIX}.part"):
            with suppress(OSError):
                os.unlink(part)


def finish_recovery(path: str) -> None:
    """Finish an interrupted recovery: the new database was complete but not yet renamed."""
    if opening.is_unfinished(path):
        swap_in_recovered(path)


def resume_recovery(path: str, timeout_s: float) -> None:
    """As `finish_recovery`, for a caller without the lock; waits for another process that is doing it."""
    try:
        wanted = file_lock.begin_repair(path)
    except file_lock.Repairing:
        return file_lock.await_repair(path)
    try:
        hold = file_lock.lock_exclusive(path, timeout_s)
        if hold:
            finish_recovery(path)
            hold.release()
    finally:
        wanted.release()


def _problems(scratch: Path) -> list[tuple[str, str]]:
    try:
        db = connect(str(scratch), isolation_level=None)
    except STORAGE_ERRORS as error:
        return [("file", str(error))]
    try:
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return [(problem.kind, problem.message) for problem in problems(db)]
    except STORAGE_ERRORS as error:
        return [("file", str(error))]
    finally:
        db.close()


def _replace(path: str, scratch: Path, found: list[str], empty: bool, is_older: bool) -> Recovery:
    # The check may have changed the file; the rows are read from a copy made before it.
    for suffix in ("", "-wal"):
        _copy(path + suffix, f"{scratch}{suffix}")
    with suppress(OSError):
        os.unlink(f"{scratch}-shm")
    part = Path(f"{path}{SALVAGED_SUFFIX}.part")
    part.unlink(missing_ok=True)
    damaged = aside_path(path, "damaged")
    os.close(os.open(part, os.O_CREAT | os.O_RDWR | os.O_EXCL, 0o600))
    source = DamagedDatabase(scratch)
    try:
        chats_saved, events, lost = _save(source, part, damaged, is_older)
    finally:
        source.close()
    if not chats_saved and not empty:
        part.unlink()
        raise StorageFailed(
            "corrupt",
            "The database is damaged, and no chat in it can be read; it was not moved."
            " `sidecar doctor --repair` moves it aside and creates an empty one, `sidecar restore` restores a backup",
            action="run_doctor",
        )
    # Before it gets its name: the next start trusts a file with that suffix to be complete.
    _sync(part)
    os.replace(part, path + SALVAGED_SUFFIX)
    swap_in_recovered(path, damaged)
    logger.error("a damaged database was replaced", extra={"damaged": damaged, "lost": lost})
    return Recovery(damaged, found[:20], chats_saved, events, lost)


def aside_path(path: str, word: str) -> str:
    """Return an unused name for a file that is moved aside."""
    return f"{path}.{word}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{secrets.token_hex(2)}"


def swap_in_recovered(path: str, aside: str | None = None) -> None:
    """Move the existing files aside, the database first, and rename the finished one. After an interruption,
    the next process that opens the database completes this."""
    aside = aside or aside_path(path, "damaged")
    for suffix in SUFFIXES:
        if os.path.lexists(path + suffix):
            os.rename(path + suffix, aside + suffix)
    # Last, so that every interruption leaves either the old name or the suffix, never two databases.
    os.rename(path + SALVAGED_SUFFIX, path)
    sync_folder(os.path.dirname(path))


def _save(source: DamagedDatabase, target: Path, damaged: str, is_older: bool) -> tuple[int, int, int]:
    db = connect(str(target), isolation_level=None)
    try:
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")
        db.execute("PRAGMA journal_mode = MEMORY")
        db.execute("PRAGMA synchronous = OFF")  # synced as a whole before it is renamed
        migrations.migrate(db, migrations.known_migrations(), lambda state: None)
        db.execute("BEGIN")
        saved = _save_rows(db, source, damaged)
        if is_older:  # cursors may point at lost events, in chats of which nothing else tells
            db.execute("UPDATE chats SET epoch = lower(hex(randomblob(6))) WHERE deleted = 0")
        mcp_secrets.move_out(db)  # the damaged file may have an older schema
        db.execute("COMMIT")
        db.execute("PRAGMA journal_mode = WAL")
        return saved
    finally:
        db.close()


def _save_rows(db: Connection, source: DamagedDatabase, damaged: str) -> tuple[int, int, int]:
    tables = {table.name: table for table in source.tables()}
    for table in tables.values():
        if table.name not in _NOT_COPIED:
            _copy_table(db, source, table)
    db.executemany(
        "INSERT OR REPLACE INTO blobs (id, data, size, mime_type, name, created_at) VALUES (?, ?, ?, ?, ?, ?)",
        source.blobs(tables.get("blobs")),
    )
    insert = "INSERT OR IGNORE INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
    db.executemany(insert, source.events(tables.get("events")))
    expected_seqs = _save_chats(db, source, tables.get("chats"))
    unread = any(name in source.unreadable or name not in tables for name in ("events", "chats"))
    if unread or _is_incomplete(db, expected_seqs):
        db.executemany(insert, source.raw_events())
        expected_seqs |= _save_chats(db, source, None)
    _enter_lost(db, source, tables.get("chat_keys"))
    index_removal.reindex(db)
    return _rebuild(db, expected_seqs, damaged)


def _copy_table(db: Connection, source: DamagedDatabase, table: SalvageTable) -> None:
    known = {row[1] for row in db.execute(f"PRAGMA table_info('{table.name}')")}
    places = [place for place, name in enumerate(table.columns) if name in known]
    if not places:
        return  # a table that this program does not know
    names = ", ".join(table.columns[place] for place in places)
    insert = f"INSERT OR REPLACE INTO {table.name} ({names}) VALUES ({', '.join('?' * len(places))})"
    for row in source.rows(table):
        with suppress(*STORAGE_ERRORS):  # a row that violates the constraints of the table is garbage
            db.execute(insert, [row[place] for place in places])


def _save_chats(db: Connection, source: DamagedDatabase, table: SalvageTable | None) -> dict[int, int]:
    """Insert the chats, and return the last seq of each journal."""
    columns = [row[1] for row in db.execute("PRAGMA table_info(chats)")]
    have = {id for (id,) in db.execute("SELECT id FROM chats")}
    expected_seqs: dict[int, int] = {}
    rows = list(source.rows(table)) if table else []
    named = [dict(zip(table.columns, row, strict=False)) for row in rows] if table else []
    named += (
        [dict(zip(columns, row, strict=False)) for row in source.raw_chats(len(columns))] if not table else []
    )
    for row in named:
        if row["id"] not in have and chats.is_genuine(row):
            have.add(row["id"])
            expected_seqs[row["id"]] = row["last_seq"]
            if (
                table is None
            ):  # possibly an older version: events after it may be lost, and cursors point at them
                row["epoch"] = secrets.token_hex(6)
            _insert_chat(db, {name: row.get(name) for name in columns})
    return expected_seqs


def _insert_chat(db: Connection, row: dict[str, Any]) -> None:
    if not row["deleted"]:
        row |= _RESET_COLUMNS
    for name in ("archived", "created_at", "last_activity", "deleted", "revision"):
        row[name] = row[name] if isinstance(row[name], int) else 0
    row["config"] = row["config"] if _is_object(row["config"]) else "{}"
    values = {name: value for name, value in row.items() if value is not None}
    db.execute(
        f"INSERT OR IGNORE INTO chats ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})",
        list(values.values()),
    )


def _is_object(text: Any) -> bool:
    try:
        return isinstance(decode(text), dict)
    except (TypeError, ValueError):
        return False


def _enter_lost(db: Connection, source: DamagedDatabase, keys: SalvageTable | None) -> None:
    """Insert chats whose row is lost, by the second copy of their key. If that is lost too, the session id
    may be in the index of the rows; otherwise they get a new key."""
    have = {id for (id,) in db.execute("SELECT id FROM chats")}
    query = "SELECT chat, min(ts), max(ts) FROM events WHERE chat NOT IN (SELECT id FROM chats) GROUP BY chat"
    times = {chat: (first, last) for chat, first, last in db.execute(query)}
    for chat, *key in source.keys(keys):
        if chat not in have:
            have.add(chat)
            _enter_key(db, chat, key, *times.get(chat, (0, 0)))
    ids = source.session_ids()
    for chat in times.keys() - have:
        name = f"recovered-{chat}"
        session = ids.get(chat) or chats.session_id("default", "chat", name)
        _enter_key(db, chat, [session, "default", "chat", name], *times[chat])


def _enter_key(db: Connection, chat: int, key: list[Any], first: int, last: int) -> None:
    session_id, namespace, kind, value = key
    row: dict[str, Any] = {
        "id": chat,
        "session_id": session_id,
        "namespace": namespace,
        "kind": kind,
        "key": value,
        "project_path": value if kind == "project" else None,
        "elsewhere": 1 if kind == "project" else 0,
        "epoch": secrets.token_hex(6),
        "created_at": first,
        "last_activity": last,
        "deleted": 0,
    }
    columns = [name for _, name, *_ in db.execute("PRAGMA table_info(chats)")]
    _insert_chat(db, {column: row.get(column) for column in columns})


def _is_incomplete(db: Connection, expected_seqs: dict[int, int]) -> bool:
    """Return whether a journal ends too early or has a gap."""
    found = {
        chat: (last, seqs)
        for chat, last, seqs in db.execute(
            "SELECT chat, max(seq), sum(seq - first + 1) FROM events GROUP BY chat"
        )
    }
    whole = all(found.get(chat, (0, 0)) == (last, last) for chat, last in expected_seqs.items())
    return not whole or not set(found) <= set(expected_seqs)


def _rebuild(db: Connection, expected_seqs: dict[int, int], damaged: str) -> tuple[int, int, int]:
    db.execute("DELETE FROM events WHERE chat IN (SELECT id FROM chats WHERE deleted = 1)")
    ids = [id for (id,) in db.execute("SELECT id FROM chats WHERE deleted = 0")]
    now = clock.now()
    events = lost = 0
    for id in ids:
        made = rebuild.rebuild(db, id, expected_seqs.get(id, 0))
        gone = sum(end - start + 1 for start, end in made.gaps)
        if gone:  # old cursors would point at other events
            db.execute("UPDATE chats SET epoch = ? WHERE id = ?", (secrets.token_hex(6), id))
        data = encode({"damaged": damaged, "gaps": made.gaps[:100]})
        db.execute(
            "INSERT OR REPLACE INTO recoveries (chat, ts, turns, saved, lost, data)"
            " SELECT id, ?, turns, ?, ?, ? FROM chats WHERE id = ?",
            (now, made.saved, gone, data, id),
        )
        events, lost = events + made.saved, lost + gone
    # A turn that was running is closed by the next process that opens the chat, as after a crash: it has no
    # owner.
    db.execute(
        "INSERT INTO leases (chat, generation, instance, boot, namespace, pid, started)"
        " SELECT id, 1, 'damaged', '', '', 0, 0 FROM chats WHERE deleted = 0"
    )
    return len(ids), events, lost


def _renew_indexes(path: str, broken: bool) -> None:
    if not broken:
        return
    db = connect(path, isolation_level=None)
    try:
        db.execute("BEGIN IMMEDIATE")
        renew_indexes(db)
        db.execute("COMMIT")
    finally:
        db.close()


def renew_indexes(db: Connection) -> None:
    """Rebuild every full-text index from its rows."""
    chats.rebuild_words(db)
    message_search.rebuild(db)
    index_removal.reindex(db)


def _copy(source: str, target: str) -> None:
    """Copy what can be read; an unreadable sector becomes zeros. A missing file has no copy."""
    with suppress(OSError):
        os.unlink(target)
    try:
        reading = os.open(source, os.O_RDONLY)
    except FileNotFoundError:
        return
    writing = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        size = os.fstat(reading).st_size
        for start in range(0, size, 65536):
            os.pwrite(writing, _readable(reading, start, min(65536, size - start)), start)
    finally:
        os.close(reading)
        os.close(writing)


def _readable(fd: int, start: int, length: int) -> bytes:
    try:
        return os.pread(fd, length, start)
    except OSError:
        # Down to single sectors: one that cannot be read costs its own bytes, not the 64 KiB around it.
        if length <= 512:
            return bytes(length)
        parts = [
            _readable(fd, place, min(512, start + length - place))
            for place in range(start, start + length, 512)
        ]
        return b"".join(parts)


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
