"""Rate limit for a server that sends too much: it then waits at its own pipe instead of using our time."""

from __future__ import annotations

import anyio

WINDOW_S = 1.0


class RateLimiter:
    """At most `limit` units per second; a caller that spends more waits for the second to end."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._spent = 0
        self._until = 0.0

    async def spend(self, amount: int = 1) -> None:
        now = anyio.current_time()
        if now >= self._until:
            self._spent, self._until = 0, now + WINDOW_S
        self._spent += amount
        if self._spent > self._limit:
            await anyio.sleep_until(self._until)
