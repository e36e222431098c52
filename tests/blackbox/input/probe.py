"""Sends bytes to a sidecar and collects what it answers to exactly them."""

from __future__ import annotations

from collections.abc import Iterable

from tests.support.patience import PATIENCE_S
from tests.support.sidecar import Sidecar
from tests.support.wire import Json

WINDOW = 64
"""How many requests are under way at once: enough to keep the sidecar busy, few enough for both pipes."""


class Probe:
    def __init__(self, sidecar: Sidecar) -> None:
        self.sidecar = sidecar
        sidecar.referee.lenient = True
        self._fences = 0

    def answers(self, data: bytes, wanted: int) -> list[Json]:
        """Send `data`, wait for `wanted` answers, and then see what else came before a ping was answered."""
        start = len(self.sidecar.replies)
        self.sidecar.send_bytes(data)
        what = f"{wanted} answers to {data[:80]!r}"
        self.sidecar.wait_until(lambda: len(self.sidecar.replies) - start >= wanted, PATIENCE_S, what)
        self.fence()
        return [f for f in self.sidecar.replies[start:] if not str(f["id"]).startswith("fence ")]

    def fence(self) -> None:
        """Make sure that everything sent so far has been read."""
        self._fences += 1
        id = f"fence {self._fences}"
        self.sidecar.send({"jsonrpc": "2.0", "id": id, "method": "ping"})
        self.sidecar.result(id)

    def ask_all(self, method: str, many: Iterable[Json]) -> list[tuple[Json, Json]]:
        """Ask `method` with each of `many` params, some at a time; each with its answer."""
        asked: list[tuple[Json, int]] = []
        for params in many:
            asked.append((params, self.sidecar.ask(method, **params)))
            if len(asked) >= WINDOW:
                self.sidecar.answer(asked[-WINDOW][1])
        return [(params, self.sidecar.answer(id)) for params, id in asked]
