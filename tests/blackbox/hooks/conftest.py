from __future__ import annotations

import pytest

from tests.blackbox.hooks.bench import HookBench
from tests.support.spawner import Spawner


@pytest.fixture
def bench(spawn: Spawner) -> HookBench:
    return HookBench(spawn)
