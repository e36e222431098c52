"""Whether a database and the chats in it are whole after what was done to them."""

from __future__ import annotations

from pathlib import Path

from sidecar.store.sqlite import connect
from sidecar.store.verifying import problems
from tests.support.sidecar import Sidecar
from tests.support.verdict import broken_rules, losses


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
    lost = losses(seen, journals)
    assert not lost, lost
    broken = [rule for session, events in journals.items() for rule in broken_rules(session, events)]
    assert not broken, broken
