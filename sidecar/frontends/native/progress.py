"""Reports the progress of a long request: `status` notifications of type `progress`, at most a few per second."""

from __future__ import annotations

import time

from sidecar_protocol.jsonrpc import notification

from ...rpc.wire import MessageWriter

EVERY_S = 0.25
"""Between two notifications of one request: often enough to move a bar, too rare to fill a pipe."""

FIRST_S = 0.5
"""A request that is answered sooner needs no progress bar."""


class Progress:
    """The progress of one request. `operation_id` is its id as text, by which the client knows and cancels it."""

    def __init__(self, wire: MessageWriter, operation_id: str, kind: str) -> None:
        self._wire = wire
        self._common = {"operationId": operation_id, "kind": kind}
        self._next = time.monotonic() + FIRST_S

    def report(self, done: int, total: int, **more: int) -> None:
        if (now := time.monotonic()) >= self._next:
            self._next = now + EVERY_S
            data = {**self._common, "done": done, "total": total, **more}
            self._wire.send(notification("status", {"type": "progress", "data": data}))
