"""`make chat` on a clone without any key: the small model on this machine answers, for real."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from sidecar.settings.files import default_data_dir

ROOT = Path(__file__).parents[3]
ANSWER_S = 60.0
"""Loading the model and a short answer, on a machine that is busy."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home of its own whose models are the fetched ones, so that no chat of the user's is touched."""
    models = Path(default_data_dir()) / "models"
    if not (models / "smollm2.gguf").is_file():
        pytest.skip("the model is not here; fetch it: .venv/bin/sidecar models fetch smollm2")
    if not shutil.which("make") or subprocess.run(["make", "--question", "setup"], cwd=ROOT).returncode:
        pytest.skip("needs make, and `make setup` to have run")
    pytest.importorskip("xllamacpp")
    data = tmp_path / ".local/share/sidecar"
    data.mkdir(parents=True)
    (data / "models").symlink_to(models)
    return tmp_path


def chat(home: Path, *arguments: str, line: str = "") -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", "OLLAMA_HOST": "127.0.0.1:9"}
    return subprocess.run(
        ["make", "--silent", "chat", *arguments],
        cwd=ROOT,
        env=env,
        input=line,
        capture_output=True,
        text=True,
        timeout=ANSWER_S,
    )


def test_one_prompt_is_answered(home: Path) -> None:
    done = chat(home, 'ARGS="Say hello in one short sentence."')
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip()


def test_a_piped_line_is_answered(home: Path) -> None:
    done = chat(home, line="Say hello in one short sentence.\n")
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip()
