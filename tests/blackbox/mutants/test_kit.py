"""The kit fails each of these mutants of the program, and passes the program itself in the same guarantees."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.blackbox.mutants.patching import ROOT, environment, source
from tests.blackbox.mutants.test_mutants import ALL, MUTANTS

KIT = ROOT / "clients" / "conformance"

LIMIT_S = 900

FAILED_GUARANTEES = {
    "removes a whole chat in one transaction": "long",
    "forgets a deletion that was interrupted": "long",
    "takes an image that does not decode": "media",
    "acknowledges before the commit": "durability",
    "deletes the log at start": "durability",
    "ignores the lease": "processes",
    "drops deltas under pressure": "turns",
    "swallows a broken pipe": "lifecycle",
    "replaces a file unasked": "paths",
    "lets a cancelled request undo a change": "connection",
    "leaves the turn of a dead owner open": "processes",
}
"""By mutant, the guarantee of the kit that it breaks."""

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not ALL, reason="`make mutants` runs these")]


@pytest.mark.parametrize("name", FAILED_GUARANTEES)
def test_a_mutant_fails_the_kit(tmp_path: Path, name: str) -> None:
    (mutant,) = (mutant for mutant in MUTANTS if mutant.name == name)
    done = run_kit(source(tmp_path, mutant, whole=False), FAILED_GUARANTEES[name])
    assert (done.returncode, "FAIL" in done.stdout) == (1, True), done.stdout[-2000:] + done.stderr[-1000:]
    assert "was not collected" not in done.stdout


@pytest.mark.parametrize("guarantee", sorted({*FAILED_GUARANTEES.values()}))
def test_the_program_passes_the_kit(tmp_path: Path, guarantee: str) -> None:
    done = run_kit(source(tmp_path, None, whole=False), guarantee)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-1000:]


def run_kit(place: Path, guarantee: str) -> subprocess.CompletedProcess[str]:
    paths = [environment(place)["PYTHONPATH"], str(KIT)]
    command = [sys.executable, "-m", "sidecar", "serve"]
    return subprocess.run(
        [sys.executable, "-m", "sidecar_conformance", "--fail-fast", "--only", guarantee, "--", *command],
        # Not the repository, whose program `-m sidecar` would find first.
        cwd=place,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
