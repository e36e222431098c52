"""Leases: one writer per chat across processes. The generation of the lease fences every write.

A lease is free when it has no owner, when the process of its owner has ended, or when it was not renewed in
time. Times are of the monotonic clock, which restarts at each boot.
"""

from __future__ import annotations

from collections.abc import Callable

from ...model.chats import Lease, ProcessIdentity
from ...model.failures import Failure
from ..engine.sqlite import Connection

LEASE_MS = 20_000
"""How long a lease lasts without renewal: four renewals may fail before another process takes over."""

IsAlive = Callable[[ProcessIdentity], bool | None]


class LeaseHeld(Failure):
    """Another live process writes to this chat."""

    def __init__(self, lease: Lease) -> None:
        assert lease.owner is not None
        owner = {"pid": lease.owner.pid, "client": lease.client}
        super().__init__(
            "locked",
            f"Process {lease.owner.pid} ({lease.client or 'another sidecar'}) is writing to this chat",
            facts={"owner": owner},
            retryable=True,
            retry_after_ms=250,
        )
        self.lease = lease


class LeaseLost(Failure):
    """Another process took over the chat while this one was writing."""

    def __init__(self) -> None:
        super().__init__("locked", "Another process has taken over this chat", retryable=True)


class UnclosedChat(Failure):
    """The last owner ended with a turn open."""

    def __init__(self) -> None:
        super().__init__(
            "locked",
            "The process that owned this chat has ended and its turn is not closed yet",
            retryable=True,
        )


def read(db: Connection, chat: int) -> Lease | None:
    row = db.execute(
        "SELECT generation, instance, boot, namespace, pid, started, client, expires, closing"
        " FROM leases WHERE chat = ?",
        (chat,),
    ).fetchone()
    if row is None:
        return None
    generation, instance, boot, namespace, pid, started, client, expires, closing = row
    owner = ProcessIdentity(instance, boot, namespace, pid, started) if instance is not None else None
    return Lease(generation, owner, client, expires, bool(closing))


def other_holder(
    lease: Lease | None, me: ProcessIdentity, now: int, is_alive: IsAlive
) -> ProcessIdentity | None:
    """Return the other process that holds this lease now, if one does."""
    if lease is None or lease.owner is None or lease.owner.instance == me.instance:
        return None
    alive = is_alive(lease.owner)
    if alive is None:  # in another pid namespace, so only the expiry decides
        alive = True
    return lease.owner if alive and is_running(lease, now) else None


def is_running(lease: Lease, now: int) -> bool:
    """Return whether the lease was renewed in time.

    Monotonic time is one clock for all processes of one boot. A lease that expires later than a renewal now
    would set was written before a reboot; comparing it with the restarted clock would keep the chat locked
    for days.
    """
    return now < lease.expires <= now + LEASE_MS


def acquire(db: Connection, chat: int, me: ProcessIdentity, client: str, now: int, is_alive: IsAlive) -> int:
    """Acquire the lease and return its generation; LeaseHeld when another live process holds it."""
    lease = read(db, chat)
    if lease is not None and other_holder(lease, me, now, is_alive):
        raise LeaseHeld(lease)
    if lease is not None and lease.owner is not None and lease.owner.instance == me.instance:
        return lease.generation
    # Higher with every owner: a process that slept through a takeover finds another number at its next
    # commit.
    generation = (lease.generation if lease else 0) + 1
    db.execute(
        "INSERT OR REPLACE INTO leases (chat, generation, instance, boot, namespace, pid, started, client, expires)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            chat,
            generation,
            me.instance,
            me.boot,
            me.pid_namespace,
            me.pid,
            me.started,
            client,
            now + LEASE_MS,
        ),
    )
    return generation


def acquire_released(
    db: Connection, chat: int, me: ProcessIdentity, client: str, now: int, is_alive: IsAlive
) -> int:
    """As `acquire`, but only for a released lease: a turn that a dead owner left open must be closed first."""
    lease = read(db, chat)
    left_open = lease is not None and lease.owner is not None and lease.owner.instance != me.instance
    # A live owner is reported by `acquire`; here the owner is dead and its turn has no end yet.
    if left_open and not other_holder(lease, me, now, is_alive):
        raise UnclosedChat()
    return acquire(db, chat, me, client, now, is_alive)


def check(db: Connection, chat: int, generation: int, me: ProcessIdentity) -> None:
    """Raise LeaseLost unless this process holds the lease. Every write calls this."""
    lease = read(db, chat)
    if (
        lease is None
        or lease.generation != generation
        or lease.owner is None
        or lease.owner.instance != me.instance
    ):
        raise LeaseLost()


def release(db: Connection, chat: int, generation: int) -> None:
    db.execute(
        "UPDATE leases SET instance = NULL, closing = 0 WHERE chat = ? AND generation = ?", (chat, generation)
    )


def renew(db: Connection, me: ProcessIdentity, now: int) -> None:
    db.execute("UPDATE leases SET expires = ? WHERE instance = ?", (now + LEASE_MS, me.instance))


def announce_closing(db: Connection, me: ProcessIdentity) -> None:
    """Announce to waiting processes that this process is about to exit."""
    db.execute("UPDATE leases SET closing = 1 WHERE instance = ?", (me.instance,))


def release_all(db: Connection, me: ProcessIdentity) -> None:
    db.execute("UPDATE leases SET instance = NULL, closing = 0 WHERE instance = ?", (me.instance,))
