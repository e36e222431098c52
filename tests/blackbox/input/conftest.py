"""One sidecar for all cases of a module: what one case breaks, the next one meets."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.spawner import Spawner

from .probe import Probe


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Probe]:
    spawner = Spawner(tmp_path_factory.mktemp("input"))
    probe = Probe(spawner())
    yield probe
    spawner.settle()


@pytest.fixture(scope="module")
def uninitialized(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Probe]:
    """A sidecar that has not yet been told who calls."""
    spawner = Spawner(tmp_path_factory.mktemp("early"))
    probe = Probe(spawner(initialize=False))
    yield probe
    spawner.settle()
