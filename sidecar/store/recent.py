"""The newest turns, which every prompt reads again: those that are over do not change, and are kept in memory.

Its callers are jobs of the one reading connection, which run one after another: nothing here is locked.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from ..model.content import Turn
from ..model.events import encode
from . import turns
from .sqlite import Connection
from .turns import TurnPage

KEPT_BYTES = 12 * 1024 * 1024
"""Of memory: the windows of several chats, 4 MiB as JSON when turns are long."""

TURN_BYTES = 600
"""What a turn takes beside three times its JSON, as measured with turns of a few words."""


class Recent:
    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        self._most = kept_bytes
        self._size = 0
        # By all columns of a turn's row: when anything has changed, it is read anew.
        self._kept: OrderedDict[tuple[Any, ...], tuple[Turn, int]] = OrderedDict()

    def before(
        self, db: Connection, chat: int, cursor: str | None, limit: int, max_bytes: int, floor: int
    ) -> TurnPage:
        """The newest visible turns before the cursor and behind an ordinal, without their siblings."""
        rows = turns.rows_before(db, chat, cursor, limit, floor)
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
        found = self._kept.get(key)
        if found:
            self._kept.move_to_end(key)
            return found
        turn = turns.of_row(db, chat, row)
        found = turn, len(encode(turn))
        if turn.status != "running":
            self._keep(key, found)
        return found

    def _keep(self, key: tuple[Any, ...], found: tuple[Turn, int]) -> None:
        self._kept[key] = found
        self._size += _weight(found[1])
        while self._size > self._most:
            _, (_, size) = self._kept.popitem(last=False)
            self._size -= _weight(size)


def _weight(size: int) -> int:
    """What a turn takes of the memory, by its size as JSON."""
    return 3 * size + TURN_BYTES
