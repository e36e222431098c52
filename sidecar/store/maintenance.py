"""Commands on a whole database from outside the server: backup, restore, verify, repair.

Backup and verify run while other processes use the database; restore and repair need it exclusively.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

import msgspec

from ..model.failures import Failure, Refused, StorageFailed
from . import origin
from .engine import file_copy, file_lock, opening
from .engine.sqlite import STORAGE_ERRORS, Connection, connect, storage_failure
from .repair import integrity
from .repair.recovery import Recovery, aside_path, recover, swap_in_recovered
from .tables import migrations

BUSY_MS = 30_000
"""How long to wait for a writer: checking a full-text index writes nothing but needs the write lock."""


def backup(path: str, target: str, progress: file_copy.ReportPages = lambda done, total: None) -> int:
    """Write the database to a new file while it is in use; return its size."""
    if os.path.lexists(target):
        raise Refused("already_exists", f"{target} already exists: name another file")
    with _locked_connection(path) as db:
        return _copy(db, target, progress)


def verify(
    path: str, progress: integrity.ReportRows = lambda part, done, total: None
) -> tuple[integrity.CheckedCounts, list[integrity.Problem]]:
    """Return everything that is wrong with a database, and how much was checked."""
    counts = integrity.CheckedCounts()
    with _locked_connection(path) as db:
        return counts, list(integrity.problems(db, progress, counts))


class Restored(msgspec.Struct, frozen=True):
    """Where the previous database was moved, if there was one, and what was removed from a backup of another
    installation."""

    aside: str | None
    taken: origin.Taken | None


def restore(source: str, path: str, installation: str, *, trust: bool = False) -> Restored:
    """Replace the database by a backup and keep the old files beside it.

    Unless `trust` is set, everything that could run or be allowed without asking is removed from a backup of
    another installation.
    """
    # Before the lock and any change: a bad backup must leave everything as it was.
    _check_backup(source)
    hold = file_lock.lock_exclusive(path)
    if hold is None:
        raise Refused("locked", f"{path} is in use: end every sidecar that has it open, then try again")
    try:
        with _open_connection(source) as db:
            # Under the name of a finished recovery: if we are killed after the old files are moved, the next
            # start completes the exchange.
            _copy(db, path + opening.SALVAGED_SUFFIX)
        taken = _take_over(path + opening.SALVAGED_SUFFIX, installation, trust)
        there = os.path.lexists(path)
        if there:
            _checkpoint(path)
        aside = aside_path(path, "replaced")
        swap_in_recovered(path, aside)
        return Restored(aside if there else None, taken)
    finally:
        hold.release()


def _take_over(path: str, installation: str, trust: bool) -> origin.Taken | None:
    """Migrate a copy and assign it to this installation."""
    try:
        with _open_connection(path) as db:
            # What `claim` removes must not stay readable in free pages.
            db.execute("PRAGMA secure_delete = ON")
            migrations.migrate(db, migrations.known_migrations(), lambda state: None)
            if not trust:
                return origin.claim(db, installation)
            origin.own(db, installation)
            return None
    except BaseException:
        os.unlink(path)
        raise


def repair(path: str) -> Recovery | None:
    """Repair a database; move one from which nothing can be saved aside and create an empty one."""
    return recover(path, empty=True)


def _copy(db: Connection, target: str, progress: file_copy.ReportPages = lambda done, total: None) -> int:
    try:
        return file_copy.copy(db, target, progress)
    except (OSError, *STORAGE_ERRORS) as error:
        failure = storage_failure(error)
        if failure.reason == "corrupt":
            raise
        said = error.strerror if isinstance(error, OSError) else error
        raise StorageFailed(failure.reason or "io", f"{target} could not be written: {said}") from error


def _checkpoint(path: str) -> None:
    """Checkpoint before moving aside, so that one file is moved instead of two. A database too damaged for
    that is moved as it is."""
    with suppress(*STORAGE_ERRORS), closing(connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _check_backup(source: str) -> None:
    """Accept only an undamaged database with a schema version that this program knows."""
    with _open_connection(source) as db:
        try:
            (version,) = db.execute("PRAGMA user_version").fetchone()
            known = version and db.execute("SELECT 1 FROM sqlite_master WHERE name = 'events'").fetchone()
        except STORAGE_ERRORS as error:
            raise storage_failure(error) from error
        newest = migrations.known_migrations()[-1].version
        if not known:
            raise Refused("invalid_params", f"{source} is not a backup of a sidecar database")
        if version > newest:
            raise StorageFailed(
                "schema_newer", f"{source} was written by a newer sidecar", action="upgrade_app"
            )
        if version == newest and (found := next(integrity.problems(db), None)):
            raise StorageFailed("corrupt", f"{source} is damaged: {found}", action="run_doctor")


@contextmanager
def _locked_connection(path: str) -> Iterator[Connection]:
    """Open a connection to a database that others may use, and lock its files against being moved."""
    if not os.path.exists(path):
        raise Refused("not_found", f"There is no database {path}")
    hold = file_lock.lock_shared(path)
    try:
        with _open_connection(path) as db:
            yield db
    finally:
        hold.release()


@contextmanager
def _open_connection(path: str) -> Iterator[Connection]:
    if not os.path.isfile(path):
        raise Refused("not_found", f"There is no file {path}")
    try:
        db = connect(path, isolation_level=None)
        try:
            db.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
            yield db
        finally:
            db.close()
    except (*STORAGE_ERRORS, OSError) as error:
        if isinstance(error, Failure):
            raise
        raise storage_failure(error, path) from error
