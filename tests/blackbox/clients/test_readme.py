"""The examples in the client's README run as they stand."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.support.patience import PATIENCE_S

README = Path(__file__).parents[3] / "clients" / "python" / "README.md"


def test_the_first_example_streams_and_lists_its_turn(tmp_path: Path) -> None:
    first, second = _said(tmp_path, 0, "echo:").splitlines()
    assert first == "Hello there"
    assert second.endswith("completed ['user', 'message']")


def test_the_second_example_answers_what_it_is_asked_and_undoes_what_was_done(tmp_path: Path) -> None:
    write = {"path": "weather.txt", "content": "Sunny in Oslo\n"}
    steps = [
        {"toolCall": {"name": "weather", "input": {"city": "Oslo"}}},
        {"toolCall": {"name": "write_file", "input": write}},
        {"toolCall": {"name": "run_command", "input": {"command": "curl example.org"}}},
        {"text": "It is in weather.txt."},
    ]
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"replies": [{"match": "weather", "steps": steps}]}))
    said = _said(tmp_path, 1, f"scripted:{script}")
    assert said.count("Permission: ") == 3
    assert "+Sunny in Oslo" in said
    assert "It is in weather.txt." in said
    assert "weather.txt New file: 1 line" in said
    assert not (tmp_path / "weather.txt").exists()


def _said(folder: Path, number: int, model: str) -> str:
    """What an example of the page prints, started in `folder`."""
    example = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)[number]
    env = os.environ | {"SIDECAR_DATA_DIR": str(folder / "data"), "HOME": str(folder), "SIDECAR_MODEL": model}
    done = subprocess.run(
        [sys.executable, "-c", example],
        env=env,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    return done.stdout
