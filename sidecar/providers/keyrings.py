"""Keys in the operating system's keyring, through the optional package `keyring`. Knows names and keys, nothing else.

A keyring may ask the user, wait for a daemon or hang: it is spoken to on a thread, and given up after a while.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

import anyio
import anyio.to_thread

from ..model.failures import Failure
from ..system import redact

logger = logging.getLogger(__name__)

SERVICE = "sidecar"

PATIENCE_S = 5.0
"""Longer than an unlocked keyring takes on any system."""

PAUSE_S = 30.0
"""A keyring that failed is not read again at once: its user may be about to unlock it, or it hangs."""

MAX_THREADS = 2
"""Threads that may hang in it: one more than one, so that a write can overtake a read that never ends."""

INSTALL = "pip install 'sidecar[keyring]'"

T = TypeVar("T")


class Keyring:
    """What was read is remembered, so that the keyring is asked once for each provider."""

    def __init__(self) -> None:
        self._known: dict[str, str | None] = {}
        self._failure: tuple[float, Failure] | None = None
        self._threads = anyio.CapacityLimiter(MAX_THREADS)

    def known(self, name: str) -> str | None:
        """The key of a provider, as far as the keyring was asked already."""
        return self._known.get(name)

    @property
    def trouble(self) -> str | None:
        """Why it could not be read the last time."""
        return self._failure[1].message if self._failure else None

    async def read(self, name: str) -> str | None:
        """The key that is kept for a provider. A keyring that is absent or fails has none."""
        if name in self._known:
            return self._known[name]
        if self._failure and anyio.current_time() < self._failure[0]:
            return None
        try:
            key = await self._ask("read", lambda: _get(name))
        except Failure as failure:
            self._failure = (anyio.current_time() + PAUSE_S, failure)
            logger.warning("the keyring cannot be read", extra={"error": failure.message})
            return None
        self._failure = None
        redact.learn([key])
        self._known[name] = key
        return key

    async def write(self, name: str, key: str | None) -> None:
        """Keep a key for a provider; None removes it. Raises Failure when that cannot be."""
        redact.learn([key])
        if not await anyio.to_thread.run_sync(_is_installed):
            raise Failure(
                "precondition_failed",
                f"The keyring's package is not installed: {INSTALL}",
                reason="keyring_missing",
                action="install_keyring",
                hint=INSTALL,
            )
        self._known.pop(
            name, None
        )  # A write that is given up may still have been done: then it is read anew.
        await self._ask("written", lambda: _set(name, key))
        self._known[name] = key
        self._failure = None

    async def _ask(self, what: str, question: Callable[[], T]) -> T:
        """The keyring's answer, or why there is none. A thread that hangs is left to itself."""
        try:
            with anyio.fail_after(PATIENCE_S):
                return await anyio.to_thread.run_sync(question, abandon_on_cancel=True, limiter=self._threads)
        except TimeoutError as error:
            raise _failed(what, f"no answer within {PATIENCE_S:g} s") from error
        except Exception as error:  # Backends raise what they like: of D-Bus, of the operating system.
            raise _failed(what, redact.redacted(f"{type(error).__name__}: {error}")[:300]) from error


def _is_installed() -> bool:
    from importlib.util import find_spec

    return find_spec("keyring") is not None


def _get(name: str) -> str | None:
    if not _is_installed():
        return None
    try:
        key: str | None = _package().get_password(SERVICE, name)
    except RuntimeError as error:
        # The package is there, and the system (a server, a container) has no keyring: then it has no key either.
        if type(error).__name__ == "NoKeyringError":
            return None
        raise
    return key


def _set(name: str, key: str | None) -> None:
    keyring = _package()
    if key is not None:
        keyring.set_password(SERVICE, name, key)
    elif keyring.get_password(SERVICE, name) is not None:
        keyring.delete_password(SERVICE, name)


def _package() -> Any:
    import keyring

    return keyring


def _failed(what: str, why: str) -> Failure:
    return Failure(
        "precondition_failed",
        f"The keyring cannot be {what}: {why}",
        reason="keyring_failed",
        action="unlock_keyring",
        hint="Unlock the keyring, or give the key by the environment",
    )
