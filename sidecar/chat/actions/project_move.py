"""Moves a project to a new folder: its chats work there from now on, and what is stored for it moves along.

Trust does not move. Whoever could create the new folder wrote its content, and trust lets that content run. So the
new folder has to be trusted itself, and the old path is not trusted any more. Rules that allow something move only
when the old folder is gone: as long as it exists, they were given for that one.
"""

from __future__ import annotations

import os
from contextlib import AsyncExitStack

import anyio.to_thread
import msgspec

from ...model.chats import Chat, ChatKey, OwnConfig
from ...model.events import NewEvent
from ...model.failures import Refused, invalid_param
from ...store.project_move import ChatMove, RebindCounts
from ...store.tables.appending import StaleWrite
from ...store.tables.leases import UnclosedChat
from ...store.tables.projects import StoredProject
from ..journal import event_factory, identity, project_identity
from ..journal.identity import ChatAddress
from ..sessions import config
from ..sessions.chats import Chats

ATTEMPTS = 5
"""How often the move is tried again when another process was faster, or died while it held a chat."""


class MovedProject(msgspec.Struct, frozen=True):
    """`old` are the spellings of the project's old path; `gone`: nothing exists there any more."""

    project: StoredProject
    old: list[str]
    gone: bool
    chats: int
    open_files: int
    rebound: RebindCounts


async def rebind_project(chats: Chats, from_: str, to: str) -> MovedProject:
    """Bind what belongs to the folder `from_` to the folder `to`; a second call changes nothing."""
    old, new, gone = await anyio.to_thread.run_sync(_resolve_projects, from_, to)
    project_identity.refuse_own_folder("to", new.path, chats.services.own_folders)
    retention = chats.store.retention
    if not await retention.is_known(old):
        raise Refused(
            "not_found",
            "`from`: no chat ever worked in this folder; stats/read lists the projects there are",
            params={"field": "from", "path": old.path},
        )
    paths = await retention.paths(old)
    for attempt in range(ATTEMPTS):
        try:
            return await _try_rebind(chats, paths, new, gone)
        except (StaleWrite, UnclosedChat):
            if attempt + 1 == ATTEMPTS:
                raise
    raise AssertionError("the last attempt raises")


async def _try_rebind(chats: Chats, paths: list[str], new: StoredProject, gone: bool) -> MovedProject:
    retention = chats.store.retention
    for chat in await retention.chats_at(paths, abandoned=True):
        await chats.open(ChatAddress(session_id=chat.key.session_id), create=False)
    async with AsyncExitStack() as held:
        here = {session.chat.id: session for session in chats.sessions if session.chat.project_path in paths}
        for session in here.values():
            await held.enter_async_context(session.lock)
            if session.turn:
                raise event_factory.turn_in_progress()
            await session.recorder.wait_flushed()
        moves = [_chat_move(chats, chat, paths, new.path) for chat in await retention.chats_at(paths)]
        rebound = await retention.rebind(paths, new, moves, gone=gone)
        for id, session in here.items():
            if id in rebound.renamed:
                chats.forget(session.chat.key.session_id)
            else:
                await session.refresh(keep_lease=True)
    chats.project_identity.forget()
    if rebound.sources:
        chats.services.index().start()  # merged sources are indexed again
    if gone:
        chats.services.distrust(paths)
    return MovedProject(new, paths, gone, len(moves), sum(move.files for move in moves), rebound)


def _resolve_projects(from_: str, to: str) -> tuple[StoredProject, StoredProject, bool]:
    for field, path in (("from", from_), ("to", to)):
        if not os.path.isabs(path) or "\0" in path:
            raise invalid_param(field, "an absolute path")
    old, new = project_identity.project_at(from_), project_identity.project_at(to)
    if not os.path.isdir(new.path):
        raise invalid_param("to", "a folder that exists: the one that the project is in now")
    if old.ids[0] == new.ids[0]:
        raise invalid_param("to", "another folder than `from`")
    return old, new, not os.path.lexists(old.path)


def _chat_move(chats: Chats, chat: Chat, old: list[str], new: str) -> ChatMove:
    """The events of a chat's move: its new project, and the new paths of its open files."""
    stored: OwnConfig = {**chat.config}
    if folders := stored.get("extraFolders"):
        stored["extraFolders"] = [_moved_path(path, old, new) for path in folders]
    in_force = config.effective_config(chats.defaults(new), stored, new)
    events = [NewEvent("config.updated", {"config": in_force, "stored": stored, "projectPath": new})]
    files = [{**file, "path": _moved_path(str(file["path"]), old, new)} for file in chat.open_files]
    changed = sum(one != other for one, other in zip(files, chat.open_files, strict=True))
    if changed:
        events.append(NewEvent("files.updated", {"files": files}))
    return ChatMove(chat, events, changed, _new_key(chat, new))


def _new_key(chat: Chat, new: str) -> ChatKey | None:
    return identity.chat_key(None, new, chat.key.namespace) if chat.key.kind == "project" else None


def _moved_path(path: str, old: list[str], new: str) -> str:
    for root in old:
        if path == root or path.startswith(root.rstrip(os.sep) + os.sep):
            return os.path.join(new, os.path.relpath(path, root)) if path != root else new
    return path
