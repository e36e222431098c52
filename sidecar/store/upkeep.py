"""What a person does to a whole database from outside: back it up, bring a backup back, look it through, repair it.

Backing up and looking through work beside processes that use it; the others want it alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

from ..model.failures import Failure, Refused, StorageFailed
from . import copying, holding, opening, verifying
from .recovery import Recovery, beside, recover, swap
from .sqlite import FAULTS, Connection, connect, storage_failure

BUSY_MS = 30_000
"""How long to wait for a writer: a check of a full-text index writes nothing, and yet takes its turn."""


def backup(path: str, target: str, progress: copying.Progress = lambda done, total: None) -> int:
    """Write the database to a new file while it is in use; its size."""
    if os.path.lexists(target):
        raise Refused("already_exists", f"{target} is there already: name another file")
    with _opened(path) as db:
        return _copy(db, target, progress)


def verify(
    path: str, progress: verifying.Progress = lambda part, done, total: None
) -> tuple[verifying.Counts, list[verifying.Problem]]:
    """All that is wrong with a database, and how much was looked at."""
    counts = verifying.Counts()
    with _opened(path) as db:
        return counts, list(verifying.problems(db, progress, counts))


def restore(source: str, path: str) -> str | None:
    """Put a backup in the place of the database, whose files are kept beside it; where, or None when there was none."""
    _check_backup(source)
    hold = holding.alone(path)
    if hold is None:
        raise Refused("locked", f"{path} is in use: end every sidecar that has it open, then try again")
    try:
        with _connected(source) as db:
            _copy(db, path + opening.FINISHED)
        there = os.path.lexists(path)
        if there:
            _empty_log(path)
        aside = beside(path, "replaced")
        swap(path, aside)
        return aside if there else None
    finally:
        hold.release()


def repair(path: str) -> Recovery | None:
    """Repair a database; one of which nothing can be saved is put aside, and an empty one takes its place."""
    return recover(path, empty=True)


def _copy(db: Connection, target: str, progress: copying.Progress = lambda done, total: None) -> int:
    try:
        return copying.copy(db, target, progress)
    except (OSError, *FAULTS) as error:
        failure = storage_failure(error)
        if failure.reason == "corrupt":
            raise
        said = error.strerror if isinstance(error, OSError) else error
        raise StorageFailed(failure.reason or "io", f"{target} could not be written: {said}") from error


def _empty_log(path: str) -> None:
    """One file instead of two is put aside then; one that is too damaged for that is put aside as it is."""
    with suppress(*FAULTS), closing(connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _check_backup(source: str) -> None:
    """Only a sound database of a shape that this program knows goes into the place of another."""
    with _connected(source) as db:
        try:
            (version,) = db.execute("PRAGMA user_version").fetchone()
            known = version and db.execute("SELECT 1 FROM sqlite_master WHERE name = 'events'").fetchone()
        except FAULTS as error:
            raise storage_failure(error) from error
        newest = opening.known_migrations()[-1].version
        if not known:
            raise Refused("invalid_params", f"{source} is no backup of a sidecar's database")
        if version > newest:
            raise StorageFailed(
                "schema_newer", f"{source} was written by a newer sidecar", action="upgrade_app"
            )
        if version == newest and (found := next(verifying.problems(db), None)):
            raise StorageFailed("corrupt", f"{source} is damaged: {found}", action="run_doctor")


@contextmanager
def _opened(path: str) -> Iterator[Connection]:
    """A connection to a database that others may use, and that nobody moves meanwhile."""
    if not os.path.exists(path):
        raise Refused("not_found", f"There is no database {path}")
    hold = holding.share(path)
    try:
        with _connected(path) as db:
            yield db
    finally:
        hold.release()


@contextmanager
def _connected(path: str) -> Iterator[Connection]:
    if not os.path.isfile(path):
        raise Refused("not_found", f"There is no file {path}")
    try:
        db = connect(path, isolation_level=None)
        try:
            db.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
            yield db
        finally:
            db.close()
    except (*FAULTS, OSError) as error:
        if isinstance(error, Failure):
            raise
        raise storage_failure(error, path) from error
