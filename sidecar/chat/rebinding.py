"""A project's folder was moved: its chats work in the new one from now on, and what was kept for it goes along.

Trust does not. Whoever could put a folder at the new place wrote what is in it, and what trust lets run is written
there; so the new folder has to be trusted for itself, and a place that the project left is not trusted any more. Rules
that allow something go along only when the old folder is gone: as long as it is there, they were given for that one.
"""

from __future__ import annotations

import os
from contextlib import AsyncExitStack

import anyio.to_thread
import msgspec

from ..model.chats import Chat, ChatKey
from ..model.events import NewEvent
from ..model.failures import Refused, invalid
from ..store.appending import Stale
from ..store.leases import Unclosed
from ..store.projects import Project
from ..store.rebinding import Move, Rebound
from . import attribution, config, facts, identity
from .chats import Chats
from .identity import Address

ATTEMPTS = 5
"""How often it is begun anew when another process was faster, or died with a chat in its hands."""


class Moved(msgspec.Struct, frozen=True):
    """`old` are the spellings of the path that the project had; `gone`, that nothing is there any more."""

    project: Project
    old: list[str]
    gone: bool
    chats: int
    open_files: int
    rebound: Rebound


async def rebind(chats: Chats, from_: str, to: str) -> Moved:
    """Bind what belongs to the folder `from_` to the folder `to`; asking again changes nothing."""
    old, new, gone = await anyio.to_thread.run_sync(_looked_at, from_, to)
    custody = chats.store.custody
    if not await custody.is_known(old):
        raise Refused(
            "not_found",
            "`from`: no chat ever worked in this folder; stats/read lists the projects there are",
            params={"field": "from", "path": old.path},
        )
    paths = await custody.paths(old)
    for attempt in range(ATTEMPTS):
        try:
            return await _attempt(chats, paths, new, gone)
        except (Stale, Unclosed):
            if attempt + 1 == ATTEMPTS:
                raise
    raise AssertionError("the last attempt raises")


async def _attempt(chats: Chats, paths: list[str], new: Project, gone: bool) -> Moved:
    custody = chats.store.custody
    for chat in await custody.chats_at(paths, abandoned=True):
        await chats.open(Address(session_id=chat.key.session_id), create=False)
    async with AsyncExitStack() as held:
        here = {session.chat.id: session for session in chats.sessions if session.chat.project_path in paths}
        for session in here.values():
            await held.enter_async_context(session.lock)
            if session.turn:
                raise facts.busy()
            await session.recorder.settle()
        moves = [_move(chats, chat, paths, new.path) for chat in await custody.chats_at(paths)]
        rebound = await custody.rebind(paths, new, moves, gone=gone)
        for id, session in here.items():
            if id in rebound.renamed:
                chats.forget(session.chat.key.session_id)
            else:
                await session.refresh(keep_lease=True)
    chats.attribution.forget()
    if rebound.sources:
        chats.workshop.index().start()  # those that joined others are indexed anew
    if gone:
        chats.workshop.distrust(paths)
    return Moved(new, paths, gone, len(moves), sum(move.files for move in moves), rebound)


def _looked_at(from_: str, to: str) -> tuple[Project, Project, bool]:
    for field, path in (("from", from_), ("to", to)):
        if not os.path.isabs(path) or "\0" in path:
            raise invalid(field, "an absolute path")
    old, new = attribution.project_of(from_), attribution.project_of(to)
    if not os.path.isdir(new.path):
        raise invalid("to", "a folder that exists: the one that the project is in now")
    if old.ids[0] == new.ids[0]:
        raise invalid("to", "another folder than `from`")
    return old, new, not os.path.lexists(old.path)


def _move(chats: Chats, chat: Chat, old: list[str], new: str) -> Move:
    """What the chat's journal will say: its new project, and where its files in view are now."""
    stored = dict(chat.config)
    if stored.get("extraFolders"):
        stored["extraFolders"] = [_moved(path, old, new) for path in stored["extraFolders"]]
    in_force = config.effective(chats.defaults(new), stored, new)
    events = [NewEvent("config.updated", {"config": in_force, "stored": stored, "projectPath": new})]
    files = [{**file, "path": _moved(file["path"], old, new)} for file in chat.open_files]
    changed = sum(one != other for one, other in zip(files, chat.open_files, strict=True))
    if changed:
        events.append(NewEvent("files.updated", {"files": files}))
    return Move(chat, events, changed, _key(chat, new))


def _key(chat: Chat, new: str) -> ChatKey | None:
    return identity.key_of(None, new, chat.key.namespace) if chat.key.kind == "project" else None


def _moved(path: str, old: list[str], new: str) -> str:
    for root in old:
        if path == root or path.startswith(root.rstrip(os.sep) + os.sep):
            return os.path.join(new, os.path.relpath(path, root)) if path != root else new
    return path
