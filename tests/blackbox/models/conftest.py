"""Sidecars that ask a fake provider over HTTP: strict about what it is sent, faulty on demand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sidecar.fake_provider import FakeProvider, in_thread
from tests.blackbox.models.talk import APIS, Talk
from tests.support.spawner import Spawner


@pytest.fixture
def fake() -> Iterator[FakeProvider]:
    with in_thread() as fake:
        yield fake


@pytest.fixture(params=APIS)
def api(request: pytest.FixtureRequest) -> str:
    """Each of the APIs in turn, by the fake's name for it."""
    name: str = request.param
    return name


@pytest.fixture
def talk(api: str, fake: FakeProvider, spawn: Spawner, tmp_path: Path) -> Talk:
    """A sidecar whose model is the fake's, over this API; impatient, so that faults are quick."""
    return Talk(api, fake, spawn, tmp_path)
