"""Purging on request and by age: which chats are meant, what runs in them is ended, and what was left is told.

A request that could mean two things is refused: what is purged does not come back.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from ..model.chats import Chat
from ..model.failures import Refused, invalid
from ..model.figures import Removed
from . import attribution, identity
from .chats import Chats, Left
from .identity import Address
from .session import Session

Scope = Literal["chat", "project", "all"]


class Target(msgspec.Struct, frozen=True):
    """What is to be purged: chats, and of a project (`paths`) or of all what belongs to no chat."""

    scope: Scope
    chats: list[int]
    paths: list[str] | None = None


class Purged(msgspec.Struct, frozen=True):
    """`freed` is how many bytes the files became smaller, `size` what they have now."""

    removed: Removed
    left: list[Left]
    freed: int
    size: int


async def target(chats: Chats, scope: Scope | None, address: Address) -> Target:
    """What a request names; refused when it is not one thing."""
    named = address.chat_id is not None or address.session_id is not None
    if scope is None:
        if not named:
            raise invalid(
                "scope",
                "chat, project or all, as no chat is named (projectPath alone may mean a chat or a project)",
            )
        scope = "chat"
    if scope == "chat":
        return Target("chat", [(await _named(chats, address, named)).id])
    if named or address.namespace is not None:
        field = (
            "namespace" if address.namespace is not None else "sessionId" if address.session_id else "chatId"
        )
        raise invalid(field, f"nothing beside scope {scope}; leave it out, or say scope chat")
    if scope == "all":
        if address.project_path is not None:
            raise invalid("projectPath", "nothing beside scope all; leave it out, or say scope project")
        return Target("all", await chats.store.custody.chat_ids(None))
    if address.project_path is None:
        raise invalid("projectPath", "the project's folder, for scope project")
    paths = await chats.store.custody.paths(await attribution.found(address.project_path))
    return Target("project", await chats.store.custody.chat_ids(paths), paths)


async def planned(chats: Chats, wanted: Target) -> Removed:
    """What a purge would remove now."""
    return await chats.store.custody.count(wanted.chats, wanted.paths, rest=wanted.scope != "chat")


async def purge(chats: Chats, wanted: Target) -> Purged:
    """Purge what is meant; a chat that another process writes to is left, and told, or refused when it is all."""
    custody = chats.store.custody
    before = custody.size()
    removed, left = await chats.purge(wanted.chats)
    if left and wanted.scope == "chat":
        raise left[0].held
    if wanted.scope != "chat":
        removed = removed.plus(await custody.purge_rest(wanted.paths))
        chats.workshop.distrust(wanted.paths)
        chats.attribution.forget()
    await custody.give_back()
    return Purged(removed, left, max(0, before - custody.size()), custody.size())


async def _named(chats: Chats, address: Address, named: bool) -> Chat:
    if not named and address.project_path is None:
        raise invalid(
            "chatId", "the chat to purge: chatId, sessionId, or projectPath for the chat of a project"
        )
    found = await chats.find(address)
    if found is None:
        key = chats.key(address)
        raise identity.not_found(key if isinstance(key, str) else key.session_id)
    if named and address.project_path is not None and not found.deleted:
        paths = await chats.store.custody.paths(await attribution.found(address.project_path))
        if found.project_path not in paths:
            raise Refused(
                "invalid_params",
                "`projectPath`: the chat works in another project; leave it out, or name that one",
                params={"field": "projectPath", "projectPath": found.project_path},
            )
    return found


def own(session: Session) -> Target:
    """The chat of a session."""
    return Target("chat", [session.chat.id])
