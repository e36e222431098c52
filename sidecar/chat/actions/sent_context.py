"""Reads what the model was sent with a turn: the manifest of one of its requests, with the texts that are stored."""

from __future__ import annotations

from typing import Literal

import msgspec

from ...context.materials import Manifest
from ...model.content import Turn
from ...model.failures import Refused, invalid_param
from ...model.sent import StoredRequest
from ...system.clock import DAY_MS, now
from ..sessions.session import Session

TextGone = Literal["expired", "not_stored", "damaged"]


class SentContext(msgspec.Struct, frozen=True):
    """A request that was sent. Without a manifest, nothing is known of it."""

    turn: Turn
    manifest: Manifest | None
    number: int
    of: int
    texts_gone: TextGone | None
    """Why texts of blocks are missing."""


async def read_sent(session: Session, turn_id: str, number: int | None) -> SentContext:
    """Return a request of a turn, by default its first."""
    if session.turn is None:
        await session.recorder.wait_flushed()
    turn = await session.store.turns.get(session.chat.id, turn_id)
    if turn is None:
        raise Refused("not_found", f"There is no turn {turn_id!r} in this chat", params={"turnId": turn_id})
    found = await session.store.sent_requests.read(session.chat.id, turn, 1 if number is None else number)
    if found is None:
        if number is not None:
            raise invalid_param("request", "the number of a request that the turn has made, from 1")
        return SentContext(turn, None, 0, 0, "not_stored")
    days = session.environment.settings.values.session.sent_days
    return SentContext(turn, _manifest(found), found.number, found.of, why_texts_are_gone(found, days))


def _manifest(found: StoredRequest) -> Manifest:
    manifest = msgspec.convert(found.manifest, Manifest)
    if found.texts is None or None in found.texts:
        return manifest
    pairs = zip(manifest.blocks, found.texts, strict=True)
    blocks = [msgspec.structs.replace(block, text=text) for block, text in pairs]
    return msgspec.structs.replace(manifest, blocks=blocks)


def why_texts_are_gone(found: StoredRequest, days: int) -> TextGone | None:
    if found.texts is None:
        return "expired" if days and found.sent_at < now() - days * DAY_MS else "not_stored"
    return "damaged" if None in found.texts else None
