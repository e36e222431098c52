from __future__ import annotations

import pytest

from tests.support.spawner import Spawner
from tests.work.workbench import Workbench


@pytest.fixture
def bench(spawn: Spawner) -> Workbench:
    return Workbench(spawn)
