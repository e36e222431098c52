"""Purges chats on request and by age: finds which are meant, ends what runs in them, and reports what stays.

An ambiguous request is refused: a purge cannot be undone.
"""

from __future__ import annotations

from typing import Literal

import anyio.to_thread
import msgspec

from ...model.chats import Chat
from ...model.failures import Refused, invalid_param
from ...model.figures import PurgeCounts
from ...settings import MEMORY
from ..journal import identity, project_identity
from ..journal.identity import ChatAddress
from ..sessions.chats import Chats, LockedChat
from ..sessions.session import Session
from . import agent_files

PurgeScope = Literal["chat", "project", "all"]


class PurgeTarget(msgspec.Struct, frozen=True):
    """What to purge: chats, and the data of a project (`paths`) or of all that belongs to no chat."""

    scope: PurgeScope
    chats: list[int]
    paths: list[str] | None = None


class PurgeResult(msgspec.Struct, frozen=True):
    """`freed` is how many bytes the files shrank by, `size` their size now."""

    removed: PurgeCounts
    left: list[LockedChat]
    freed: int
    size: int


async def purge_target(chats: Chats, scope: PurgeScope | None, address: ChatAddress) -> PurgeTarget:
    """What a request names; refused when it is ambiguous."""
    named = address.chat_id is not None or address.session_id is not None
    if scope is None:
        if not named:
            raise invalid_param(
                "scope",
                "chat, project or all, as no chat is named (projectPath alone may mean a chat or a project)",
            )
        scope = "chat"
    if scope == "chat":
        return PurgeTarget("chat", [(await _find_chat(chats, address, named)).id])
    if named or address.namespace is not None:
        field = (
            "namespace" if address.namespace is not None else "sessionId" if address.session_id else "chatId"
        )
        raise invalid_param(field, f"not allowed with scope {scope}; omit it, or use scope chat")
    if scope == "all":
        if address.project_path is not None:
            raise invalid_param("projectPath", "not allowed with scope all; omit it, or use scope project")
        return PurgeTarget("all", await chats.store.retention.chat_ids(None))
    if address.project_path is None:
        raise invalid_param("projectPath", "the project's folder, for scope project")
    paths = await chats.store.retention.paths(await project_identity.find_project(address.project_path))
    return PurgeTarget("project", await chats.store.retention.chat_ids(paths), paths)


async def count_purge(chats: Chats, wanted: PurgeTarget) -> PurgeCounts:
    """What a purge would remove now."""
    return await chats.store.retention.count(wanted.chats, wanted.paths, rest=wanted.scope != "chat")


async def purge(chats: Chats, wanted: PurgeTarget) -> PurgeResult:
    """Purge the target. A chat that another process writes to stays; a purge of it alone is refused."""
    retention = chats.store.retention
    before = retention.size()
    removed, left = await chats.purge(wanted.chats)
    if left and wanted.scope == "chat":
        raise left[0].held
    if wanted.scope != "chat":
        removed = removed.plus(await retention.purge_rest(wanted.paths))
        chats.services.distrust(wanted.paths)
        chats.project_identity.forget()
    if chats.store.data_dir != MEMORY:
        whole = wanted.scope != "chat"
        await anyio.to_thread.run_sync(
            lambda: agent_files.remove_texts(chats.store.data_dir, wanted.paths, events=whole)
        )
    await retention.shrink_files()
    return PurgeResult(removed, left, max(0, before - retention.size()), retention.size())


async def _find_chat(chats: Chats, address: ChatAddress, named: bool) -> Chat:
    if not named and address.project_path is None:
        raise invalid_param(
            "chatId", "the chat to purge: chatId, sessionId, or projectPath for the chat of a project"
        )
    found = await chats.find(address)
    if found is None:
        key = chats.key(address)
        raise identity.chat_not_found(key if isinstance(key, str) else key.session_id)
    if named and address.project_path is not None and not found.deleted:
        paths = await chats.store.retention.paths(await project_identity.find_project(address.project_path))
        if found.project_path not in paths:
            raise Refused(
                "invalid_params",
                "`projectPath`: the chat works in another project; leave it out, or name that one",
                params={"field": "projectPath", "projectPath": found.project_path},
            )
    return found


def chat_target(session: Session) -> PurgeTarget:
    """The chat of a session."""
    return PurgeTarget("chat", [session.chat.id])
