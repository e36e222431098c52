"""Which project a chat belongs to: an id of its folder that is the same however the path is spelled.

The id is a hash of the real path, with names folded where the file system does. So a folder, a link to it and its other
spellings are one project, while every git work tree and every submodule, being a folder of its own, is its own. The
id's version stands before its colon; whoever looks for a project looks for all versions, and none is ever dropped.
"""

from __future__ import annotations

import hashlib
import logging
import os

import anyio.to_thread

from ..model.failures import Failure
from ..store.projects import Project
from ..store.store import Store
from ..system.spelling import canonical
from .identity import real_project

logger = logging.getLogger(__name__)

HASH_DIGITS = 32
"""Of sha256, in hexadecimal: 128 bits, far more than there are folders."""


def project_of(path: str) -> Project:
    """The project at an absolute path, which need not be there any more. Looks at the file system."""
    real = real_project(path)
    return Project(real, (_version_1(real), _version_0(real)))


class Attribution:
    """Lets the store know the projects that chats work in, once each; a project that it does not know is found by
    its path alone."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._noted: set[str] = set()

    async def note(self, path: str) -> None:
        if path in self._noted:
            return
        self._noted.add(path)
        try:
            await self._store.custody.note(await found(path))
        except Failure as failure:
            logger.info("a project was not noted", extra={"error": failure.message})

    def forget(self) -> None:
        """Projects were purged or moved: note them again when a chat works in them."""
        self._noted.clear()


async def found(path: str) -> Project:
    """As `project_of`, beside the loop: a folder may lie on a disk that sleeps."""
    return await anyio.to_thread.run_sync(project_of, path)


def _version_1(real: str) -> str:
    return "v1:" + hashlib.sha256(os.fsencode(canonical(real))).hexdigest()[:HASH_DIGITS]


def _version_0(real: str) -> str:
    """The path itself, as the migration writes it."""
    return "v0:" + real
