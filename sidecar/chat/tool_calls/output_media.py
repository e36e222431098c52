"""Checks and stores the images and audio that a tool of the app or of an MCP server returned.

The same check as for attached media, by `services/content`. What cannot be used is no failure of the call: the model
gets a line about it, the user a notice, and nothing of it is stored.
"""

from __future__ import annotations

import msgspec

from ...model import JsonObject
from ...model.content import Block, GivenBlock
from ...model.failures import Refused
from ...providers.wording import Unshown
from ...store.store import Store
from ..services.content import store_medium

MAX_MEDIA = 20
"""Of one result. Providers take about a hundred images in all requests of a chat together."""

MAX_MEDIA_BYTES = 20 * 1024 * 1024
"""Of one result: a request to a provider takes no more."""


class RefusedMedium(msgspec.Struct, frozen=True):
    """An image or audio that is not stored: its position in the result, and the problem in English."""

    position: int
    type: str
    reason: Unshown
    problem: str

    @property
    def line(self) -> str:
        """What the model gets instead."""
        return f"[{self.type} {self.position} of this result is left out: {self.problem}]"


class StoredMedia(msgspec.Struct, frozen=True):
    """The media of one result."""

    content: tuple[Block, ...] = ()
    refused: tuple[RefusedMedium, ...] = ()

    def notice(self, item_id: str, tool: str) -> JsonObject:
        """The notice about media that were refused."""
        items = [{"type": one.type, "reason": one.reason, "message": one.problem} for one in self.refused]
        params = {"itemId": item_id, "tool": tool, "count": len(items), "items": items[:MAX_MEDIA]}
        return {"code": "media_left_out", "params": params}


async def store_media(store: Store, given: tuple[GivenBlock, ...]) -> StoredMedia:
    """Store the media of a result."""
    content: list[Block] = []
    refused: list[RefusedMedium] = []
    left = MAX_MEDIA_BYTES
    for position, block in enumerate(given, 1):
        # By its base64 before it is decoded: the bytes of the others are in memory already.
        if len(content) == MAX_MEDIA or len(block.data or "") * 3 // 4 > left:
            limit = f"a result may have {MAX_MEDIA} images, with {MAX_MEDIA_BYTES // 1024**2} MiB in all"
            refused.append(RefusedMedium(position, block.type, "size", limit))
            continue
        try:
            stored = await store_medium(store, block, f"content[{position - 1}]")
        except Refused as failure:
            refused.append(RefusedMedium(position, block.type, *_problem(failure)))
        else:
            content.append(stored)
            left -= stored.size or 0
    return StoredMedia(tuple(content), tuple(refused))


def _problem(failure: Refused) -> tuple[Unshown, str]:
    if failure.name == "not_found":
        return "missing", failure.message
    found = (failure.params or {}).get("found")
    return "invalid", str(found or failure.message)
