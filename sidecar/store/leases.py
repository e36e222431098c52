"""Leases: one writer a chat across processes. A write is fenced by the lease's generation.

A lease is free when nobody owns it, when its owner's process is gone, or when it was not renewed in time.
"""

from __future__ import annotations

from collections.abc import Callable

from ..model.chats import Lease, ProcessIdentity
from ..model.failures import Failure
from .sqlite import Connection

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
    """Another process took the chat over while this one was writing."""

    def __init__(self) -> None:
        super().__init__("locked", "Another process has taken this chat over", retryable=True)


class Unclosed(Failure):
    """The last owner died with the chat in its hands."""

    def __init__(self) -> None:
        super().__init__(
            "locked", "The chat's last owner is gone and its turn has not been closed", retryable=True
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


def holder(lease: Lease | None, me: ProcessIdentity, now: int, is_alive: IsAlive) -> ProcessIdentity | None:
    """The other process that holds this lease now, if one does."""
    if lease is None or lease.owner is None or lease.owner.instance == me.instance:
        return None
    alive = is_alive(lease.owner)
    if alive is None:  # not ours to see, so only the clock can tell
        alive = True
    return lease.owner if alive and lease.expires > now else None


def take(db: Connection, chat: int, me: ProcessIdentity, client: str, now: int, is_alive: IsAlive) -> int:
    """Own the lease and return its generation; LeaseHeld when another live process does."""
    lease = read(db, chat)
    if lease is not None and holder(lease, me, now, is_alive):
        raise LeaseHeld(lease)
    if lease is not None and lease.owner is not None and lease.owner.instance == me.instance:
        return lease.generation
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


def take_clean(
    db: Connection, chat: int, me: ProcessIdentity, client: str, now: int, is_alive: IsAlive
) -> int:
    """As `take`, but only a lease that was released: what a dead owner left open must be closed first."""
    lease = read(db, chat)
    left_open = lease is not None and lease.owner is not None and lease.owner.instance != me.instance
    if left_open and not holder(lease, me, now, is_alive):
        raise Unclosed()
    return take(db, chat, me, client, now, is_alive)


def check(db: Connection, chat: int, generation: int, me: ProcessIdentity) -> None:
    """Every write passes here: who lost the lease writes nothing more."""
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
    """Tell those who wait that this process is on its way out."""
    db.execute("UPDATE leases SET closing = 1 WHERE instance = ?", (me.instance,))


def release_all(db: Connection, me: ProcessIdentity) -> None:
    db.execute("UPDATE leases SET instance = NULL, closing = 0 WHERE instance = ?", (me.instance,))
