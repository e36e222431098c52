"""Keys in the operating system's keyring, through the optional package `keyring`. Knows only names and keys.

A keyring may prompt the user, wait for a daemon or hang: it is called on a thread, with a timeout.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, TypeVar

import anyio
import anyio.to_thread

from ..model.failures import Failure
from ..system import distribution, redact

logger = logging.getLogger(__name__)

SERVICE = "sidecar"

PATIENCE_S = 5.0
"""Longer than an unlocked keyring takes on any system."""

PAUSE_S = 30.0
"""A keyring that failed is not read again at once: the user may be about to unlock it, or it hangs."""

MAX_THREADS = 2
"""Threads that may hang in it: two, so that a write can overtake a read that never ends."""

INSTALL = distribution.install_command("keyring")

T = TypeVar("T")


class Keyring:
    """Results are cached, so that the keyring is read once per provider."""

    def __init__(self) -> None:
        self._known: dict[str, str | None] = {}
        self._failure: tuple[float, Failure] | None = None
        self._threads = anyio.CapacityLimiter(MAX_THREADS)

    def known(self, name: str) -> str | None:
        """Return the key of a provider, if the keyring was read already."""
        return self._known.get(name)

    @property
    def trouble(self) -> str | None:
        """Return why the last read failed."""
        return self._failure[1].message if self._failure else None

    async def read(self, name: str) -> str | None:
        """Return the stored key of a provider. A keyring that is absent or fails has none."""
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
        redact.add_secrets([key])
        self._known[name] = key
        return key

    async def write(self, name: str, key: str | None) -> None:
        """Store the key of a provider; None removes it. Raises Failure when that fails."""
        redact.add_secrets([key])
        if not await anyio.to_thread.run_sync(_is_installed):
            raise Failure(
                "precondition_failed",
                f"The keyring's package is not installed: {INSTALL}",
                reason="keyring_missing",
                action="install_keyring",
                hint=INSTALL,
            )
        self._known.pop(name, None)  # A write that timed out may still have succeeded: then it is read again.
        await self._ask("written", lambda: _set(name, key))
        self._known[name] = key
        self._failure = None

    async def _ask(self, what: str, question: Callable[[], T]) -> T:
        """Return the result of the keyring, or why there is none. A hanging thread is abandoned."""
        try:
            with anyio.fail_after(PATIENCE_S):
                return await anyio.to_thread.run_sync(question, abandon_on_cancel=True, limiter=self._threads)
        except TimeoutError as error:
            raise _keyring_failure(what, f"no answer within {PATIENCE_S:g} s") from error
        except Exception as error:  # Backends raise arbitrary exceptions: of D-Bus, of the operating system.
            raise _keyring_failure(
                what, redact.redact_text(f"{type(error).__name__}: {error}")[:300]
            ) from error


def _is_installed() -> bool:
    return find_spec("keyring") is not None


def _get(name: str) -> str | None:
    if not _is_installed():
        return None
    try:
        key: str | None = _package().get_password(SERVICE, name)
    except RuntimeError as error:
        # The package is installed, but the system (a server, a container) has no keyring: then it has no key either.
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


def _keyring_failure(what: str, why: str) -> Failure:
    return Failure(
        "precondition_failed",
        f"The keyring cannot be {what}: {why}",
        reason="keyring_failed",
        action="unlock_keyring",
        hint="Unlock the keyring, or give the key by the environment",
    )
