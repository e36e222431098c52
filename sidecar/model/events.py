"""Events: facts of a chat, as they are written to the journal and read back.

A run of deltas of one item is one stored row with the length of each piece, so that any cursor inside it can
be served. Runs are split and joined here. Does no IO.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from sidecar_protocol.limits import MAX_DELTA_BYTES

from .mcp_secrets import Secrets

EventData = dict[str, Any]
"""The data of an event as it is in the journal, which an older version of the program may have written."""

DELTA_TYPES = frozenset({"message.delta", "thought.delta", "tool.output"})

_encoder = msgspec.json.Encoder()
decode = msgspec.json.Decoder().decode


def encode(value: Any) -> bytes:
    """Encode as JSON into a buffer allocated here: msgspec aborts the process when its own buffer cannot
    grow."""
    buffer = bytearray(512)
    _encoder.encode_into(value, buffer)
    return bytes(buffer)


class NewEvent(msgspec.Struct, frozen=True):
    """An event to append. `pieces` are the lengths, in code points, of a run's deltas; `ts` is set for
    imported events that happened earlier. `secrets` are not part of the event: the same commit stores them in
    place of the chat's previous ones."""

    type: str
    data: Any
    turn_id: str | None = None
    pieces: tuple[int, ...] = ()
    ts: int | None = None
    secrets: Secrets | None = None

    @property
    def width(self) -> int:
        """Return how many seqs it takes."""
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


def part_after(event: StoredEvent, seq: int) -> StoredEvent | None:
    """Return the part of `event` after the cursor `seq`, or None when there is none."""
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


def part_until(event: StoredEvent, seq: int) -> StoredEvent | None:
    """Return the part of `event` up to the cursor `seq`, or None when there is none."""
    if event.seq <= seq:
        return event
    if event.first > seq:
        return None
    kept = event.pieces[: seq - event.first + 1]
    delta = _decode_delta(event.data)
    text = delta.text[: sum(kept)]
    return msgspec.structs.replace(event, seq=seq, data=encode(_Delta(delta.item_id, text)), pieces=kept)


def coalesce(events: Iterable[StoredEvent]) -> list[StoredEvent]:
    """Join adjacent runs of one item while they stay within the bound of a frame."""
    joined: list[StoredEvent] = []
    for event in events:
        if joined and (merged := _join_runs(joined[-1], event)):
            joined[-1] = merged
        else:
            joined.append(event)
    return joined


def _join_runs(left: StoredEvent, right: StoredEvent) -> StoredEvent | None:
    if left.type != right.type or left.type not in DELTA_TYPES:
        return None
    if len(left.data) + len(right.data) > MAX_DELTA_BYTES:
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
