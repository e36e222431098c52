"""Whether a database and the chats in it are whole after what was done to them."""

from __future__ import annotations

from pathlib import Path

from sidecar.store.engine.sqlite import connect
from sidecar.store.repair.integrity import problems
from tests.support.sidecar import Sidecar
from tests.support.verdict import journal_violations, missing_events


def sound(path: Path) -> bool:
    """By our own rules and SQLite's."""
    connection = connect(str(path), isolation_level=None)
    try:
        return list(problems(connection)) == []
    finally:
        connection.close()


def assert_nothing_lost(witness: Sidecar, reader: Sidecar | None = None) -> None:
    """All that `witness` showed is in the journals that `reader`, or itself, finds."""
    seen = witness.seen()
    journals = {session: (reader or witness).journal(session) for session in seen}
    lost = missing_events(seen, journals)
    assert not lost, lost
    broken = [rule for session, events in journals.items() for rule in journal_violations(session, events)]
    assert not broken, broken
