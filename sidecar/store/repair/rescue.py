"""Copies a database from connections whose files were removed or replaced, and moves the copy to the original
path if no other file is there.

SQLite can read unlinked files while they are open. A copy increments `rescues`, so that other processes that
had the same files open recognise it.
"""

from __future__ import annotations

import os
from contextlib import closing, suppress
from pathlib import Path

from ...model.failures import StorageFailed
from ...system.files import sync_folder
from ..engine import file_copy, file_lock
from ..engine.file_watch import DatabaseFiles, Loss, Rescued, count_rescues
from ..engine.sqlite import STORAGE_ERRORS, Connection, connect
from .integrity import problems
from .recovery import SALVAGED_SUFFIX, aside_path, swap_in_recovered


def rescue(path: str, loss: Loss, files: DatabaseFiles, db: Connection) -> Rescued:
    """Copy everything that the connection can read; raises the error that prevented it."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    # One after the other: of two that put their copies there at once, one would take the other's away.
    lock = file_lock.lock_rescue(path)
    try:
        # What was lost when this process looked may have been put back by another one since then.
        return _rescue(path, files.loss() or loss, files, db)
    finally:
        lock.release()


def _rescue(path: str, loss: Loss, files: DatabaseFiles, db: Connection) -> Rescued:
    if loss.kind == "overwritten" and loss.file != path:
        copy = _checked_copy(path, loss, files, db)
    elif loss.kind == "overwritten":
        # This may be the only copy of something, and closing the database would change it.
        files.copy_contents(aside_path(path, "replaced"))
        copy = _checked_copy(path, loss, files, db)
        if files.has_header():  # another database: only the user knows which one is wanted
            return Rescued(copy, is_back=False)
    elif loss.file == path and _is_rescue_of(path, files, db):
        return Rescued(path, is_back=True, by_other=True)
    else:
        file_copy.copy(db, copy := aside_path(path, "rescued"))
    # Counted in the copy: among several rescuers the higher number wins, and the others take its copy.
    _count(copy)
    if loss.kind == "overwritten" or loss.file in (f"{path}-wal", f"{path}-shm"):
        # The file has no header or lost its log, so it does not contain the commits. The next start completes
        # an interruption here.
        os.replace(copy, path + SALVAGED_SUFFIX)
        swap_in_recovered(path, aside_path(path, "replaced"))
        return Rescued(path, is_back=True)
    if _put_back(copy, path):
        return Rescued(path, is_back=True)
    if _is_rescue_of(path, files, db):  # another process was faster
        os.unlink(copy)
        return Rescued(path, is_back=True, by_other=True)
    return Rescued(copy, is_back=False)


def _checked_copy(path: str, loss: Loss, files: DatabaseFiles, db: Connection) -> str:
    """Copy a database of which a file has other contents now: only what the others contain is still valid."""
    copy = aside_path(path, "rescued")
    file_copy.copy(db, copy)
    with closing(connect(copy, isolation_level=None)) as made:
        found = next((problem for problem in problems(made) if problem.kind != "index"), None)
        ours = files.token in (None, _token(made))
    if found or not ours:
        os.unlink(copy)
        raise StorageFailed("corrupt", f"{loss.file} was overwritten: {found or 'nothing in it can be read'}")
    return copy


def _put_back(copy: str, path: str) -> bool:
    """Rename the copy to the database's path, unless a file is there."""
    if os.path.lexists(path):
        return False
    finished, aside = path + SALVAGED_SUFFIX, aside_path(path, "replaced")
    os.replace(copy, finished)  # the next start recognises this name if this process ends here
    for suffix in ("-wal", "-shm"):  # of the old files: SQLite would read them as the copy's
        _move_aside(path, suffix, aside)
    try:
        os.link(finished, path)  # fails when another process was faster
    except FileExistsError:
        # Theirs is in place, and may have been written to since: ours is only a copy again.
        os.replace(finished, copy)
        return False
    except OSError:  # a file system without hard links
        os.rename(finished, path)
    else:
        os.unlink(finished)
    sync_folder(os.path.dirname(path))
    return True


def _move_aside(path: str, suffix: str, aside: str) -> None:
    with suppress(FileNotFoundError):
        os.rename(path + suffix, aside + suffix)


def _is_rescue_of(path: str, files: DatabaseFiles, db: Connection) -> bool:
    """Return whether the file is another process's copy of this database that contains everything this one
    can read."""
    if not os.path.isfile(path):
        return False
    # Immutable: with its log, SQLite would open ours, which has the same name, and empty the index of it. The
    # copy was put there without a log.
    name = f"{Path(path).absolute().as_uri()}?immutable=1"
    try:
        with closing(connect(name, uri=True, isolation_level=None)) as other:
            # A file of the same database with no higher count is only an old backup.
            # Of ours not asked now: its log may be lost too, and then it cannot be read.
            if _token(other) != files.token or count_rescues(other) <= files.rescues:
                return False
            theirs = _last_seqs(other)
    except STORAGE_ERRORS:
        return False
    try:
        return all(theirs.get(chat, -1) >= last for chat, last in _last_seqs(db).items())
    except STORAGE_ERRORS:
        return True  # nothing can be copied, so that is all there is


def _token(db: Connection) -> int:
    return int(db.execute("PRAGMA application_id").fetchone()[0])


def _last_seqs(db: Connection) -> dict[tuple[str, str], int]:
    """Return the last seq of each chat."""
    query = "SELECT session_id, epoch, last_seq FROM chats"
    return {(session, epoch): last for session, epoch, last in db.execute(query)}


def _count(copy: str) -> None:
    with closing(connect(copy, isolation_level=None)) as db:
        db.execute("PRAGMA synchronous = FULL")
        db.execute("INSERT OR REPLACE INTO counters VALUES ('rescues', ?)", (count_rescues(db) + 1,))
