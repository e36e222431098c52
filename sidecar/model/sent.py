"""What one request to the model contained, as it is stored for reading later."""

from __future__ import annotations

import msgspec

from . import JsonObject


class SentRequest(msgspec.Struct, frozen=True):
    """The texts of a request's blocks, in the order of its manifest; "" for a block without text."""

    turn: str
    number: int
    """Which request of the turn it is, from 1."""
    texts: list[str]


class StoredRequest(msgspec.Struct, frozen=True):
    """The manifest of a request, and the texts of its blocks where they are still stored."""

    manifest: JsonObject
    texts: list[str | None] | None
    """None when nothing is stored; within it, None for a text of which a piece is missing."""
    number: int
    of: int
    """How many requests the turn has made."""
    sent_at: int
