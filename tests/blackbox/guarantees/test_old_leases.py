"""A lease that an earlier boot of the machine left in the database does not keep its chat locked."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing

import pytest

from tests.support.spawner import Spawner

ELSEWHERE = "pid:[1]"
"""A pid namespace that nobody here can look into, so that the clock alone decides."""

LEASE_MS = 20_000
"""How long a lease lasts that is not renewed."""

AHEAD_MS = {
    "a minute more than a lease lasts": LEASE_MS + 60_000,
    "an hour": 3600_000,
    "ten days": 864_000_000,
    "a year": 31_536_000_000,
    "the largest number": 2**62,
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("case", AHEAD_MS)
def test_a_chat_is_free_when_its_lease_ends_later_than_any_lease_can(spawn: Spawner, case: str) -> None:
    _leave_lease(spawn, AHEAD_MS[case])
    sidecar = spawn()
    opened = sidecar.call("chat/open", chatId="c")
    assert (opened["access"], opened.get("owner")) == ("writer", None)
    assert sidecar.run("hello again", chatId="c")["data"]["reason"] == "end_turn"


def test_a_chat_is_locked_while_its_lease_lasts(spawn: Spawner) -> None:
    _leave_lease(spawn, LEASE_MS)
    sidecar = spawn()
    assert sidecar.call("chat/open", chatId="c")["access"] == "reader"
    assert sidecar.refused("prompt/send", chatId="c", promptId="p", text="hello").code == -32011


def _leave_lease(spawn: Spawner, ahead_ms: int) -> None:
    """Make chat `c`, with a lease of a process that nobody can see."""
    first = spawn()
    first.run("hello", chatId="c")
    first.close_stdin()
    first.wait()
    expires = min(time.monotonic_ns() // 1_000_000 + ahead_ms, 2**62)
    with closing(sqlite3.connect(next(spawn.data_dir.glob("*.db")), isolation_level=None)) as db:
        changed = db.execute(
            "UPDATE leases SET instance = 'gone', namespace = ?, expires = ?", (ELSEWHERE, expires)
        )
        assert changed.rowcount == 1
