"""Each real agent plays every part that its protocol can express. The table of docs/engines.md comes from here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .agents import AGENTS

pytestmark = pytest.mark.skipif(
    not os.environ.get("SIDECAR_AGENTS"), reason="set SIDECAR_AGENTS=1, or use `make test-agents`"
)

PLAY_S = 600

CANNOT = {
    # Its session/load knows a session only a minute after its last word; the history goes along instead.
    "gemini": set[str](),
}
"""Parts that an agent cannot play, as docs/engines.md says."""


@pytest.mark.parametrize("name", sorted(AGENTS))
def test_a_real_agent_plays_every_part(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        ["unshare", "-n", sys.executable, "-m", "tests.engines.run", name, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=PLAY_S,
        check=False,
        env={**os.environ, "SIDECAR_OWN_NETWORK": "1"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    results: dict[str, Any] = json.loads(done.stdout)
    version = results.pop("version")
    failed = {part: seen for part, seen in results.items() if seen and part not in CANNOT.get(name, ())}
    assert failed == {}, f"{name} {version}"
