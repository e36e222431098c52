"""What happens to a damaged database: a fresh one takes its place with every row that could be saved, and the damaged
one is kept beside it under another name.

Only with no other holder. Nothing is deleted, and a crash in between leaves the old database or a finished new one.
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

from ..model.events import decode, encode
from ..model.failures import StorageFailed
from ..system.files import sync_folder
from . import chats, holding, index_removal, opening, projections, rebuilding, recall
from .salvage import Source, Table
from .sqlite import FAULTS, Connection, connect
from .verifying import problems

logger = logging.getLogger(__name__)

SCRATCH, FINISHED = ".scratch", opening.FINISHED
SUFFIXES = ("", "-wal", "-shm")

_NOT_COPIED = {"events", "chats", "blobs", "leases", "counters", *projections.TABLES}
_DERIVED = {
    "last_seq": 0,
    "turns": 0,
    "preview": None,
    "state": "idle",
    "head": None,
    "queue_paused": 0,
    "usage": "{}",
    "open_files": "[]",
}
"""Columns of a chat that its events say anew."""


class Recovery(msgspec.Struct, frozen=True):
    """What was done: where the damaged file is, what was wrong, and how much was saved and lost."""

    damaged: str
    problems: list[str]
    chats: int
    events: int
    lost: int


def recover(
    path: str, announce: Callable[[str], None] = lambda state: None, *, empty: bool = False
) -> Recovery | None:
    """Put a sound database in the place of a damaged one; None when it is sound already.

    The caller has closed its connections. StorageFailed (corrupt) while another process has the database open, and
    when not one chat can be saved, unless an `empty` one is wanted.
    """
    hold = holding.alone(path)
    if hold is None:
        raise holding.Held()
    try:
        finish(path)
        scratch = Path(path + SCRATCH)
        for suffix in ("", "-wal"):
            _copy(path + suffix, f"{scratch}{suffix}")
        try:
            found = _problems(scratch)
            if all(kind == "index" for kind, _ in found):
                _renew_indexes(path, bool(found))
                return None
            announce("quarantined")
            return _replace(path, scratch, [message for _, message in found], empty)
        finally:
            for suffix in SUFFIXES:
                with suppress(OSError):
                    os.unlink(f"{scratch}{suffix}")
    finally:
        hold.release()


def finish(path: str) -> None:
    """End a recovery that was cut: the salvaged database was finished, and did not get its name any more."""
    if opening.is_unfinished(path):
        swap(path)


def resume(path: str) -> None:
    """As `finish`, for one who has not locked the database; another who is at it is waited for elsewhere."""
    hold = holding.alone(path)
    if hold:
        finish(path)
        hold.release()


def _problems(scratch: Path) -> list[tuple[str, str]]:
    try:
        db = connect(str(scratch), isolation_level=None)
    except FAULTS as error:
        return [("file", str(error))]
    try:
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return [(problem.kind, problem.message) for problem in problems(db)]
    except FAULTS as error:
        return [("file", str(error))]
    finally:
        db.close()


def _replace(path: str, scratch: Path, found: list[str], empty: bool) -> Recovery:
    # What was looked at may have been changed by looking; the rows are read from a copy of the file as it was.
    for suffix in ("", "-wal"):
        _copy(path + suffix, f"{scratch}{suffix}")
    with suppress(OSError):
        os.unlink(f"{scratch}-shm")
    part = Path(f"{path}{FINISHED}.part")
    part.unlink(missing_ok=True)
    damaged = beside(path, "damaged")
    os.close(os.open(part, os.O_CREAT | os.O_RDWR | os.O_EXCL, 0o600))
    source = Source(scratch)
    try:
        chats_saved, events, lost = _save(source, part, damaged)
    finally:
        source.close()
    if not chats_saved and not empty:
        part.unlink()
        raise StorageFailed(
            "corrupt",
            "The database is damaged, and not one chat of it can be read; it was left where it is."
            " `sidecar doctor --repair` puts it aside and begins anew, `sidecar restore` brings a backup back",
            action="run_doctor",
        )
    _sync(part)
    os.replace(part, path + FINISHED)
    swap(path, damaged)
    logger.error("a damaged database was replaced", extra={"damaged": damaged, "lost": lost})
    return Recovery(damaged, found[:20], chats_saved, events, lost)


def beside(path: str, word: str) -> str:
    """A name that no file has yet, for one that is put aside."""
    return f"{path}.{word}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{secrets.token_hex(2)}"


def swap(path: str, aside: str | None = None) -> None:
    """Move the files that are there aside, the database first, and give the finished one the name. When that is cut,
    the next who opens the database ends it."""
    aside = aside or beside(path, "damaged")
    for suffix in SUFFIXES:
        if os.path.lexists(path + suffix):
            os.rename(path + suffix, aside + suffix)
    os.rename(path + FINISHED, path)
    sync_folder(os.path.dirname(path))


def _save(source: Source, target: Path, damaged: str) -> tuple[int, int, int]:
    db = connect(str(target), isolation_level=None)
    try:
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")
        db.execute("PRAGMA journal_mode = MEMORY")
        db.execute("PRAGMA synchronous = OFF")  # made durable as a whole, before it gets its name
        opening.migrate(db, opening.known_migrations(), lambda state: None)
        db.execute("BEGIN")
        saved = _save_rows(db, source, damaged)
        db.execute("COMMIT")
        db.execute("PRAGMA journal_mode = WAL")
        return saved
    finally:
        db.close()


def _save_rows(db: Connection, source: Source, damaged: str) -> tuple[int, int, int]:
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
    promised = _save_chats(db, source, tables.get("chats"))
    if "events" in source.unreadable or "events" not in tables or _short(db, promised):
        db.executemany(insert, source.raw_events())
        promised |= _save_chats(db, source, None)
    index_removal.reindex(db)
    return _rebuild(db, promised, damaged)


def _copy_table(db: Connection, source: Source, table: Table) -> None:
    known = {row[1] for row in db.execute(f"PRAGMA table_info('{table.name}')")}
    places = [place for place, name in enumerate(table.columns) if name in known]
    if not places:
        return  # a table that this program does not know
    names = ", ".join(table.columns[place] for place in places)
    insert = f"INSERT OR REPLACE INTO {table.name} ({names}) VALUES ({', '.join('?' * len(places))})"
    for row in source.rows(table):
        with suppress(*FAULTS):  # a row that breaks the table's own rules is none of ours
            db.execute(insert, [row[place] for place in places])


def _save_chats(db: Connection, source: Source, table: Table | None) -> dict[int, int]:
    """Enter the chats, and say how far the journal of each had reached."""
    columns = [row[1] for row in db.execute("PRAGMA table_info(chats)")]
    have = {id for (id,) in db.execute("SELECT id FROM chats")}
    promised: dict[int, int] = {}
    rows = list(source.rows(table)) if table else []
    named = [dict(zip(table.columns, row, strict=False)) for row in rows] if table else []
    named += (
        [dict(zip(columns, row, strict=False)) for row in source.raw_chats(len(columns))] if not table else []
    )
    for row in named:
        if row["id"] not in have and chats.is_genuine(row):
            have.add(row["id"])
            promised[row["id"]] = row["last_seq"]
            _enter_chat(db, {name: row.get(name) for name in columns})
    if table is None:
        _enter_nameless(db, source, columns)
    return promised


def _enter_chat(db: Connection, row: dict[str, Any]) -> None:
    if not row["deleted"]:
        row |= _DERIVED
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


def _enter_nameless(db: Connection, source: Source, columns: list[str]) -> None:
    """Chats whose row is gone: their session id may stand in its index; else they get a new name."""
    query = "SELECT chat, min(ts), max(ts) FROM events WHERE chat NOT IN (SELECT id FROM chats) GROUP BY chat"
    ids = source.session_ids()
    for chat, first, last in db.execute(query).fetchall():
        name = f"recovered-{chat}"
        row: dict[str, Any] = {
            "id": chat,
            "session_id": ids.get(chat) or chats.session_id("default", "chat", name),
            "namespace": "default",
            "kind": "chat",
            "key": name,
            "epoch": secrets.token_hex(6),
            "created_at": first,
            "last_activity": last,
            "deleted": 0,
        }
        _enter_chat(db, {column: row.get(column) for column in columns})


def _short(db: Connection, promised: dict[int, int]) -> bool:
    """Whether a chat does not reach as far as it should, or leaps."""
    found = {
        chat: (last, seqs)
        for chat, last, seqs in db.execute(
            "SELECT chat, max(seq), sum(seq - first + 1) FROM events GROUP BY chat"
        )
    }
    whole = all(found.get(chat, (0, 0)) == (last, last) for chat, last in promised.items())
    return not whole or not set(found) <= set(promised)


def _rebuild(db: Connection, promised: dict[int, int], damaged: str) -> tuple[int, int, int]:
    db.execute("DELETE FROM events WHERE chat IN (SELECT id FROM chats WHERE deleted = 1)")
    ids = [id for (id,) in db.execute("SELECT id FROM chats WHERE deleted = 0")]
    now = time.time_ns() // 1_000_000
    events = lost = 0
    for id in ids:
        made = rebuilding.rebuild(db, id, promised.get(id, 0))
        gone = sum(end - start + 1 for start, end in made.gaps)
        if gone:  # cursors of before would point at other events
            db.execute("UPDATE chats SET epoch = ? WHERE id = ?", (secrets.token_hex(6), id))
        data = encode({"damaged": damaged, "gaps": made.gaps[:100]})
        db.execute(
            "INSERT OR REPLACE INTO recoveries (chat, ts, turns, saved, lost, data)"
            " SELECT id, ?, turns, ?, ?, ? FROM chats WHERE id = ?",
            (now, made.saved, gone, data, id),
        )
        events, lost = events + made.saved, lost + gone
    # A turn that was running is closed by whoever opens the chat, as after a crash: its owner is nobody.
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
    """Make every full-text index anew from the rows that it stands for."""
    chats.rebuild_words(db)
    recall.rebuild(db)
    index_removal.reindex(db)


def _copy(source: str, target: str) -> None:
    """Copy what can be read; a sector that cannot be is left blank. A file that is not there has no copy."""
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
