"""Who holds a lease, by clocks and boot ids that the test chooses: a reboot must not keep a chat locked."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sidecar.model.chats import Lease, ProcessIdentity
from sidecar.store.engine.sqlite import Connection, connect
from sidecar.store.tables import leases
from sidecar.store.tables.leases import LEASE_MS, LeaseHeld
from sidecar.store.tables.migrations import known_migrations, migrate

OTHER = ProcessIdentity("other", "boot-1", "", 4711, 0)
ME = ProcessIdentity("me", "boot-2", "", 4711, 0)
DAY = 24 * 3600 * 1000


@pytest.fixture
def db() -> Iterator[Connection]:
    connection = connect(":memory:", isolation_level=None)
    migrate(connection, known_migrations(), lambda _: None)
    yield connection
    connection.close()


HELD = {
    "renewed now": (LEASE_MS, 0),
    "renewed ten seconds ago": (LEASE_MS, 10_000),
    "about to expire": (LEASE_MS, LEASE_MS - 1),
    "renewed long after the boot": (30 * DAY + LEASE_MS, 30 * DAY),
}
FREE = {
    "expired now": (LEASE_MS, LEASE_MS),
    "expired long ago": (LEASE_MS, DAY),
    "written ten days into the last boot": (10 * DAY, 5_000),
    "written a year into the last boot": (365 * DAY, 60_000),
    "written a minute into the last boot": (60_000 + LEASE_MS, 30_000),
    "one millisecond more than a lease may last": (LEASE_MS + 1, 0),
    "written just before a reboot, read just after": (DAY + LEASE_MS, 1),
}


@pytest.mark.parametrize("alive", [True, None])
@pytest.mark.parametrize("case", HELD)
def test_a_lease_that_was_renewed_in_time_is_held(case: str, alive: bool | None) -> None:
    expires, now = HELD[case]
    assert leases.other_holder(Lease(1, OTHER, "", expires, False), ME, now, lambda _: alive) == OTHER


@pytest.mark.parametrize("alive", [True, None])
@pytest.mark.parametrize("case", FREE)
def test_a_lease_of_an_earlier_boot_is_free_though_its_pid_runs_again(case: str, alive: bool | None) -> None:
    expires, now = FREE[case]
    assert leases.other_holder(Lease(1, OTHER, "", expires, False), ME, now, lambda _: alive) is None


def test_a_chat_can_be_taken_after_a_reboot(db: Connection) -> None:
    before_reboot, after_reboot = 10 * DAY, 3_000
    leases.acquire(db, 1, OTHER, "app", before_reboot, lambda _: True)
    with pytest.raises(LeaseHeld):
        leases.acquire(db, 1, ME, "app", before_reboot + 1, lambda _: True)
    assert leases.acquire(db, 1, ME, "app", after_reboot, lambda _: True) == 2
