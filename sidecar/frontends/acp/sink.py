"""Writes the events of a followed chat as updates of its session, and reports the ends of its turns to those who wait.

Each update has the seq of its event, or of the newest one before, so that a client can name what it has seen.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

import anyio
import msgspec
from sidecar_protocol.errors import RpcError
from sidecar_protocol.jsonrpc import notification

from ...chat.sessions.session import Session
from ...model import JsonObject
from ...model.content import StoredError, output_media, stored_error, stored_item
from ...model.events import EventData, StoredEvent, coalesce, decode, part_after, part_until
from ...model.failures import Failure
from ...model.files import Change
from ...rpc.wire import MessageWriter
from ...store import Store
from ...workspace.text import NotText, decode_text
from ..attachments import Attachment, Attachments
from .greeting import META
from .messages import Update
from .tool_updates import Stored, item_changes
from .updates import Updates

logger = logging.getLogger(__name__)

MAX_DIFF_BYTES = 1024 * 1024
"""A longer file is shown by its unified diff: version 1 sends both sides of a diff whole."""

MAX_MEDIUM_BYTES = 8 * 1024 * 1024
"""A larger image or audio is named in a replay, not sent: the client may have a limit for a message."""

REPLAY_EVENTS = 1024
REPLAY_BYTES = 512 * 1024
"""Events that are read at once for a replay."""


class TurnEnd(msgspec.Struct, frozen=True):
    """How a turn, or a prompt that waited for one, ended."""

    reason: str
    seq: int
    error: StoredError | None = None


class PromptWatch:
    """What became of one prompt: the message that it is, and the end of its turn."""

    def __init__(self, prompt_id: str) -> None:
        self.prompt_id = prompt_id
        self.turn_id: str | None = None
        self.is_cancelled = False
        self.message_id: str | None = None
        self.end: TurnEnd | None = None
        self._failure: RpcError | None = None
        self._changed = anyio.Event()

    def accept(self, message_id: str | None) -> None:
        self.message_id = message_id
        self._notify()

    def finish(self, end: TurnEnd) -> None:
        self.end = end
        self._notify()

    def fail(self, error: RpcError) -> None:
        self._failure = error
        self._notify()

    async def wait_accepted(self) -> None:
        """Wait until the prompt is a message, or will never be one."""
        while self.message_id is None and self.end is None:
            await self._wait()

    async def wait_ended(self) -> TurnEnd:
        while self.end is None:
            await self._wait()
        return self.end

    async def _wait(self) -> None:
        # What was known before a failure counts: a purge answers its prompt, and then there is no session.
        if self._failure:
            raise self._failure
        changed = self._changed
        await changed.wait()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


class AcpSink:
    """Implements `EventSink`."""

    def __init__(self, session: Session, epoch: str, wire: MessageWriter, updates: Updates) -> None:
        self.updates = updates
        self.watches: list[PromptWatch] = []
        self._session = session
        self._epoch = epoch
        self._wire = wire
        self._stored = Stored()
        self._seq = session.recorder.feed.last_seq
        """Of the newest event that the client has."""
        self._paused_by_failure = False

    def begin_replay(self, after: int) -> None:
        self._seq = after
        self.updates.begin_replay()

    async def resolve(self, events: list[StoredEvent]) -> list[StoredEvent]:
        self._stored = await read_stored(self._session.store, events)
        return events

    def send(self, event: StoredEvent) -> None:
        data = decode(event.data)
        self._seq = event.seq
        self.send_updates(self.updates.of(event, data, self._stored), event)
        # After the updates: the answer to a prompt follows all that belongs to its turn.
        self._note(event, data)

    def send_updates(self, updates: Iterable[Update], event: StoredEvent | None = None) -> None:
        """Send the updates of an event, or some that are none: those have the seq of the newest event before."""
        live: JsonObject = {"epoch": self._epoch, "seq": self._seq, "live": True}
        place = _position(event, self._epoch) if event else live
        id = self._session.chat.key.session_id
        for update in updates:
            params = {"sessionId": id, "update": update, "_meta": {META: place}}
            self._wire.send(notification("session/update", params))

    def send_answer(self, id: str, text: str) -> None:
        """Answer a prompt by a text that is not stored."""
        self.send_updates(self.updates.answered(id, text))

    def send_deletion(self, cursor: int) -> None:
        message = "This session was deleted"
        self.fail(RpcError.named("deleted", message))

    def fail(self, error: RpcError) -> None:
        """Answer all prompts with an error, because nothing more will be heard of their turns."""
        for watch in self.watches:
            watch.fail(error)

    def _note(self, event: StoredEvent, data: EventData) -> None:
        match event.type:
            case "prompt.accepted":
                for watch in self._watching(data["promptId"]):
                    watch.turn_id = data["turnId"]
                    watch.accept((data.get("item") or {}).get("id"))
            case "prompt.removed":
                for watch in self._watching(data["promptId"]):
                    watch.finish(TurnEnd("cancelled", event.seq))
            case "command.result":
                for watch in self._watching(data["promptId"]):
                    watch.accept(data["promptId"])
                    watch.finish(TurnEnd("end_turn", event.seq))
            case "queue.updated":
                self._paused_by_failure = data["paused"] and data["reason"] == "failed"
            case "turn.ended":
                error = stored_error(data["error"]) if data.get("error") else None
                for watch in self.watches:
                    if watch.turn_id == event.turn_id:
                        watch.finish(TurnEnd(data["reason"], event.seq, error))
                self._go_on()

    def _go_on(self) -> None:
        """Let the queue go on after a turn that failed: an editor cannot, and waits for an answer to each prompt."""
        waits = any(not watch.end and not watch.is_cancelled for watch in self.watches)
        if self._paused_by_failure and waits:
            self._session.run_in_background(self._session.resume_queue)
        self._paused_by_failure = False

    def _watching(self, prompt_id: str) -> list[PromptWatch]:
        return [watch for watch in self.watches if watch.prompt_id == prompt_id]


AcpAttachment = Attachment[AcpSink]
AcpAttachments = Attachments[AcpSink]


async def replay(attachment: AcpAttachment, wire: MessageWriter, after: int) -> None:
    """Send the visible part of the journal after a seq and up to the attachment's cursor; the attachment is held."""
    session, sink, to = attachment.session, attachment.sink, attachment.cursor
    tree = await session.store.turns.tree(session.chat.id)
    hidden = {node.id for node in tree if node.hidden}
    # Of a turn that the client has seen a part of, it must be known how far its texts were.
    begun = [node.first_seq for node in tree if node.first_seq <= after <= (node.last_seq or to)]
    cursor = min([after, *(first - 1 for first in begun)])
    sink.begin_replay(after)
    while cursor < to:
        await wire.wait_for_space()
        read = await session.events_after(cursor, REPLAY_EVENTS, REPLAY_BYTES)
        if not read:
            break
        events = [event for event in read if event.first <= to and event.turn_id not in hidden]
        for event in filter(None, (part_until(event, after) for event in events)):
            sink.updates.skip(event, decode(event.data))
        rest = list(filter(None, (part_after(event, after) for event in events)))
        await sink.resolve(rest)
        for event in coalesce(rest):
            sink.send(event)
        cursor = read[-1].seq
    sink.send_updates(sink.updates.end_replay())


async def read_stored(store: Store, events: Sequence[StoredEvent]) -> Stored:
    """The texts of files and the media that these events name."""
    refs: dict[str, None] = {}
    media: dict[str, None] = {}
    for event in events:
        if b'"changes":[{' not in event.data and b'"blobId"' not in event.data:
            continue
        raw = decode(event.data).get("item")
        if not raw:
            continue
        item = stored_item(raw)
        refs |= dict.fromkeys(change_refs(item_changes(item)))
        blocks = [*(item.content or []), *output_media(item)]
        media |= dict.fromkeys(block.blob_id for block in blocks if block.blob_id)
    return Stored(await read_texts(store, refs), await _read_blobs(store, media, MAX_MEDIUM_BYTES))


def change_refs(changes: Iterable[Change]) -> list[str]:
    return [ref for change in changes for ref in (change.old_ref, change.new_ref) if ref]


async def read_texts(store: Store, refs: Iterable[str]) -> dict[str, str]:
    """The texts of stored files, without those that are too long or no text."""
    found: dict[str, str] = {}
    for ref, data in (await _read_blobs(store, refs, MAX_DIFF_BYTES)).items():
        try:
            found[ref] = decode_text(data).plain
        except NotText:
            continue
    return found


async def _read_blobs(store: Store, ids: Iterable[str], limit: int) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for id in ids:
        try:
            info = await store.blobs.info(id)
            if info.size <= limit:
                found[id] = (await store.blobs.read(id, 0, info.size))[1]
        except Failure as failure:
            logger.info("a blob of an update cannot be read", extra={"error": failure.message})
    return found


def _position(event: StoredEvent, epoch: str) -> JsonObject:
    place: JsonObject = {"epoch": epoch, "seq": event.seq}
    return place | ({"from": event.first} if event.first != event.seq else {})
