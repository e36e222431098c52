"""Removes keys and tokens from a chat that was read: those that this process knows, and those of a known form."""

from __future__ import annotations

import msgspec

from ..model.content import Turn
from ..model.files import Patch
from ..system.redact import redact_text
from ..text.secret_shapes import hide_secrets
from .base import Attachment, ForeignChat

_turns = msgspec.json.Decoder(list[Turn])
_patches = msgspec.json.Decoder(list[Patch])

_UNKNOWN = {"oldRef": None, "newRef": None, "beforeHash": None, "afterHash": None}


def redact(chat: ForeignChat) -> ForeignChat:
    """The chat without secrets. The bytes of a file that has one are dropped, so that its change is for reading."""
    chat.title = _clean(chat.title) if chat.title else chat.title
    chat.turns = _turns.decode(_clean(msgspec.json.encode(chat.turns).decode()))
    chat.patches = _patches.decode(_clean(msgspec.json.encode(chat.patches).decode()))
    tainted = {id for id, blob in chat.blobs.items() if _has_secret(blob)}
    if tainted:
        chat.blobs = {id: blob for id, blob in chat.blobs.items() if id not in tainted}
        chat.patches = [_without_bytes(patch, tainted) for patch in chat.patches]
        for turn in chat.turns:
            turn.items[:] = [
                msgspec.structs.replace(
                    item, changes=[_change_without(change, tainted) for change in item.changes]
                )
                if item.changes
                else item
                for item in turn.items
            ]
    return chat


def without_bytes(patch: Patch) -> Patch:
    """The patch as one that can only be read."""
    return msgspec.structs.replace(patch, old_ref=None, new_ref=None, before_hash=None, after_hash=None)


def _clean(text: str) -> str:
    return hide_secrets(redact_text(text))


def _has_secret(blob: Attachment) -> bool:
    if not blob.mime_type.startswith("text/"):
        return False
    text = blob.data.decode(errors="replace")
    return _clean(text) != text


def _without_bytes(patch: Patch, tainted: set[str]) -> Patch:
    return without_bytes(patch) if {patch.old_ref, patch.new_ref} & tainted else patch


def _change_without(change: dict[str, object], tainted: set[str]) -> dict[str, object]:
    if not {change.get("oldRef"), change.get("newRef")} & tainted:
        return change
    return {name: value for name, value in change.items() if name not in _UNKNOWN}
