"""Chats in projects that somebody else has written, with a model that is a strict fake."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sidecar.fake_provider import FakeProvider, in_thread
from tests.blackbox.window.room import Room
from tests.blackbox.work.workbench import Workbench
from tests.support.spawner import Spawner


@pytest.fixture
def fake() -> Iterator[FakeProvider]:
    with in_thread() as fake:
        yield fake


@pytest.fixture
def bench(spawn: Spawner) -> Workbench:
    return Workbench(spawn)


@pytest.fixture
def large(bench: Workbench, fake: FakeProvider) -> Room:
    """The window is 200,000 tokens: nothing is left out for want of room."""
    return Room(bench, fake, "openai:fake-1", 200_000)
