"""Which media a model gets. Others are replaced by a line of text in the request, and the user gets a notice.

Media are checked when a prompt arrives (`services/content`), but those of old databases and of imports were not, and
models differ: so each medium of a request is checked here. The same bytes are checked once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

import anyio.to_thread
import msgspec

from ...media import BadMedia, Facts, MediaKind, inspect
from ...model.content import Block, Item, Turn, output_media, with_output_media
from ...model.failures import Refused
from ...providers.base import AssistantMessage, Message, ModelEntry
from ...providers.wording import Unshown, omission_line, why_not_taken
from ...store.store import Store
from ...system.lazy import lazy_module

if TYPE_CHECKING:
    from ...media import gif
else:
    gif = lazy_module("sidecar.media.gif")

MEDIA = ("image", "audio")

M = TypeVar("M", bound=Message)

MAX_CHECKED = 2048
"""Blobs whose check is cached by this process, some hundred bytes each."""

MAX_MEDIA_BYTES = 20 * 1024 * 1024
"""Total of images and audio in one request, newest first; providers accept little more."""

MAX_NAMED = 20
"""Media that one notice names."""

_checked: OrderedDict[tuple[str, MediaKind], Checked] = OrderedDict()
"""Keyed by the hash of the bytes, so an entry never becomes stale."""


class Checked(msgspec.Struct, frozen=True):
    """The type of a blob, or why it cannot be sent."""

    size: int = 0
    facts: Facts | None = None
    reason: Unshown | None = None


class LeftOut(msgspec.Struct, frozen=True):
    """A medium that the model does not get."""

    blob_id: str
    type: str
    reason: Unshown
    mime_type: str | None = None
    name: str | None = None
    turn: str | None = None
    """The turn whose prompt brings it; None in the history."""


class Showing:
    """The media of one chat: remembers what which model refused, and which notices the user got."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._refused: set[tuple[str, str]] = set()
        self._reported: set[tuple[str, str, str, str | None]] = set()

    def refuse(self, model: str, blobs: Iterable[str]) -> None:
        """Do not send these media to the model again: the provider rejected a request with them."""
        self._refused |= {(model, blob) for blob in blobs}

    def accept(self, model: str, blobs: Iterable[str]) -> None:
        """Send these media to the model again: they were not the reason of its failure."""
        found = {(model, blob) for blob in blobs}
        self._refused -= found
        self._reported -= {(*one, "refused", None) for one in found}

    async def turns(self, turns: Sequence[Turn], model: ModelEntry) -> tuple[list[Turn], list[LeftOut]]:
        """The turns, with a line of text for each medium that this model does not get."""
        made: list[Turn] = []
        out: list[LeftOut] = []
        for turn in turns:
            if any(has_media(item.content or ()) or output_media(item) for item in turn.items):
                turn = msgspec.structs.replace(
                    turn, items=[await self._item(item, model, out) for item in turn.items]
                )
            made.append(turn)
        return made, out

    async def blocks(
        self, blocks: Sequence[Block], model: ModelEntry, turn: str | None = None
    ) -> tuple[list[Block], list[LeftOut]]:
        """The same for the blocks of one prompt; `turn` is the one that it starts."""
        out: list[LeftOut] = []
        made = [await self._block(block, model, out) for block in blocks]
        return made, [msgspec.structs.replace(one, turn=turn) for one in out]

    async def bytes_of(self, messages: Sequence[Message]) -> dict[str, bytes]:
        """The bytes of the messages' media, newest first, up to the limit of a request."""
        media: dict[str, bytes] = {}
        left = MAX_MEDIA_BYTES
        # The newest first: the model is asked about them.
        for block in reversed(shown_media(messages)):
            id, size = block.blob_id or "", block.size or 0
            if id in media or size > left:
                continue
            _, data = await self._store.blobs.read(id, 0, size)
            media[id] = _one_frame(data) if block.mime_type == "image/gif" else data
            left -= size
        return media

    def take_unreported(self, model: str, out: Sequence[LeftOut]) -> list[LeftOut]:
        """Those for which the user has not got a notice yet; marks them as reported. A prompt that brings the same
        medium once more is news; the history that it is in afterwards is not.
        """
        news = [one for one in out if (model, one.blob_id, one.reason, one.turn) not in self._reported]
        for one in news:
            self._reported |= {(model, one.blob_id, one.reason, turn) for turn in (one.turn, None)}
        return news

    async def _item(self, item: Item, model: ModelEntry, out: list[LeftOut]) -> Item:
        if media := output_media(item):
            return with_output_media(item, [await self._block(block, model, out) for block in media])
        if not has_media(item.content or ()):
            return item
        content = [await self._block(block, model, out) for block in item.content or ()]
        return msgspec.structs.replace(item, content=content)

    async def _block(self, block: Block, model: ModelEntry, out: list[LeftOut]) -> Block:
        if block.type not in MEDIA or block.text:
            return block
        checked = await self._check(block)
        # The type by the bytes, not as the client named it: providers compare both and refuse the request.
        if checked.facts:
            block = msgspec.structs.replace(block, mime_type=checked.facts.mime_type, size=checked.size)
        reason = checked.reason or why_not_taken(block, model)
        if (model.id, block.blob_id or "") in self._refused:
            reason = "refused"
        if reason is None:
            return block
        out.append(LeftOut(block.blob_id or "", block.type, reason, block.mime_type, block.name))
        return msgspec.structs.replace(block, text=omission_line(block, reason))

    async def _check(self, block: Block) -> Checked:
        kind: MediaKind = "image" if block.type == "image" else "audio"
        key = block.blob_id or "", kind
        if key in _checked:
            _checked.move_to_end(key)
            return _checked[key]
        try:
            info = await self._store.blobs.info(key[0])
            _, data = await self._store.blobs.read(key[0], 0, info.size)
        except Refused:
            return Checked(reason="missing")  # not cached: an import may still bring it
        try:
            facts = await anyio.to_thread.run_sync(inspect, data, kind)
            found = Checked(len(data), facts)
        except BadMedia:
            found = Checked(len(data), reason="invalid")
        _checked[key] = found
        if len(_checked) > MAX_CHECKED:
            _checked.popitem(last=False)
        return found


def _one_frame(data: bytes) -> bytes:
    """Reduce an animation to its first frame: some APIs refuse animations, others read only that frame."""
    return gif.first_frame(data)


def has_media(blocks: Iterable[Block]) -> bool:
    return any(block.type in MEDIA for block in blocks)


def shown_media(messages: Iterable[Message]) -> list[Block]:
    """The media in these messages, in order."""
    content = (block for message in messages for block in content_of(message))
    return [block for block in content if block.type in MEDIA and not block.text]


def without_media(messages: Iterable[Message]) -> list[Message]:
    """Replace all media by lines of text, because the provider rejected the request."""
    return [message_without_media(message) for message in messages]


def message_without_media(message: M) -> M:
    if not has_media(content_of(message)):
        return message
    return with_content(message, [_replace_medium(block) for block in content_of(message)])


def content_of(message: Message) -> list[Block]:
    """The blocks of a message that may be media: a prompt's, or those that a tool returned."""
    return [] if isinstance(message, AssistantMessage) else message.content


def with_content(message: M, content: list[Block]) -> M:
    return msgspec.structs.replace(message, content=content)


def refused(block: Block) -> LeftOut:
    """A medium of a rejected request, as the notice describes it."""
    return LeftOut(block.blob_id or "", block.type, "refused", block.mime_type, block.name)


def notice(model: str, out: Sequence[LeftOut]) -> dict[str, object]:
    """The notice about media that this model does not get."""
    items = [
        {"blobId": one.blob_id, "type": one.type, "reason": one.reason}
        | ({"name": one.name} if one.name else {})
        | ({"mimeType": one.mime_type} if one.mime_type else {})
        for one in out[:MAX_NAMED]
    ]
    return {"code": "media_left_out", "params": {"model": model, "count": len(out), "items": items}}


def _replace_medium(block: Block) -> Block:
    if block.type not in MEDIA or block.text:
        return block
    return msgspec.structs.replace(block, text=omission_line(block, "refused"))
