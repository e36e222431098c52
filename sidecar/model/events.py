"""Events: facts of a chat, as they are written to the journal and as they are read back.

A run of deltas of one item is one stored row that keeps each piece's length, so that any cursor inside it can
be answered. Runs are cut and joined here; nothing here does IO.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

MAX_RUN_BYTES = 64 * 1024
"""The contract's bound for the text that one coalesced frame may carry."""

DELTA_TYPES = frozenset({"message.delta", "thought.delta", "tool.output"})

_encoder = msgspec.json.Encoder()
decode = msgspec.json.Decoder().decode


def encode(value: Any) -> bytes:
    """As JSON, into a buffer of our own: msgspec's ends the process when there is no memory to let it grow."""
    buffer = bytearray(512)
    _encoder.encode_into(value, buffer)
    return bytes(buffer)


class NewEvent(msgspec.Struct, frozen=True):
    """An event that is about to be appended. `pieces` are the lengths, in code points, of a run's deltas; `ts` is
    given for what happened earlier and is brought in now."""

    type: str
    data: Any
    turn_id: str | None = None
    pieces: tuple[int, ...] = ()
    ts: int | None = None

    @property
    def width(self) -> int:
        """How many seqs it takes."""
        return len(self.pieces) or 1


class StoredEvent(msgspec.Struct, frozen=True):
    """A row of the journal: `first` to `seq`, and `data` as JSON."""

    seq: int
    first: int
    ts: int
    turn_id: str | None
    type: str
    data: bytes
    pieces: tuple[int, ...] = ()


class _Delta(msgspec.Struct, rename="camel"):
    item_id: str
    text: str


_decode_delta = msgspec.json.Decoder(_Delta).decode


def after(event: StoredEvent, seq: int) -> StoredEvent | None:
    """The part of `event` behind the cursor `seq`, or None when nothing is."""
    if event.first > seq:
        return event
    if event.seq <= seq:
        return None
    skipped = seq - event.first + 1
    delta = _decode_delta(event.data)
    text = delta.text[sum(event.pieces[:skipped]) :]
    return msgspec.structs.replace(
        event, first=seq + 1, data=encode(_Delta(delta.item_id, text)), pieces=event.pieces[skipped:]
    )


def coalesce(events: Iterable[StoredEvent]) -> list[StoredEvent]:
    """Join neighbouring runs of one item while they stay within the bound of a frame."""
    joined: list[StoredEvent] = []
    for event in events:
        if joined and (merged := _join(joined[-1], event)):
            joined[-1] = merged
        else:
            joined.append(event)
    return joined


def _join(left: StoredEvent, right: StoredEvent) -> StoredEvent | None:
    if left.type != right.type or left.type not in DELTA_TYPES:
        return None
    if len(left.data) + len(right.data) > MAX_RUN_BYTES:
        return None
    head, tail = _decode_delta(left.data), _decode_delta(right.data)
    if head.item_id != tail.item_id:
        return None
    return msgspec.structs.replace(
        right,
        first=left.first,
        data=encode(_Delta(head.item_id, head.text + tail.text)),
        pieces=(left.pieces or (len(head.text),)) + (right.pieces or (len(tail.text),)),
    )
