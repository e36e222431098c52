"""Fixtures of the black boxes: a spawner of sidecars in a folder of the test's own, and one that is ready."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner

hypothesis.settings.register_profile("no-deadline", deadline=None)
hypothesis.settings.load_profile("no-deadline")
"""A busy machine is no failure: tests assert no speed."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests come first: one that is begun last leaves the other workers with nothing to do."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def pytest_collection_finish() -> None:
    """What was collected stays to the end: looking for garbage among them takes a tenth of the workers' time."""
    gc.freeze()


@pytest.fixture
def spawn(tmp_path: Path) -> Iterator[Spawner]:
    """Call it to spawn a sidecar. At the end all are gone, and what they said kept the rules."""
    spawner = Spawner(tmp_path)
    yield spawner
    spawner.settle()


@pytest.fixture
def sidecar(spawn: Spawner) -> Sidecar:
    """An initialized sidecar with the `echo:` model."""
    return spawn()
