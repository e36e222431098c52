from __future__ import annotations

import pytest

from tests.blackbox.work.workbench import Workbench
from tests.support.spawner import Spawner


@pytest.fixture
def bench(spawn: Spawner) -> Workbench:
    return Workbench(spawn)
