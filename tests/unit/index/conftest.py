"""An index on a database of its own."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from sidecar.index import Index
from sidecar.model.chats import ChatKey, ProcessIdentity
from sidecar.store import Store


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with anyio.create_task_group() as tasks:
        made = Store(
            str(tmp_path / "data"), 10.0, ProcessIdentity("i", "b", "n", os.getpid(), 0), lambda _: True
        )
        await made.open(tasks, lambda _: None)
        yield made
        await made.close()


@pytest.fixture
async def index(store: Store) -> AsyncIterator[Index]:
    async with anyio.create_task_group() as tasks:
        yield Index(store.index, tasks)


@pytest.fixture
async def chat(store: Store) -> int:
    """The number of a chat."""
    made, _ = await store.chats.create(ChatKey("test", "chat", "a", "a"), "/project", {})
    return made.id


@pytest.fixture
async def other(store: Store) -> int:
    """The number of another chat."""
    made, _ = await store.chats.create(ChatKey("test", "chat", "b", "b"), "/project", {})
    return made.id
