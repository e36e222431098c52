"""The example in the client's README runs as it stands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[2] / "clients" / "python" / "README.md"


def test_the_example_streams_and_lists_its_turn(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    env = os.environ | {
        "SIDECAR_DATA_DIR": str(tmp_path / "data"),
        "HOME": str(tmp_path),
        "SIDECAR_MODEL": "echo:",
    }
    done = subprocess.run(
        [sys.executable, "-c", example], env=env, capture_output=True, text=True, timeout=60, check=True
    )
    first, second = done.stdout.splitlines()
    assert first == "Hello there"
    assert second.endswith("completed ['user', 'message']")
