from __future__ import annotations

import pytest

from tests.blackbox.engines.bench import EngineBench
from tests.support.spawner import Spawner


@pytest.fixture
def bench(spawn: Spawner) -> EngineBench:
    return EngineBench(spawn)
