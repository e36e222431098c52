"""The Swift client, built with a real toolchain: its own tests with the real sidecar, and 50 kills."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.killing import kill_and_compare
from tests.support.spawner import Spawner

TOOLCHAIN = str(Path(__file__).with_name("toolchain.sh"))
FOLDER = os.environ.get("SIDECAR_SWIFT_DIR", str(Path.home() / ".cache" / "sidecar-swift"))
LIMIT_S = 900

pytestmark = pytest.mark.skipif(
    not os.environ.get("SIDECAR_SWIFT"), reason="`make test-swift` installs the toolchain first"
)


def test_its_own_tests_pass_with_the_real_sidecar() -> None:
    words = [TOOLCHAIN, "run", "SidecarClientPackageTests.xctest"]
    done = subprocess.run(words, timeout=LIMIT_S, check=False)
    assert done.returncode == 0


def test_fifty_kills_leave_the_transcript_that_the_journal_has(spawn: Spawner) -> None:
    seed = int(os.environ.get("SIDECAR_CRASH_SEED", "7"))

    recorder = ["env", f"SIDECAR_SWIFT_DIR={FOLDER}", TOOLCHAIN, "run", "Recorder"]

    assert kill_and_compare(spawn, recorder, 50, seed, omits_nulls=True) >= 40
