"""The page over a new database, and a project with something to show."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.blackbox.work.workbench import Workbench
from tests.support.spawner import Spawner

from .page import Page, opened


@pytest.fixture
def page(spawn: Spawner) -> Iterator[Page]:
    with opened(spawn.environment()) as found:
        yield found


@pytest.fixture
def bench(spawn: Spawner) -> Workbench:
    return Workbench(spawn)
