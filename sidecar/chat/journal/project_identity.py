"""Which project a chat belongs to: an id of its folder that is the same for every spelling of the path.

The id is a hash of the real path, case-folded where the file system is. So a folder, a link to it and its other
spellings are one project, while every git work tree and every submodule is a folder and a project of its own. The
id's version comes before its colon. A search for a project uses all versions, and no version is ever dropped.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterable

import anyio.to_thread

from ...model.failures import Failure, invalid_param
from ...store.store import Store
from ...store.tables.projects import StoredProject
from ...system import own_files
from ...system.path_case import canonical_path
from .identity import real_project_path

logger = logging.getLogger(__name__)

HASH_DIGITS = 32
"""Hexadecimal digits of sha256: 128 bits, far more than there are folders."""


def project_at(path: str) -> StoredProject:
    """The project at an absolute path, which need not exist any more. Reads the file system."""
    real = real_project_path(path)
    return StoredProject(real, (_version_1(real), _version_0(real)))


def refuse_own_folder(field: str, path: str, own: Iterable[str]) -> None:
    """Raise if a project or a further folder of a chat is, or lies in, a folder of Sidecar's own data or settings.

    File tools may edit what is in a project, and commands may write there: the database and the settings would be in
    reach of the model.
    """
    inside = own_files.enclosing_folder(path, own)
    if inside is not None:
        raise invalid_param(
            field,
            f"a folder outside {inside}, which has Sidecar's own data or settings; choose another folder",
        )


class ProjectIdentity:
    """Records the projects that chats work in, once each. One that is not in the store is found by its path alone."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._noted: set[str] = set()

    async def note(self, path: str) -> None:
        if path in self._noted:
            return
        self._noted.add(path)
        try:
            await self._store.retention.note(await find_project(path))
        except Failure as failure:
            logger.info("a project was not recorded", extra={"error": failure.message})

    def forget(self) -> None:
        """Record projects again on their next use, because some were purged or moved."""
        self._noted.clear()


async def find_project(path: str) -> StoredProject:
    """Like `project_at`, in a thread: the folder may be on a slow disk."""
    return await anyio.to_thread.run_sync(project_at, path)


def _version_1(real: str) -> str:
    return "v1:" + hashlib.sha256(os.fsencode(canonical_path(real))).hexdigest()[:HASH_DIGITS]


def _version_0(real: str) -> str:
    """The path itself, as the migration writes it."""
    return "v0:" + real
