"""Maps what an app calls a chat to its session id: a pure function, the same on every machine."""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata

import msgspec
from sidecar_protocol.limits import MAX_ID_BYTES

from ...model.chats import ChatKey, KeyKind
from ...model.failures import Refused, invalid_param

SLUG_CHARACTERS = 40

_SESSION_ID = re.compile(r"sc-[a-z0-9-]{1,40}-[0-9a-f]{16}")


class ChatAddress(msgspec.Struct, frozen=True):
    """How a request names a chat."""

    chat_id: str | None = None
    project_path: str | None = None
    namespace: str | None = None
    session_id: str | None = None


def resolve(address: ChatAddress, default_chat: str | None) -> ChatKey | str:
    """The key that an address names, or only its session id when that is all it has.

    `default_chat` is used for a missing chat id.
    """
    if address.session_id is None:
        chat_id = address.chat_id if address.chat_id is not None else default_chat
        return chat_key(chat_id, address.project_path, address.namespace)
    if address.chat_id is not None or address.namespace is not None:
        raise invalid_param("sessionId", "it identifies the chat alone: omit `chatId` and `namespace`")
    return checked_session_id(address.session_id)


def chat_key(chat_id: str | None, project_path: str | None, namespace: str | None) -> ChatKey:
    """The key of a chat: its id, else its project, else the default of the namespace."""
    space = _checked_text("namespace", namespace) if namespace is not None else "default"
    if "\0" in space:
        raise invalid_param("namespace", "a string without NUL characters")
    if chat_id is not None:
        return _make_key(space, "chat", _checked_text("chatId", chat_id))
    if project_path is not None:
        return _make_key(space, "project", real_project_path(project_path))
    return _make_key(space, "default", "default")


def real_project_path(path: str) -> str:
    """The real path of a project's folder."""
    if not os.path.isabs(path) or "\0" in path:
        raise invalid_param("projectPath", "an absolute path")
    return os.path.realpath(path)


def checked_session_id(session_id: str) -> str:
    if not _SESSION_ID.fullmatch(session_id):
        raise invalid_param("sessionId", "an id as chat/open returns it, like sc-tab-7-bf133f99bd6e5d06")
    return session_id


def chat_not_found(session_id: str) -> Refused:
    return Refused("not_found", f"There is no chat {session_id}", params={"sessionId": session_id})


def chat_deleted(session_id: str) -> Refused:
    return Refused(
        "deleted", "This chat was deleted; chat/open makes it again", params={"sessionId": session_id}
    )


def _make_key(namespace: str, kind: KeyKind, value: str) -> ChatKey:
    digest = hashlib.sha256(f"{namespace}\0{kind}\0{value}".encode()).hexdigest()
    return ChatKey(namespace, kind, value, f"sc-{_slug(value)}-{digest[:16]}")


def _slug(text: str) -> str:
    words = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    return words[:SLUG_CHARACTERS].strip("-") or "chat"


def _checked_text(field: str, value: str) -> str:
    text = unicodedata.normalize("NFC", value)
    if not 1 <= len(text.encode()) <= MAX_ID_BYTES:
        raise invalid_param(field, f"1 to {MAX_ID_BYTES} bytes of UTF-8")
    return text
