"""Caches the newest turns, which every prompt reads again: turns that have ended do not change.

Its callers are jobs of the single reading connection, which run one after another, so there is no lock.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from ...model.content import Turn
from ...model.events import encode
from ...model.refusals import without_refused
from ..engine.sqlite import Connection
from . import turns
from .turns import TurnPage

CACHE_BYTES = 12 * 1024 * 1024
"""Memory for the windows of several chats, 4 MiB as JSON when turns are long."""

TURN_BYTES = 600
"""What a turn takes in addition to three times its JSON, measured with turns of a few words."""


class TurnCache:
    def __init__(self, kept_bytes: int = CACHE_BYTES) -> None:
        self._max_bytes = kept_bytes
        self._size = 0
        # By all columns of a turn's row: any change means that it is read again.
        self._turns: OrderedDict[tuple[Any, ...], tuple[Turn, int]] = OrderedDict()

    def before(
        self, db: Connection, chat: int, cursor: str | None, limit: int, max_bytes: int, floor: int
    ) -> TurnPage:
        """Return the newest visible turns before the cursor and after an ordinal that may be sent to a model,
        without their siblings and without what was refused in them."""
        rows = turns.rows_sent(db, chat, cursor, limit, floor)
        found: list[Turn] = []
        size = 0
        for row in rows:
            turn, its_size = self._turn(db, chat, row)
            size += its_size
            if found and size > max_bytes:
                break
            found.append(turn)
        if not found:
            return TurnPage([], None, None)
        oldest = rows[len(found) - 1][0]
        return TurnPage(found[::-1], turns.cursor_before(db, chat, oldest), None)

    def _turn(self, db: Connection, chat: int, row: tuple[Any, ...]) -> tuple[Turn, int]:
        key = (chat, *row)
        found = self._turns.get(key)
        if found:
            self._turns.move_to_end(key)
            return found
        turn = without_refused(turns.turn_of_row(db, chat, row))
        found = turn, len(encode(turn))
        # The events of a running turn change without its row.
        if turn.status != "running":
            self._add(key, found)
        return found

    def _add(self, key: tuple[Any, ...], found: tuple[Turn, int]) -> None:
        self._turns[key] = found
        self._size += _memory_bytes(found[1])
        while self._size > self._max_bytes:
            _, (_, size) = self._turns.popitem(last=False)
            self._size -= _memory_bytes(size)


def _memory_bytes(size: int) -> int:
    """Estimate the memory of a turn from its size as JSON."""
    return 3 * size + TURN_BYTES
