"""A client that is killed and restarted at random points, or whose sidecar is, has the chat as it was stored."""

from __future__ import annotations

import os
import sys

import pytest

from tests.support import recorder
from tests.support.killing import kill_and_compare
from tests.support.spawner import Spawner


@pytest.mark.slow
def test_fifty_kills_leave_the_transcript_that_the_journal_has(spawn: Spawner) -> None:
    kills = int(os.environ.get("SIDECAR_CLIENT_KILLS", "50"))
    seed = int(os.environ.get("SIDECAR_CRASH_SEED", "7"))

    killed = kill_and_compare(spawn, [sys.executable, recorder.__file__], kills, seed)

    assert killed >= kills * 0.8
